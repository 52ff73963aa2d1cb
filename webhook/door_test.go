package webhook

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
	"github.com/fairlead-io/fairlead/mutators"
)

// heldRule decides nothing before it is released.
func heldRule(entered chan<- struct{}, release <-chan struct{}) rule[mutators.ClientPod] {
	rule := rule[mutators.ClientPod]{name: "held", kinds: (Profile{}).clientPods().kinds}
	rule.decide = func(context.Context, *Request[mutators.ClientPod]) (Decision, error) {
		entered <- struct{}{}
		<-release
		return Decision{}, nil
	}
	return rule
}

func askFrom(handler http.Handler, source string, body io.Reader) *httptest.ResponseRecorder {
	request := httptest.NewRequest(http.MethodPost, "/held", body)
	request.RemoteAddr = source + ":1234"
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

func TestReviewsOfOneSourceAreBounded(t *testing.T) {
	d := newDoor()
	entered, release := make(chan struct{}), make(chan struct{})
	handler := handle(heldRule(entered, release), d, newTestMetrics(), discard())
	sized, err := sample.ClientPodReview(12<<10, nil)
	if err != nil {
		t.Fatal(err)
	}
	review := string(sized)
	var all sync.WaitGroup
	for range requestsOfSource {
		all.Go(func() {
			if response := askFrom(handler, "192.0.2.1", strings.NewReader(review)); response.Code != http.StatusOK {
				t.Errorf("got %d %s", response.Code, response.Body)
				entered <- struct{}{}
			}
		})
	}
	for range requestsOfSource {
		<-entered
	}
	response := askFrom(handler, "192.0.2.1", unread{t})
	if want := "more than 600 reviews at once from 192.0.2.1: try again in a second\n"; response.Code != http.StatusTooManyRequests || response.Body.String() != want || response.Header().Get("Retry-After") != "1" {
		t.Errorf("one more: got %d %s", response.Code, response.Body)
	}
	all.Go(func() {
		if response := askFrom(handler, "192.0.2.2", strings.NewReader(review)); response.Code != http.StatusOK {
			t.Errorf("another source: got %d %s", response.Code, response.Body)
		}
	})
	<-entered
	close(release)
	all.Wait()
	if d.requests.Used() != 0 || d.memory.Used() != 0 {
		t.Errorf("%d requests and %d bytes are not given back", d.requests.Used(), d.memory.Used())
	}
}

func TestADecidingReviewHoldsWhatWasDecoded(t *testing.T) {
	many, err := sample.ClientPodReview(12<<10, nil)
	if err != nil {
		t.Fatal(err)
	}
	_, annotations := hostileReviews()["annotations"](20_000)
	for name, test := range map[string]struct {
		body        string
		least, most int
	}{
		"pod":              {string(many), 0, 4 << 10},
		"many annotations": {annotations, 20_000 * entryCost, 20_000 * 2 * entryCost},
	} {
		d := newDoor()
		rule := heldRule(nil, nil)
		rule.decide = func(context.Context, *Request[mutators.ClientPod]) (Decision, error) {
			if n := int(d.memory.Used()) - requestCost - len(test.body); n < test.least || n > test.most {
				t.Errorf("%s: holds %d bytes beside the body, want %d to %d", name, n, test.least, test.most)
			}
			return Decision{}, nil
		}
		if response := askFrom(handle(rule, d, newTestMetrics(), discard()), "192.0.2.1", strings.NewReader(test.body)); response.Code != http.StatusOK {
			t.Errorf("%s: got %d %s", name, response.Code, response.Body)
		}
	}
}

func TestRefusedReviewsGiveBackWhatTheyTook(t *testing.T) {
	d := newDoor()
	handler := handle(heldRule(nil, nil), d, newTestMetrics(), discard())
	for body, want := range map[string]int{
		"": 400, "{}": 400, podReview("null"): 400,
		podReview(`"` + strings.Repeat("x", MaxBody) + `"`): 413,
		strings.Repeat("{},", 200_000):                      413,
	} {
		if response := askFrom(handler, "192.0.2.1", strings.NewReader(body)); response.Code != want {
			t.Errorf("%.20s: got %d, want %d", body, response.Code, want)
		}
	}
	if d.requests.Used() != 0 || d.memory.Used() != 0 {
		t.Errorf("%d requests and %d bytes are not given back", d.requests.Used(), d.memory.Used())
	}
}

func TestBodiesOfUnknownLengthCountInFull(t *testing.T) {
	d := newDoor()
	handler := handle(heldRule(nil, nil), d, newTestMetrics(), discard())
	d.memory.Take("192.0.2.1", memoryOfSource-MaxBody)
	if response := askFrom(handler, "192.0.2.1", io.MultiReader(unread{t})); response.Code != http.StatusTooManyRequests {
		t.Errorf("got %d %s", response.Code, response.Body)
	}
	if n := d.requests.Used(); n != 0 {
		t.Errorf("%d requests are not given back", n)
	}
}

func TestLargeBuffersAreNotKept(t *testing.T) {
	defer debug.SetGCPercent(debug.SetGCPercent(-1)) // it empties the pool
	h := newRig(t, fakeClient(t))
	h.ask(t, clientPodsPath, podReview(`{"metadata":{"name":"`+strings.Repeat("x", 1<<20)+`"}}`))
	for range 100 { // more than one review leaves
		if kept := bodies.Get().(*bytes.Buffer); kept.Cap() > 2*pooledBody {
			t.Fatalf("a buffer of %d bytes is kept", kept.Cap())
		}
	}
}

// A refusal delays a review, as long as the API server's client tries again by itself.
func TestTheAPIServersClientTriesARefusedReviewAgain(t *testing.T) {
	d := newDoor()
	entered, release := make(chan struct{}, 1), make(chan struct{})
	close(release)
	handler := handle(heldRule(entered, release), d, newTestMetrics(), discard())
	var source string
	statuses := make(chan int, 16)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if source == "" {
			source = limits.Source(r.RemoteAddr)
			d.memory.Take(source, memoryOfSource)
		} else {
			d.memory.Give(source, memoryOfSource)
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
	if err != nil {
		t.Fatal(err)
	}
	answer, err := client.Post().SetHeader("Content-Type", runtime.ContentTypeJSON).Body([]byte(podReview("{}"))).Do(t.Context()).Raw()
	if err != nil {
		t.Fatal(err)
	}
	if got := fmt.Sprint(<-statuses, <-statuses); got != "429 200" || !strings.Contains(string(answer), `"allowed":`) {
		t.Errorf("got %s, %s", got, answer)
	}
}

// hostileReviews have many small values where rules decode them.
func hostileReviews() map[string]func(values int) (path, body string) {
	of := func(path, kind, before, after string, value func(int) string) func(int) (string, string) {
		return func(values int) (string, string) {
			list := make([]string, values)
			for i := range list {
				list[i] = value(i)
			}
			return path, reviewOf(kind, `"namespace":"longhorn-system","operation":"CREATE","object":`+before+strings.Join(list, ",")+after)
		}
	}
	empty := func(int) string { return "{}" }
	name := func(i int) string { return fmt.Sprintf(`"%x":""`, i) }
	return map[string]func(int) (string, string){
		"annotations":  of(clientPodsPath, podKind, `{"metadata":{"annotations":{`, `}}}`, name),
		"unread names": of(clientPodsPath, podKind, `{"metadata":{"unread":{`, `}}}`, name),
		"labels":       of("/mutate/longhorn/server-pods", podKind, `{"metadata":{"labels":{`, `}}}`, name),
		"volumes":      of(workloadPodsPath, podKind, `{"spec":{"volumes":[`, `]}}`, empty),
		"taints":       of(nodesPath, nodeKind, `{"spec":{"taints":[`, `]}}`, empty),
		"finalizers":   of(nodeFencesPath, nodeFenceKind, `{"metadata":{"finalizers":[`, `]}}`, func(int) string { return `""` }),
		"backends":     of(nfsServicesPath, nfsServiceKind, `{"spec":{"backends":[`, `]}}`, empty),
		"slots":        of(nfsServicesPath, nfsServiceKind, `{"status":{"slots":[`, `]}}`, empty),
		"health":       of(nfsServicesPath, nfsServiceKind, `{"status":{"backends":[`, `]}}`, empty),
		"conditions":   of(nfsServicesPath, nfsServiceKind, `{"status":{"conditions":[`, `]}}`, empty),
	}
}
