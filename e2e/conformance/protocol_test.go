package conformance_test

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	admissionv1 "k8s.io/api/admission/v1"

	"github.com/fairlead-io/fairlead/internal/testkit/must"
)

// tooLarge is above what the API server accepts from its own clients (3 MiB), twice for an update.
const tooLarge = 12 << 20

// Bodies that can't be read get an HTTP error, so that the failure policy decides. The webhook goes on serving.
func TestBadRequestsAreNotAllowed(t *testing.T) {
	w := newReviewer(t)
	good := w.body(nil)
	within := func(fields string) []byte {
		return bytes.Replace(good, []byte(`"request":{`), []byte(fields), 1)
	}
	var packed bytes.Buffer
	zip := gzip.NewWriter(&packed)
	_, err := zip.Write(good)
	must.Do(t, errors.Join(err, zip.Close()))
	other := w.body(func(r *admissionv1.AdmissionRequest) {
		r.Kind.Group, r.Kind.Kind = "conformance.example", "Other"
		r.Object.Raw = []byte(`{"apiVersion":"conformance.example/v1","kind":"Other","metadata":{"name":"a"}}`)
	})
	for name, test := range map[string]struct {
		body   []byte
		header map[string]string
		status int
	}{
		"an empty body":     {nil, nil, http.StatusBadRequest},
		"no JSON":           {[]byte("hello"), nil, http.StatusBadRequest},
		"half a review":     {good[:len(good)/2], nil, http.StatusBadRequest},
		"no request":        {[]byte(`{"kind":"AdmissionReview","apiVersion":"admission.k8s.io/v1"}`), nil, http.StatusBadRequest},
		"deep JSON":         {[]byte(strings.Repeat(`{"a":`, 20_000)), nil, http.StatusBadRequest},
		"another kind":      {other, nil, http.StatusBadRequest},
		"duplicate fields":  {within(`"request":{"uid":"first",`), nil, http.StatusBadRequest}, // two parsers may read two requests
		"a large body":      {within(`"filler":"` + strings.Repeat("x", tooLarge) + `","request":{`), nil, http.StatusRequestEntityTooLarge},
		"a compressed body": {packed.Bytes(), map[string]string{"Content-Encoding": "gzip"}, http.StatusBadRequest},
	} {
		t.Run(name, func(t *testing.T) {
			a, err := w.post(t.Context(), bytes.NewReader(test.body), test.header)
			if err == nil { // else the server has closed the connection before it had all of the body
				must.Equal(t, a.status, test.status)
			}
			w.decides(t)
		})
	}
}

func TestOnlyPostIsServed(t *testing.T) {
	w := newReviewer(t)
	response, err := w.client.Get(w.url)
	must.Do(t, err)
	must.Do(t, response.Body.Close())
	must.Equal(t, response.StatusCode, http.StatusMethodNotAllowed)
}

// slowBody gives its first half at once, tells that it is sent, and ends when it is closed.
type slowBody struct {
	first  *bytes.Reader
	sent   func()
	closed chan struct{}
}

func (s slowBody) Read(into []byte) (int, error) {
	if n, err := s.first.Read(into); err == nil {
		return n, nil
	}
	s.sent() // the transport asks for more once it has sent the first half
	<-s.closed
	return 0, io.ErrUnexpectedEOF
}

func TestSlowBodiesDoNotStopOthers(t *testing.T) {
	w := newReviewer(t)
	ctx, cancel := context.WithCancel(t.Context())
	closed, body := make(chan struct{}), w.body(nil)
	var senders, sent sync.WaitGroup
	for range 50 {
		sent.Add(1)
		once := sync.OnceFunc(sent.Done)
		senders.Go(func() {
			defer once() // also if the webhook takes no more connections
			_, _ = w.post(ctx, slowBody{bytes.NewReader(body[:len(body)/2]), once, closed}, nil)
		})
	}
	sent.Wait()
	w.decides(t)
	close(closed)
	cancel()
	senders.Wait()
}

// A restart of a node sends many requests at once.
func TestManyRequestsAtOnceAreAnswered(t *testing.T) {
	w := newReviewer(t)
	errs := make([]error, 100)
	var senders sync.WaitGroup
	for n := range errs {
		senders.Go(func() { errs[n] = w.send(t.Context(), n) })
	}
	senders.Wait()
	must.Do(t, errors.Join(errs...))
}

// The API server cancels a request at its timeout.
func TestCancelledRequestsDoNotStopOthers(t *testing.T) {
	w := newReviewer(t)
	var senders sync.WaitGroup
	for n := range 100 {
		senders.Go(func() {
			short, cancel := context.WithTimeout(t.Context(), time.Duration(n%10)*time.Millisecond)
			defer cancel()
			_ = w.send(short, n)
		})
	}
	senders.Wait()
	w.decides(t)
}

// send a request with a UID of its own, which the answer must have.
func (w reviewer) send(ctx context.Context, n int) error {
	response, err := w.ask(ctx, func(r *admissionv1.AdmissionRequest) { r.UID = uid(n) })
	if err == nil && response.UID != uid(n) {
		err = fmt.Errorf("request %s got the answer of %s", uid(n), response.UID)
	}
	return err
}

// decides: after a bad request, a good one is decided within seconds.
func (w reviewer) decides(t *testing.T) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
	defer cancel()
	if err := w.send(ctx, 0); err != nil {
		t.Errorf("the next request is not decided: %v", err)
	}
}
