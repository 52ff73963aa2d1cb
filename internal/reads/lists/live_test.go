package lists_test

import (
	"net/http"
	"net/http/httptest"
	"reflect"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/fairlead-io/fairlead/internal/longhorn"
	"github.com/fairlead-io/fairlead/internal/reads"
	"github.com/fairlead-io/fairlead/internal/reads/lists"
	"github.com/fairlead-io/fairlead/internal/settings/catalog"
	"github.com/fairlead-io/fairlead/internal/testkit/fakeapi"
	"github.com/fairlead-io/fairlead/internal/testkit/must"
	"github.com/fairlead-io/fairlead/internal/testkit/objects"
)

// serving returns an API server that gives lists in pages.
func serving(t *testing.T, stored []client.Object) *fakeapi.Counting {
	t.Helper()
	scheme, err := reads.NewScheme()
	must.Do(t, err)
	return &fakeapi.Counting{WithWatch: fake.NewClientBuilder().WithScheme(scheme).WithObjects(stored...).Build()}
}

func TestPagedListsEqualWholeLists(t *testing.T) {
	must.HaveTime(t)
	api := serving(t, objects.Large(1100, 510, 7, 3))
	live := lists.NewLive(api)
	whole, paged := reads.NewReader(longhorn.DefaultNames(), api, api), reads.NewReader(longhorn.DefaultNames(), live, live)
	for name, read := range map[string]func(*reads.Reader) (any, error){
		"facts": func(r *reads.Reader) (any, error) {
			return r.Facts(t.Context(), reads.FactsOptions{VolumeNetworks: true})
		},
		"requests":            func(r *reads.Reader) (any, error) { return r.Requests(t.Context()) },
		"volumes.longhorn.io": func(r *reads.Reader) (any, error) { return r.Volumes(t.Context()) },
		"uses": func(r *reads.Reader) (any, error) {
			return r.InstanceManagerUses(t.Context(), catalog.Component{Name: "instance-manager-001", Node: "node-001", Engine: "v1"})
		},
		"a volume": func(r *reads.Reader) (any, error) { return r.Request(t.Context(), objects.LargeVolume(1001)) },
	} {
		t.Run(name, func(t *testing.T) {
			want, err := read(whole)
			must.Do(t, err)
			if got, err := read(paged); err != nil || !reflect.DeepEqual(got, want) {
				t.Fatalf("got  %+v, %v\nwant %+v", got, err, want)
			}
		})
	}
	requests, err := paged.Requests(t.Context())
	if err != nil || len(requests.ByVolume) != 3 || len(requests.ClassOf) != 1100 {
		t.Errorf("%d ask and %d have a class, %v; the comparison proves nothing", len(requests.ByVolume), len(requests.ClassOf), err)
	}
}

// Facts as reported differ only by what starts at the moment.
func TestFactsAsReportedReadNoEngines(t *testing.T) {
	api := serving(t, objects.Large(10, 10, 2, 0))
	live := lists.NewLive(api)
	paged := reads.NewReader(longhorn.DefaultNames(), live, live)
	whole, err := paged.Facts(t.Context(), reads.FactsOptions{})
	must.Do(t, err)
	api.Requests()
	reported, err := paged.Facts(t.Context(), reads.FactsOptions{AsReported: true})
	must.Check(t, err == nil && reflect.DeepEqual(reported, whole), "got  %+v, %v\nwant %+v", reported, err, whole)
	for _, request := range api.Requests() {
		must.Check(t, !strings.Contains(request, "Engine") && !strings.Contains(request, "Replica"), "unwanted request: %s", request)
	}
	if !slices.ContainsFunc(reported.Components, func(c catalog.Component) bool { return len(c.Uses) > 0 }) {
		t.Error("no instance manager is in use: the comparison proves nothing")
	}
}

// answering reads live from a server that answers all requests alike. Only the given kinds are known.
func answering(t *testing.T, answer http.HandlerFunc, known ...client.Object) *lists.Live {
	t.Helper()
	listening := httptest.NewServer(answer)
	t.Cleanup(listening.Close)
	scheme, err := reads.NewScheme()
	must.Do(t, err)
	mapper := meta.NewDefaultRESTMapper(nil)
	for _, o := range known {
		kinds, _, err := scheme.ObjectKinds(o)
		must.Do(t, err)
		mapper.Add(kinds[0], meta.RESTScopeNamespace)
	}
	api, err := client.New(&rest.Config{Host: listening.URL}, client.Options{Scheme: scheme, Mapper: mapper})
	must.Do(t, err)
	return lists.NewLive(api)
}

// A page that ends early, or is of another kind, must not pass for the end of the list: it would hide volumes.
func TestBrokenPagesAreErrors(t *testing.T) {
	for name, answer := range map[string]string{
		"cut off": `{"apiVersion":"longhorn.io/v1beta2","kind":"VolumeList","items":[{"metadata":{"name":"a"}},{"metadata":`, "empty": "",
		"not a list": `{"apiVersion":"longhorn.io/v1beta2","kind":"VolumeList","items":{}}`, "not an object": `[]`,
	} {
		t.Run(name, func(t *testing.T) {
			live := answering(t, func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Content-Type", "application/json")
				_, _ = w.Write([]byte(answer))
			}, &longhorn.Volume{})
			must.Check(t, live.List(t.Context(), &longhorn.VolumeList{}, client.InNamespace("")) != nil, "no error")
		})
	}
}

func TestMissingKindIsNoMatch(t *testing.T) {
	if err := answering(t, http.NotFound).List(t.Context(), &longhorn.VolumeList{}); !meta.IsNoMatchError(err) {
		t.Errorf("got %v", err)
	}
	live := answering(t, http.NotFound, &longhorn.Volume{}, &corev1.PersistentVolume{})
	if err := live.List(t.Context(), &longhorn.VolumeList{}); !lists.NotInstalled(err) {
		t.Errorf("got %v", err)
	}
	if err := live.List(t.Context(), &corev1.PersistentVolumeList{}); err == nil || !strings.Contains(err.Error(), "could not find") {
		t.Errorf("got %v", err)
	}
}
