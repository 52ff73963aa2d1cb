package fencingreads

import (
	"context"
	"errors"
	"net/netip"
	"testing"

	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fairlead-io/fairlead/api/v1alpha1"
	"github.com/fairlead-io/fairlead/internal/fence"
	"github.com/fairlead-io/fairlead/internal/testkit/must"
	"github.com/fairlead-io/fairlead/internal/testkit/objects"
)

// Tainting makes the same checks as fencing.
func TestFactsForTaintingHaveTheStoragesReport(t *testing.T) {
	r := fenceWorld{objects: []client.Object{
		nodeAt("node-1", "192.168.1.1"), objects.CephVolume("a", rbd, "rook-ceph"), attachedAt("a", rbd, "node-1", fenceNoon),
	}}.reader(t)
	clients := []fence.VolumeClients{{Volume: v1alpha1.HeldVolume{PersistentVolume: "a"}, Addresses: []netip.Addr{netip.MustParseAddr("192.168.1.7")}}}
	ask := func(_ context.Context, f fence.Facts) (fence.Report, error) {
		must.True(t, len(f.Holding) == 1 && f.Node.Name == "node-1", "asked about %v of %s", f.Holding, f.Node.Name)
		return fence.Report{Clients: clients}, errors.New("some did not answer")
	}
	for want, ask := range map[int]AskStorage{1: ask, 0: nil} {
		f, err := r.FenceFacts(clocktesting.NewFakePassiveClock(fenceNoon), ask)(t.Context(), "node-1")
		must.True(t, err == nil && len(f.Report.Clients) == want, "got %v, %v", f.Report, err)
	}
}
