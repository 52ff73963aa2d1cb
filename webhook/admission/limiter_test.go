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
	"sync"
	"testing"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/client-go/rest"

	"github.com/fairlead-io/fairlead/bench/sample"
	"github.com/fairlead-io/fairlead/internal/limits"
	"github.com/fairlead-io/fairlead/internal/testkit/must"
	"github.com/fairlead-io/fairlead/internal/testkit/reviews"
	"github.com/fairlead-io/fairlead/mutators"
)

func sendFrom(handler http.Handler, source string, body io.Reader) *httptest.ResponseRecorder {
	request := httptest.NewRequest(http.MethodPost, "/pods", body)
	request.RemoteAddr = source + ":1234"
	request.Header.Set("Content-Type", "application/json")
	response := httptest.NewRecorder()
	handler.ServeHTTP(response, request)
	return response
}

func sampleReview(t *testing.T) string {
	t.Helper()
	review, err := sample.ClientPodReview(12<<10, nil)
	must.Do(t, err)
	return string(review)
}

// unread fails the test when a refused body is read.
type unread struct{ *testing.T }

func (u unread) Read([]byte) (int, error) {
	u.Error("the body of a refused review was read")
	return 0, io.EOF
}

func checkReleased(t *testing.T, l *Limiter) {
	t.Helper()
	must.Check(t, l.requests.Used() == 0 && l.memory.Used() == 0, "%d requests and %d bytes are not released", l.requests.Used(), l.memory.Used())
}

func TestReviewsOfOneSourceAreBounded(t *testing.T) {
	limiter, entered, release := NewLimiter(), make(chan struct{}), make(chan struct{})
	handler := podHandler(limiter, func(context.Context, *Request[mutators.ClientPod]) Decision {
		entered <- struct{}{}
		<-release
		return Decision{}
	})
	review := sampleReview(t)
	var all sync.WaitGroup
	send := func(source string) {
		all.Go(func() {
			if response := sendFrom(handler, source, strings.NewReader(review)); response.Code != http.StatusOK {
				t.Errorf("%s: got %d %s", source, response.Code, response.Body)
				entered <- struct{}{}
			}
		})
	}
	for range requestsOfSource {
		send("192.0.2.1")
		<-entered // one by one: decoding all at once takes more memory than one source may
	}
	response := sendFrom(handler, "192.0.2.1", unread{t})
	if want := "more than 600 reviews at once from 192.0.2.1: try again in a second\n"; response.Code != http.StatusTooManyRequests || response.Body.String() != want || response.Header().Get("Retry-After") != "1" {
		t.Errorf("one more: got %d %s", response.Code, response.Body)
	}
	send("192.0.2.2")
	<-entered
	close(release)
	all.Wait()
	checkReleased(t, limiter)
}

func TestRulesKnowTheAddressThatAsks(t *testing.T) {
	asked := ""
	handler := podHandler(NewLimiter(), func(ctx context.Context, _ *Request[mutators.ClientPod]) Decision {
		asked = limits.SourceOf(ctx)
		return Decision{}
	})
	sendFrom(handler, "192.0.2.7", strings.NewReader(sampleReview(t)))
	must.Equal(t, asked, "192.0.2.7")
}

func TestReviewInWorkHoldsItsDecodedSize(t *testing.T) {
	annotations := hostileReviews()["annotations"].review(20_000)
	for name, test := range map[string]struct {
		body        string
		least, most int
	}{
		"pod":              {sampleReview(t), 0, 4 << 10},
		"many annotations": {annotations, 20_000 * entryCost, 20_000 * 2 * entryCost},
	} {
		limiter := NewLimiter()
		handler := podHandler(limiter, func(context.Context, *Request[mutators.ClientPod]) Decision {
			n := int(limiter.memory.Used()) - requestCost - len(test.body)
			must.Check(t, n >= test.least && n <= test.most, "%s: holds %d bytes beside the body, want %d to %d", name, n, test.least, test.most)
			return Decision{}
		})
		response := sendFrom(handler, "192.0.2.1", strings.NewReader(test.body))
		must.Check(t, response.Code == http.StatusOK, "%s: got %d %s", name, response.Code, response.Body)
	}
}

func TestRefusedReviewsReleaseMemory(t *testing.T) {
	limiter := NewLimiter()
	handler := podHandler(limiter, pass)
	for body, want := range map[string]int{
		"": 400, "{}": 400, podReview("null"): 400,
		podReview(`"` + strings.Repeat("x", MaxBody) + `"`): 413,
		strings.Repeat("{},", 200_000):                      413,
	} {
		response := sendFrom(handler, "192.0.2.1", strings.NewReader(body))
		must.Check(t, response.Code == want, "%.20s: got %d, want %d", body, response.Code, want)
	}
	checkReleased(t, limiter)
}

func TestBodiesOfUnknownLengthCountInFull(t *testing.T) {
	limiter := NewLimiter()
	limiter.memory.Take("192.0.2.1", memoryOfSource-MaxBody)
	response := sendFrom(podHandler(limiter, pass), "192.0.2.1", io.MultiReader(unread{t}))
	must.Check(t, response.Code == http.StatusTooManyRequests, "got %d %s", response.Code, response.Body)
	n := limiter.requests.Used()
	must.Check(t, n == 0, "%d requests are not released", n)
}

func TestLargeBuffersAreNotKept(t *testing.T) {
	defer debug.SetGCPercent(debug.SetGCPercent(-1)) // it empties the pool
	reviews.Ask(t, podHandler(NewLimiter(), pass), "/pods", podReview(`{"metadata":{"name":"`+strings.Repeat("x", 1<<20)+`"}}`))
	for range 100 { // more than one review leaves
		kept := bodies.Get().(*bytes.Buffer)
		must.True(t, kept.Cap() <= 2*pooledBody, "a buffer of %d bytes is kept", kept.Cap())
	}
}

// A refusal delays a review, as long as the API server's client tries again by itself.
func TestAPIServersClientRetriesRefusedReview(t *testing.T) {
	limiter := NewLimiter()
	handler := podHandler(limiter, pass)
	var source string
	statuses := make(chan int, 16)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if source == "" {
			source = limits.Source(r.RemoteAddr)
			limiter.memory.Take(source, memoryOfSource)
		} else {
			limiter.memory.Give(source, memoryOfSource)
		}
		recorder := httptest.NewRecorder()
		handler.ServeHTTP(recorder, r)
		statuses <- recorder.Code
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
