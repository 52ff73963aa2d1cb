//lint:file-ignore SA1019 the readers of the deprecated API are served too

package frontend

import (
	"context"
	"log/slog"
	"net/netip"
	"testing"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fairlead-io/fairlead/internal/cluster"
	"github.com/fairlead-io/fairlead/internal/nfs/publish"
	"github.com/fairlead-io/fairlead/internal/testkit/fakeapi"
)

var (
	one = netip.MustParseAddrPort("10.0.0.1:2049")
	two = netip.MustParseAddrPort("10.0.0.2:12049")
)

type fixture struct {
	*testing.T
	*fakeapi.API
	client *fakeapi.Client
	w      *Writer
	// shown are the sets of addresses that slices named, one after the other.
	shown [][]string
}

func newFixture(t *testing.T) *fixture {
	t.Helper()
	scheme, err := cluster.NewScheme()
	if err != nil {
		t.Fatal(err)
	}
	f := &fixture{T: t, API: fakeapi.New(scheme, nil)}
	f.client = f.API.Client()
	f.client.After = func(write fakeapi.Write) error {
		if s, ok := write.Object.(*discoveryv1.EndpointSlice); ok && write.Verb != "delete" {
			f.shown = append(f.shown, texts(s))
		}
		return nil
	}
	f.w = &Writer{Client: f.client, Live: f.API, Classic: true, Log: slog.New(slog.DiscardHandler)}
	return f
}

// stable is the frontend of NFSService pool, as status has it.
func stable(address string, backend netip.AddrPort) Frontend {
	f := Frontend{
		Frontend: publish.Frontend{Name: "pool", Slot: -1, Backend: backend}, Namespace: "storage", Service: "pool", Port: 2049,
		Owner: metav1.OwnerReference{APIVersion: "fairlead.io/v1alpha1", Kind: "NFSService", Name: "pool", UID: "owner"},
	}
	if address != "" {
		f.ClusterIP = netip.MustParseAddr(address)
	}
	return f
}

func (f *fixture) sync(of Frontend) Result {
	f.Helper()
	result, err := f.w.Sync(f.Context(), of)
	if err != nil {
		f.Fatal(err)
	}
	return result
}

func (f *fixture) must(err error) {
	f.Helper()
	if err != nil {
		f.Fatal(err)
	}
}

func (f *fixture) service() *corev1.Service {
	f.Helper()
	var s corev1.Service
	f.must(f.Get(context.Background(), client.ObjectKey{Namespace: "storage", Name: "pool"}, &s))
	return &s
}

// named are the addresses in all slices of the Service.
func (f *fixture) named() []string {
	f.Helper()
	var list discoveryv1.EndpointSliceList
	f.must(f.List(context.Background(), &list, client.MatchingLabels{discoveryv1.LabelServiceName: "pool"}))
	var all []string
	for i := range list.Items {
		all = append(all, texts(&list.Items[i])...)
	}
	return all
}

func (f *fixture) classic() *corev1.Endpoints {
	f.Helper()
	var e corev1.Endpoints
	err := f.Get(context.Background(), client.ObjectKey{Namespace: "storage", Name: "pool"}, &e)
	if client.IgnoreNotFound(err) != nil {
		f.Fatal(err)
	}
	if err != nil {
		return nil
	}
	return &e
}

func texts(s *discoveryv1.EndpointSlice) []string {
	list := []string{}
	for _, a := range published(s) {
		list = append(list, a.String())
	}
	return list
}

type fakeapiWrite = fakeapi.Write

func keyFor(name string) client.ObjectKey { return client.ObjectKey{Namespace: "storage", Name: name} }
