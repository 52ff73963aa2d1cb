package admission

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"runtime/debug"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/client-go/rest"

	"github.com/fairlead-io/fairlead/bench/sample"
	"github.com/fairlead-io/fairlead/internal/testkit/must"
	"github.com/fairlead-io/fairlead/internal/testkit/reviews"
	"github.com/fairlead-io/fairlead/mutators"
)

func send(handler http.Handler, body io.Reader) *httptest.ResponseRecorder {
	request := httptest.NewRequest(http.MethodPost, "/pods", body)
	request.Header.Set("Content-Type", "application/json")
	response := httptest.NewRecorder()
	handler.ServeHTTP(response, request)
	return response
}

// unread fails the test when a refused body is read.
type unread struct{ *testing.T }

func (u unread) Read([]byte) (int, error) {
	u.Error("the body of a refused review was read")
	return 0, io.EOF
}

// use takes bytes of a limit until release.
func use(t *testing.T, l *Limit, n int64) (release func()) {
	t.Helper()
	must.True(t, l.memory.TryAcquire(n), "%d bytes are not free", n)
	return func() { l.memory.Release(n) }
}

func checkReleased(t *testing.T, l *Limit) { t.Helper(); use(t, l, memory)() }

// An API server works on 600 requests at a time.
func TestLimitFitsAllReviewsOfAPIServer(t *testing.T) {
	review, err := sample.ClientPodReview(12<<10, nil)
	must.Do(t, err)
	limit, depth := NewLimit(), 0
	var handler http.Handler
	handler = podHandler(limit, func(context.Context, *Request[mutators.ClientPod]) Decision {
		if depth++; depth < 600 {
			response := send(handler, bytes.NewReader(review))
			must.True(t, response.Code == http.StatusOK, "got %d %s", response.Code, response.Body)
		}
		return Decision{}
	})
	send(handler, bytes.NewReader(review))
	must.Equal(t, depth, 600, "reviews in work at once")
	checkReleased(t, limit)
}

func TestReviewsBeyondTheMemoryAreRefusedUnread(t *testing.T) {
	limit := NewLimit()
	release := use(t, limit, memory-MaxBody)
	response := send(podHandler(limit, pass), io.MultiReader(unread{t})) // of unknown length: counts in full
	want := "the reviews in work take all of their memory: try again in a second\n"
	must.True(t, response.Code == http.StatusTooManyRequests && response.Body.String() == want && response.Header().Get("Retry-After") == "1", "got %d %s", response.Code, response.Body)
	release()
	checkReleased(t, limit)
}

func TestRefusedReviewsReleaseMemory(t *testing.T) {
	limit := NewLimit()
	handler := podHandler(limit, pass)
	for body, want := range map[string]int{
		"": 400, "{}": 400, podReview("null"): 400,
		podReview(`"` + strings.Repeat("x", MaxBody) + `"`): 413,
		strings.Repeat("{},", 200_000):                      413,
	} {
		response := send(handler, strings.NewReader(body))
		must.Check(t, response.Code == want, "%.20s: got %d, want %d", body, response.Code, want)
	}
	checkReleased(t, limit)
}

// A refusal delays a review, as long as the API server's client tries again by itself.
func TestAPIServersClientRetriesRefusedReview(t *testing.T) {
	limit := NewLimit()
	handler := podHandler(limit, pass)
	release := use(t, limit, memory)
	statuses := make(chan int, 16)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		recorder := httptest.NewRecorder()
		handler.ServeHTTP(recorder, r)
		if statuses <- recorder.Code; recorder.Code == http.StatusTooManyRequests {
			release()
		}
		for name, values := range recorder.Header() {
			w.Header()[name] = values
		}
		w.WriteHeader(recorder.Code)
		_, _ = w.Write(recorder.Body.Bytes())
	}))
	defer server.Close()
	// As in k8s.io/apiserver/pkg/util/webhook/client.go.
	client, err := rest.UnversionedRESTClientFor(&rest.Config{Host: server.URL, QPS: -1, ContentConfig: rest.ContentConfig{
		ContentType: runtime.ContentTypeJSON, NegotiatedSerializer: serializer.NewCodecFactory(runtime.NewScheme()).WithoutConversion(),
	}})
	must.Do(t, err)
	answer, err := client.Post().SetHeader("Content-Type", runtime.ContentTypeJSON).Body([]byte(podReview("{}"))).Do(t.Context()).Raw()
	must.Do(t, err)
	got := fmt.Sprint(<-statuses, <-statuses)
	must.Check(t, got == "429 200" && strings.Contains(string(answer), `"allowed":`), "got %s, %s", got, answer)
}

func TestLargeBuffersAreNotKept(t *testing.T) {
	defer debug.SetGCPercent(debug.SetGCPercent(-1)) // it empties the pool
	reviews.Ask(t, podHandler(NewLimit(), pass), "/pods", podReview(`{"metadata":{"name":"`+strings.Repeat("x", 1<<20)+`"}}`))
	for range 100 { // more than one review leaves
		kept := bodies.Get().(*bytes.Buffer)
		must.True(t, kept.Cap() <= 2*pooledBody, "a buffer of %d bytes is kept", kept.Cap())
	}
}
