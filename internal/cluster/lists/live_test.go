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

	"github.com/fairlead-io/fairlead/bench/apiserver"
	"github.com/fairlead-io/fairlead/internal/cluster"
	"github.com/fairlead-io/fairlead/internal/cluster/lists"
	"github.com/fairlead-io/fairlead/internal/settings/catalog"
	"github.com/fairlead-io/fairlead/internal/storage/longhorn"
	"github.com/fairlead-io/fairlead/internal/testkit/must"
)

// readers of the same API server: one reads whole lists, one reads pages.
func readers(t *testing.T, handler http.Handler, mapper meta.RESTMapper) (whole, paged *cluster.Reader, live *lists.Live) {
	t.Helper()
	listening := httptest.NewServer(handler)
	t.Cleanup(listening.Close)
	scheme, err := cluster.NewScheme()
	must.Do(t, err)
	c := &rest.Config{Host: listening.URL, QPS: -1}
	connection, err := rest.HTTPClientFor(c)
	must.Do(t, err)
	api, err := client.New(c, client.Options{Scheme: scheme, HTTPClient: connection, Mapper: mapper})
	must.Do(t, err)
	profile := longhorn.Profile()
	live = lists.NewLive(api)
	return cluster.NewReader(profile, api, api), cluster.NewReader(profile, live, live), live
}

func serving(t *testing.T, size apiserver.Size) *apiserver.Server {
	t.Helper()
	scheme, err := cluster.NewScheme()
	must.Do(t, err)
	server, err := apiserver.New(scheme, size)
	must.Do(t, err)
	return server
}

func TestPagedListsEqualWholeLists(t *testing.T) {
	server := serving(t, apiserver.Size{PersistentVolumes: 1100, Volumes: 510, Nodes: 7, Snapshots: 2, Asking: 3})
	whole, paged, _ := readers(t, server, server.Mapper())
	for name, read := range map[string]func(*cluster.Reader) (any, error){
		"facts": func(r *cluster.Reader) (any, error) {
			return r.Facts(t.Context(), cluster.FactsOptions{VolumeNetworks: true})
		},
		"requests":            func(r *cluster.Reader) (any, error) { return r.Requests(t.Context()) },
		"volumes.longhorn.io": func(r *cluster.Reader) (any, error) { return r.Volumes(t.Context()) },
		"uses": func(r *cluster.Reader) (any, error) {
			return r.InstanceManagerUses(t.Context(), catalog.Component{Name: "instance-manager-001", Node: "node-001", Engine: "v1"})
		},
		"a volume": func(r *cluster.Reader) (any, error) { return r.Request(t.Context(), apiserver.VolumeName(1001)) },
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
	server := serving(t, apiserver.Size{PersistentVolumes: 10, Volumes: 10, Nodes: 2, Snapshots: 1})
	_, paged, _ := readers(t, server, server.Mapper())
	whole, err := paged.Facts(t.Context(), cluster.FactsOptions{})
	must.Do(t, err)
	before := len(server.Lists())
	reported, err := paged.Facts(t.Context(), cluster.FactsOptions{AsReported: true})
	if err != nil || !reflect.DeepEqual(reported, whole) {
		t.Errorf("got  %+v, %v\nwant %+v", reported, err, whole)
	}
	for _, list := range server.Lists()[before:] {
		if list.Resource == "engines.longhorn.io" || list.Resource == "replicas.longhorn.io" {
			t.Errorf("%s are read", list.Resource)
		}
	}
	if !slices.ContainsFunc(reported.Components, func(c catalog.Component) bool { return len(c.Uses) > 0 }) {
		t.Error("no instance manager is in use: the comparison proves nothing")
	}
}

// A page that ends early, or is of another kind, must not pass for the end of the list: it would hide volumes.
func TestBrokenPagesAreErrors(t *testing.T) {
	server := serving(t, apiserver.Size{PersistentVolumes: 20, Volumes: 20, Nodes: 1})
	for name, test := range map[string]struct {
		lists []client.ObjectList
		spoil func([]byte) []byte
	}{
		"cut off":       {[]client.ObjectList{&longhorn.VolumeList{}, &corev1.PersistentVolumeList{}}, func(b []byte) []byte { return b[:len(b)-len(b)/3] }},
		"empty":         {[]client.ObjectList{&longhorn.VolumeList{}, &corev1.PersistentVolumeList{}}, func([]byte) []byte { return nil }},
		"not protobuf":  {[]client.ObjectList{&corev1.PersistentVolumeList{}}, func([]byte) []byte { return []byte(`{"items":[]}`) }},
		"not a list":    {[]client.ObjectList{&longhorn.VolumeList{}}, func([]byte) []byte { return []byte(`{"items":{}}`) }},
		"not an object": {[]client.ObjectList{&longhorn.VolumeList{}}, func([]byte) []byte { return []byte(`[]`) }},
	} {
		t.Run(name, func(t *testing.T) {
			spoiled := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				recorded := httptest.NewRecorder()
				server.ServeHTTP(recorded, r)
				w.Header().Set("Content-Type", recorded.Header().Get("Content-Type"))
				_, _ = w.Write(test.spoil(recorded.Body.Bytes()))
			})
			_, _, live := readers(t, spoiled, server.Mapper())
			for _, list := range test.lists {
				if err := live.List(t.Context(), list, client.InNamespace("")); err == nil {
					t.Errorf("%T: no error", list)
				}
			}
		})
	}
}

func TestMissingKindIsNoMatch(t *testing.T) {
	server := serving(t, apiserver.Size{Nodes: 1})
	_, _, live := readers(t, server, meta.NewDefaultRESTMapper(nil))
	if err := live.List(t.Context(), &longhorn.VolumeList{}); !meta.IsNoMatchError(err) {
		t.Errorf("got %v", err)
	}
	_, _, live = readers(t, http.NotFoundHandler(), server.Mapper())
	if err := live.List(t.Context(), &longhorn.VolumeList{}); !lists.NotInstalled(err) {
		t.Errorf("got %v", err)
	}
	if err := live.List(t.Context(), &corev1.PersistentVolumeList{}); err == nil || !strings.Contains(err.Error(), "could not find") {
		t.Errorf("got %v", err)
	}
}
