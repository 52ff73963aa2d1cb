package frontend

import (
	"context"
	"net/netip"
	"testing"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/fairlead-io/fairlead/internal/nfs/publish"
	"github.com/fairlead-io/fairlead/internal/reads"
	"github.com/fairlead-io/fairlead/internal/testkit"
	"github.com/fairlead-io/fairlead/internal/testkit/fakeapi"
)

var (
	one = netip.MustParseAddrPort("10.0.0.1:2049")
	two = netip.MustParseAddrPort("10.0.0.2:12049")
)

type fixture struct {
	*testkit.Bench
	w    *Writer
	dead Dead
	// shown are the sets of addresses that slices named, one after the other.
	shown [][]string
}

func newFixture(t *testing.T) *fixture {
	t.Helper()
	f := &fixture{Bench: testkit.NewBench(t, fakeapi.New(testkit.Value[*runtime.Scheme](t)(reads.NewScheme()), nil))}
	f.Client.After = func(write fakeapi.Write) error {
		if s, ok := write.Object.(*discoveryv1.EndpointSlice); ok && write.Verb != "delete" {
			list := []string{}
			for _, a := range published(s) {
				list = append(list, a.String())
			}
			f.shown = append(f.shown, list)
		}
		return nil
	}
	f.w = &Writer{Client: f.Client, Live: f.API, Log: f.Log}
	return f
}

// publishedOne is a fixture whose frontend leads to server one, and its ClusterIP.
func publishedOne(t *testing.T) (*fixture, string) {
	t.Helper()
	f := newFixture(t)
	return f, f.sync(stable("", one)).ClusterIP.String()
}

// stable is the frontend of NFSService pool, as status has it.
func stable(address string, backend netip.AddrPort) publish.Frontend {
	f := publish.Frontend{
		Namespace: "storage", Name: "pool", Service: "pool", Slot: -1, Backend: backend, Port: 2049,
		Owner: metav1.OwnerReference{APIVersion: "fairlead.io/v1alpha1", Kind: "NFSService", Name: "pool", UID: "owner"},
	}
	if address != "" {
		f.ClusterIP = netip.MustParseAddr(address)
	}
	return f
}

func (f *fixture) sync(of publish.Frontend) Result {
	f.Helper()
	return testkit.Value[Result](f)(f.w.Sync(context.Background(), of, f.dead))
}

func (f *fixture) service() *corev1.Service {
	f.Helper()
	return testkit.Get[corev1.Service](f, f.API, "storage", "pool")
}

func (f *fixture) slice() *discoveryv1.EndpointSlice {
	f.Helper()
	return testkit.Get[discoveryv1.EndpointSlice](f, f.API, "storage", "pool-fairlead-ipv4")
}

// named are the addresses in all slices of the Service.
func (f *fixture) named() []string { f.Helper(); return testkit.Published(f, f.API, "storage", "pool") }
