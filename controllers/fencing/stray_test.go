package fencing

import (
	"slices"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fairlead-io/fairlead/api/v1alpha1"
	"github.com/fairlead-io/fairlead/internal/cluster/csiaddons"
	"github.com/fairlead-io/fairlead/internal/fence"
)

// strayFence is one of Fairlead for a boot of a node that is over.
func strayFence(node, boot string) *csiaddons.NetworkFence {
	return &csiaddons.NetworkFence{
		ObjectMeta: metav1.ObjectMeta{Name: "fairlead-stray", Labels: map[string]string{fence.NodeLabel: fence.LabelValue(node), fence.IncidentLabel: "before", fence.BootLabel: boot}},
		Spec:       csiaddons.NetworkFenceSpec{Driver: rbd, FenceState: csiaddons.Fenced, CIDRs: []string{"192.168.1.1/32"}, Parameters: map[string]string{"clusterID": "rook-ceph"}},
	}
}

// A leader that hung makes its fence when all is over, or a record was deleted by
// force: nothing on a healthy node's record tells of it.
func TestAFenceThatNoRecordKnowsIsTakenBack(t *testing.T) {
	w := newWorld(t)
	w.look("node-1")
	w.expect("node-1", v1alpha1.NodeHealthy, fence.ReasonReady)
	w.must(w.Create(t.Context(), strayFence("node-1", "the boot before")))
	w.csi()
	w.step(refresh)
	for range 4 {
		w.look("node-1")
		w.csi()
	}
	w.expect("node-1", v1alpha1.NodeHealthy, fence.ReasonReady)
	if got := w.cidrs(); len(got) != 0 {
		t.Fatalf("left: %v", got)
	}
}

// Another node's is none of this one's.
func TestAStrayFenceOfAnotherNodeIsLeftToThatNode(t *testing.T) {
	w := newWorld(t, strayFence("node-11", "the boot before"))
	if result := w.look("node-1"); result.RequeueAfter != refresh {
		t.Fatalf("looks again after %v", result.RequeueAfter)
	}
	w.step(time.Minute)
	w.look("node-1")
	if got := w.cidrs(); !slices.Equal(got, []string{"Fenced 192.168.1.1/32"}) {
		t.Fatalf("got %v", got)
	}
}
