package webhook

import (
	"context"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	jsonv2 "github.com/go-json-experiment/json"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/fairlead-io/fairlead/internal/config"
	"github.com/fairlead-io/fairlead/internal/settings/rollout"
)

func TestAPanicIsAnsweredAndTheServerLives(t *testing.T) {
	calls := 0
	h := newRig(t, fakeClient(t), func(_ *config.Configuration, p *Profile) {
		p.Record = func() rollout.Record {
			if calls++; calls == 1 {
				panic("a bug")
			}
			return rollout.Record{Clients: storageNet}
		}
	})
	status, message := h.post(clientPodsPath, podReview("{}"))
	if status != http.StatusInternalServerError || message != "internal error, see Fairlead's log\n" || h.panics.Load() != 1 {
		t.Fatalf("got %d %q, %d panics logged", status, message, h.panics.Load())
	}
	if response := h.ask(t, clientPodsPath, podReview("{}")); response.Patch == nil {
		t.Fatalf("then: %+v", response)
	}
}

func TestTheDeadlineReachesTheRule(t *testing.T) {
	for query, want := range map[string]time.Duration{
		"?timeout=5s":    4500 * time.Millisecond,
		"?timeout=500ms": 450 * time.Millisecond,
		"?timeout=30s":   27 * time.Second,
		"":               9 * time.Second,
		"?timeout=":      9 * time.Second,
		"?timeout=soon":  9 * time.Second,
		"?timeout=0s":    9 * time.Second,
		"?timeout=-1s":   9 * time.Second,
		"?timeout=1h":    9 * time.Second,
	} {
		t.Run(query, func(t *testing.T) {
			var left time.Duration
			live := interceptor.NewClient(fakeClient(t), interceptor.Funcs{
				Get: func(ctx context.Context, _ client.WithWatch, _ client.ObjectKey, _ client.Object, _ ...client.GetOption) error {
					deadline, _ := ctx.Deadline()
					left = time.Until(deadline)
					return errDown
				},
			})
			newRig(t, live).post("/mutate/longhorn/sharemanagers"+query, reviewOf(shareKind, `"operation":"UPDATE","object":{"metadata":{"name":"pvc-a"}}`))
			if left > want || left < want-2*time.Second || left <= 0 {
				t.Fatalf("got %s, want a little less than %s", left, want)
			}
		})
	}
}

func FuzzReview(f *testing.F) {
	reviews := reviewsOfEveryPath()
	paths := slices.Sorted(maps.Keys(reviews))
	for _, path := range paths {
		review := reviews[path]
		f.Add(path, review)
		f.Add(path, strings.Replace(review, "CREATE", "DELETE", 1))
	}
	for _, body := range []string{
		"", "null", "{}", "[]", podReview("null"), podReview(`{"metadata":{"annotations":{"k8s.v1.cni.cncf.io/networks":"x@lhnet1"}}}`),
		podReview(`{"metadata":{"annotations":{"k8s.v1.cni.cncf.io/networks":"[{\"name\":\"x\"}]"}}}`), reviewOf(podKind, `"operation":"DELETE"`),
		settingReview(ownKind, "DELETE", "storage-network", "null"), settingReview(ownKind, "UPDATE", "storage-network", `{"value":null}`),
		reviewOf(shareKind, `"operation":"UPDATE","object":{"status":{"endpoint":"nfs://None/"}}`),
	} {
		for _, path := range paths {
			f.Add(path, body)
		}
	}
	h := newRig(f, fakeClient(f, onNetwork()...))
	f.Fuzz(func(t *testing.T, path, body string) {
		if !slices.Contains(paths, path) {
			return
		}
		panics := h.panics.Load()
		status, answered := h.post(path, body)
		if h.panics.Load() > panics {
			t.Fatalf("%s panics", path)
		}
		switch status {
		case http.StatusBadRequest, http.StatusRequestEntityTooLarge, http.StatusUnsupportedMediaType, http.StatusInternalServerError:
			return
		case http.StatusOK:
		default:
			t.Fatalf("status %d: %s", status, answered)
		}
		var asked review[struct{}]
		if err := jsonv2.Unmarshal([]byte(body), &asked); err != nil || asked.Request == nil {
			t.Fatalf("answered what can't be read: %v", err)
		}
		if response := answer(t, answered); string(response.UID) != asked.Request.UID {
			t.Fatalf("got uid %q, want %q", response.UID, asked.Request.UID)
		}
	})
}
