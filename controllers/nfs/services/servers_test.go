package services

import (
	"testing"
	"time"

	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fairlead-io/fairlead/internal/nfs/publish"
	"github.com/fairlead-io/fairlead/internal/reads"
	"github.com/fairlead-io/fairlead/internal/testkit/fakeapi"
	"github.com/fairlead-io/fairlead/internal/testkit/must"
)

// listing is a client without streaming lists: the fake API server has none.
type listing struct{ client.WithWatch }

func (listing) IsWatchListSemanticsUnSupported() bool { return true }

func TestOnlySlicesOfTheNamedServiceAreWatched(t *testing.T) {
	scheme, err := reads.NewScheme()
	must.Do(t, err)
	api := fakeapi.New(scheme, nil)
	changed := make(chan types.NamespacedName, 100)
	w := &Watches{Client: listing{api}, changed: func(key types.NamespacedName) { changed <- key }}
	slice := func(name, service string, labels ...string) {
		s := &discoveryv1.EndpointSlice{ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: name, Labels: map[string]string{discoveryv1.LabelServiceName: service}}, AddressType: discoveryv1.AddressTypeIPv4}
		for _, l := range labels {
			s.Labels[l] = "x"
		}
		must.Do(t, api.Create(t.Context(), s))
	}
	wait := func(server string, want int) {
		t.Helper()
		deadline := time.After(10 * time.Second)
		for {
			if list, ready := w.Slices(key, server); ready && len(list) == want {
				return
			}
			select {
			case <-changed:
			case <-deadline:
				list, ready := w.Slices(key, server)
				t.Fatalf("%d slices, ready %v, want %d", len(list), ready, want)
			}
		}
	}
	slice("a", "servers")
	slice("b", "others")
	slice("c", "servers", publish.ServiceLabel) // one that Fairlead publishes
	wait("servers", 1)
	slice("d", "servers")
	wait("servers", 2)
	wait("others", 1)
	wait("", 0)
}
