package webhook

import (
	"context"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	jsonv2 "github.com/go-json-experiment/json"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"

	"github.com/fairlead-io/fairlead/internal/settings/rollout"
	"github.com/fairlead-io/fairlead/internal/testkit/must"
	"github.com/fairlead-io/fairlead/internal/testkit/reviews"
	"github.com/fairlead-io/fairlead/webhook/registration"
)

func TestPanicIsAnsweredAndServerKeepsServing(t *testing.T) {
	calls := 0
	h := newRig(t, fakeClient(t), func(p *Longhorn) {
		p.Record = func(context.Context) (rollout.Record, error) {
			if calls++; calls == 1 {
				panic("a bug")
			}
			return rollout.Record{Clients: storageNet}, nil
		}
	})
	status, message := h.post(clientPodsPath, podReview("{}"))
	must.True(t, status == http.StatusInternalServerError && message == "internal error, see Fairlead's log\n" && h.panics.Load() == 1,
		"got %d %q, %d panics logged", status, message, h.panics.Load())
	response := h.ask(t, clientPodsPath, podReview("{}"))
	must.True(t, response.Patch != nil, "then: %+v", response)
}

func TestEveryEntryIsServedAndNothingElse(t *testing.T) {
	byPath := reviewsOfEveryPath()
	h := newRig(t, fakeClient(t, onNetwork()...))
	mutating, validating := registration.Configurations(allEntries())
	calls := map[string]admissionregistrationv1.WebhookClientConfig{}
	for _, w := range mutating.Webhooks {
		calls[w.Name] = w.ClientConfig
	}
	for _, w := range validating.Webhooks {
		calls[w.Name] = w.ClientConfig
	}
	for name, call := range calls {
		service := call.Service
		must.True(t, service != nil && service.Namespace == registration.Namespace && service.Name == registration.ServiceName && service.Path != nil,
			"%s calls %+v", name, call)
		review, ok := byPath[*service.Path]
		if !ok {
			t.Errorf("%s calls %s, which no test knows", name, *service.Path)
			continue
		}
		status, body := h.post(*service.Path, review)
		must.Check(t, status == http.StatusOK, "%s: %s answers %d %s", name, *service.Path, status, body)
		delete(byPath, *service.Path)
	}
	for path := range byPath {
		t.Errorf("%s is served and not registered", path)
	}
}

// A rule that shapes objects is registered for no deletion. A deletion must not make it panic.
func TestDeletionsDoNotPanic(t *testing.T) {
	for path, kind := range map[string]string{
		clientPodsPath: reviews.Pod, serverPodsPath: reviews.Pod, servicesPath: reviews.Service,
		clientTemplatePath: reviews.DaemonSet, shareManagersPath: reviews.ShareManager,
		settingStatusPath: reviews.SystemSetting, settingsPath: reviews.SystemSetting, registration.NetworksPath: reviews.Network,
	} {
		h := newRig(t, fakeClient(t))
		status, message := h.post(path, reviews.Of(kind, `"operation":"DELETE","name":"x","namespace":"longhorn-system"`))
		must.Check(t, h.panics.Load() == 0, "%s: panic: %d %s", path, status, message)
	}
}

func TestOtherMethodsAndPathsAreNotServed(t *testing.T) {
	h := newRig(t, fakeClient(t))
	status, _ := h.post("/mutate/rook-ceph/client-pods", podReview("{}"))
	must.Check(t, status == http.StatusNotFound, "unknown storage system: got %d", status)
	response := httptest.NewRecorder()
	h.ServeHTTP(response, httptest.NewRequest(http.MethodGet, clientPodsPath, nil))
	must.Equal(t, response.Code, http.StatusMethodNotAllowed, "GET")
}

func FuzzReview(f *testing.F) {
	byPath := reviewsOfEveryPath()
	paths := slices.Sorted(maps.Keys(byPath))
	for _, path := range paths {
		review := byPath[path]
		f.Add(path, review)
		f.Add(path, strings.Replace(review, "CREATE", "DELETE", 1))
	}
	for _, body := range []string{
		"", "null", "{}", "[]", podReview("null"), podReview(`{"metadata":{"annotations":{"k8s.v1.cni.cncf.io/networks":"x@lhnet1"}}}`),
		podReview(`{"metadata":{"annotations":{"k8s.v1.cni.cncf.io/networks":"[{\"name\":\"x\"}]"}}}`), reviews.Of(reviews.Pod, `"operation":"DELETE"`),
		settingReview(reviews.Setting, "DELETE", "storage-network", "null"), settingReview(reviews.Setting, "UPDATE", "storage-network", `{"value":null}`),
		reviews.Of(reviews.ShareManager, `"operation":"UPDATE","object":{"status":{"endpoint":"nfs://None/"}}`),
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
		must.True(t, h.panics.Load() <= panics, "%s panics", path)
		switch status {
		case http.StatusBadRequest, http.StatusRequestEntityTooLarge, http.StatusUnsupportedMediaType, http.StatusInternalServerError:
			return
		case http.StatusOK:
		default:
			t.Fatalf("status %d: %s", status, answered)
		}
		var asked struct {
			Request *struct {
				UID string `json:"uid"`
			} `json:"request"`
		}
		err := jsonv2.Unmarshal([]byte(body), &asked)
		must.True(t, err == nil && asked.Request != nil, "answered what can't be read: %v", err)
		response := reviews.Answer(t, answered)
		must.True(t, string(response.UID) == asked.Request.UID, "got uid %q, want %q", response.UID, asked.Request.UID)
	})
}
