package conformance

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"time"

	admissionv1 "k8s.io/api/admission/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func echoesUID(ctx context.Context, w Webhook) (string, error) {
	for n := range 3 {
		response, err := w.ask(ctx, func(r *admissionv1.AdmissionRequest) { r.UID = uid(n) })
		if err != nil {
			return "", err
		}
		if response.UID != uid(n) {
			return "", fmt.Errorf("sent %q, got %q", uid(n), response.UID)
		}
	}
	return "", nil
}

func answersV1(ctx context.Context, w Webhook) (string, error) {
	a, err := w.post(ctx, bytes.NewReader(w.body(nil)), nil)
	if err != nil {
		return "", err
	}
	var about metav1.TypeMeta
	if err := json.Unmarshal(a.body, &about); err != nil {
		return "", fmt.Errorf("%d: %w", a.status, err)
	}
	if about.Kind != "AdmissionReview" || about.APIVersion != admissionv1.SchemeGroupVersion.String() {
		return "", fmt.Errorf("got %s %s", about.APIVersion, about.Kind)
	}
	// Kubernetes' documentation asks for application/json; the API server does not look at it.
	return fmt.Sprintf("%s, %s", a.protocol, strings.SplitN(a.contentType, ";", 2)[0]), nil
}

func ignoresUnknownFields(ctx context.Context, w Webhook) (string, error) {
	body := bytes.Replace(w.body(nil), []byte(`"request":{`), []byte(`"request":{"fieldOfTheFuture":{"a":[1,null]},`), 1)
	a, err := w.post(ctx, bytes.NewReader(body), nil)
	if err != nil {
		return "", err
	}
	_, err = a.response()
	return "", err
}

// notAllowed is an error if an answer allows. It says how the webhook refused.
func notAllowed(a answer) (string, error) {
	response, err := a.response()
	switch {
	case errors.Is(err, errStatus):
		return fmt.Sprintf("HTTP %d: the failure policy decides", a.status), nil
	case err != nil:
		return "no response: the failure policy decides", nil
	case response.Allowed:
		return "", errors.New("the webhook allows it")
	}
	return "refused, whatever the failure policy", nil
}

func (w Webhook) refusesBody(ctx context.Context, name string, body []byte) (string, error) {
	a, err := w.post(ctx, bytes.NewReader(body), nil)
	if err != nil {
		return "connection closed: the failure policy decides", w.decides(ctx)
	}
	how, err := notAllowed(a)
	if err != nil {
		return "", fmt.Errorf("%s: %w", name, err)
	}
	return how, w.decides(ctx)
}

func refusesMalformed(ctx context.Context, w Webhook) (observed string, err error) {
	good := w.body(nil)
	for name, body := range map[string][]byte{
		"an empty body": nil, "no JSON": []byte("hello"), "half a review": good[:len(good)/2],
		"no request": []byte(`{"kind":"AdmissionReview","apiVersion":"admission.k8s.io/v1"}`),
		"deep JSON":  []byte(strings.Repeat(`{"a":`, 20_000)),
	} {
		if observed, err = w.refusesBody(ctx, name, body); err != nil {
			return "", err
		}
	}
	return observed, nil
}

func refusesWrongKind(ctx context.Context, w Webhook) (string, error) {
	return w.refusesBody(ctx, "a kind that does not exist", w.body(func(r *admissionv1.AdmissionRequest) {
		r.Kind = metav1.GroupVersionKind{Group: "conformance.example", Version: "v1", Kind: "Other"}
		r.Object.Raw = []byte(`{"apiVersion":"conformance.example/v1","kind":"Other","metadata":{"name":"a"}}`)
		r.OldObject.Raw = nil
	}))
}

func refusesDuplicates(ctx context.Context, w Webhook) (string, error) {
	body := bytes.Replace(w.body(nil), []byte(`"request":{`), []byte(`"request":{"uid":"first",`), 1)
	a, err := w.post(ctx, bytes.NewReader(body), nil)
	if err != nil {
		return "", err
	}
	response, err := a.response()
	switch {
	case err != nil:
		return "refused", w.decides(ctx)
	case response.Allowed && response.UID != w.Request.UID:
		return "", fmt.Errorf("uid %q of two was used, and not the last one, which the API server means", response.UID)
	}
	return "the last of two fields counts", nil
}

