package e2e

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fairlead-io/fairlead/api/v1alpha1"
	"github.com/fairlead-io/fairlead/e2e/sandbox"
	"github.com/fairlead-io/fairlead/internal/cluster/csiaddons"
	"github.com/fairlead-io/fairlead/internal/fence"
)

// TestFencingThatIsOffTakesBackWhatStands switches fencing off while a fence stands.
// The controller starts, with no more rights than the manifests give it, and lets the
// node in again, which has booted anew.
func TestFencingThatIsOffTakesBackWhatStands(t *testing.T) {
	c := newControlPlane(t, options{fencing: `{profiles: [{name: rook-ceph, mode: "off"}], returning: {readyFor: 3s}}`})
	csi := c.startCSIAddons(protectedDrivers)
	c.apply(cephSecret, rbdFenceClass)
	c.must(c.Install(t.Context(), sandbox.RookCeph))
	stands := &csiaddons.NetworkFence{ObjectMeta: metav1.ObjectMeta{Name: "stands", Labels: map[string]string{
		fence.NodeLabel: "node-1", fence.IncidentLabel: "node-1-1", fence.BootLabel: "before",
	}}}
	stands.Spec.NetworkFenceClassName, stands.Spec.CIDRs, stands.Spec.FenceState = "rbd", []string{"192.168.50.1/32"}, csiaddons.Fenced
	c.must(c.create(stands))
	c.blockedAre(csi, 1)
	c.writeRecord("node-1", v1alpha1.NodeFenceStatus{
		Phase: v1alpha1.NodeDrained, Reason: fence.ReasonDrained, Incident: "node-1-1", Node: v1alpha1.MachineIdentity{BootID: "before"},
		Fences: []v1alpha1.Fence{{
			Name: "stands", Incident: "node-1-1", Driver: rbd, ClusterID: "rook-ceph", Class: "rbd", CIDRs: stands.Spec.CIDRs,
			State: v1alpha1.FenceFenced, Since: metav1.NewTime(time.Now().Add(-time.Hour).Truncate(time.Second)),
		}},
	})
	c.must(c.RunFairlead(t.Context(), 1, 1))
	c.waitPhase("node-1", v1alpha1.NodeHealthy)
	c.blockedAre(csi, 0)
}