// tooLarge is above what the API server accepts from its own clients (3 MiB), twice for an update.
const tooLarge = 12 << 20

func limitsSize(ctx context.Context, w Webhook) (string, error) {
	filler := strings.Repeat("x", tooLarge)
	body := bytes.Replace(w.body(nil), []byte(`"request":{`), []byte(`"filler":"`+filler+`","request":{`), 1)
	a, err := w.post(ctx, bytes.NewReader(body), nil)
	if err != nil {
		return "connection closed", w.decides(ctx)
	}
	how, err := notAllowed(a)
	if err != nil {
		return "", fmt.Errorf("a body of %d MiB: %w", tooLarge>>20, err)
	}
	return how, w.decides(ctx)
}

func survivesGzip(ctx context.Context, w Webhook) (string, error) {
	var packed bytes.Buffer
	zip := gzip.NewWriter(&packed)
	if _, err := zip.Write(w.body(nil)); err != nil {
		return "", err
	}
	if err := zip.Close(); err != nil {
		return "", err
	}
	a, err := w.post(ctx, &packed, map[string]string{"Content-Encoding": "gzip"})
	if err != nil {
		return "connection closed", w.decides(ctx)
	}
	if a.status == http.StatusOK {
		if _, err := a.response(); err != nil {
			return "", err
		}
		return "answered", w.decides(ctx)
	}
	return fmt.Sprintf("HTTP %d", a.status), w.decides(ctx)
}

func servesPostOnly(ctx context.Context, w Webhook) (string, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, w.URL, nil)
	if err != nil {
		return "", err
	}
	response, err := w.Client.Do(request)
	if err != nil {
		return "", err
	}
	defer response.Body.Close()
	text, err := io.ReadAll(io.LimitReader(response.Body, 1<<20))
	if err != nil {
		return "", err
	}
	return notAllowed(answer{status: response.StatusCode, body: text})
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

func servesBesideSlowBody(ctx context.Context, w Webhook) (string, error) {
	const slow = 50
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	closed := make(chan struct{})
	body := w.body(nil)
	var senders, sent sync.WaitGroup
	sent.Add(slow)
	for range slow {
		once := sync.OnceFunc(sent.Done)
		senders.Go(func() {
			defer once() // also if the webhook takes no more connections
			_, _ = w.post(ctx, slowBody{bytes.NewReader(body[:len(body)/2]), once, closed}, nil)
		})
	}
	sent.Wait()
	err := w.decides(ctx)
	close(closed)
	cancel()
	senders.Wait()
	return fmt.Sprintf("beside %d slow ones", slow), err
}

func answersManyAtOnce(ctx context.Context, w Webhook) (string, error) {
	const many = 100
	errs := make([]error, many)
	var senders sync.WaitGroup
	for n := range many {
		senders.Go(func() {
			response, err := w.ask(ctx, func(r *admissionv1.AdmissionRequest) { r.UID = uid(n) })
			if err == nil && response.UID != uid(n) {
				err = fmt.Errorf("request %s got the answer of %s", uid(n), response.UID)
			}
			errs[n] = err
		})
	}
	senders.Wait()
	a, err := w.post(ctx, bytes.NewReader(w.body(nil)), nil)
	return "over " + a.protocol, errors.Join(append(errs, err)...)
}

func survivesCancelled(ctx context.Context, w Webhook) (string, error) {
	const many = 100
	var senders sync.WaitGroup
	for n := range many {
		senders.Go(func() {
			short, cancel := context.WithTimeout(ctx, time.Duration(n%10)*time.Millisecond)
			defer cancel()
			_, _ = w.ask(short, nil)
		})
	}
	senders.Wait()
	return "", w.decides(ctx)
}
