package fence

import (
	"testing"

	"github.com/fairlead-io/fairlead/api/v1alpha1"
)

// A leader hung while it created a NetworkFence, or a record was lost.
func TestOrphanedFenceIsAdopted(t *testing.T) {
	const kept, unfenced, none = ReasonNotRebooted, ReasonUnfencing, ""
	for name, c := range map[string]struct {
		how    func(*story, *NetworkFence)
		reason string
	}{
		"of another boot":                         {func(_ *story, n *NetworkFence) { n.Labels[BootLabel] = "boot-0" }, unfenced},
		"of another machine":                      {func(_ *story, n *NetworkFence) { n.Labels[BootLabel], n.Labels[MachineLabel] = "boot-0", "machine-2" }, none},
		"of a machine that it does not name":      {func(_ *story, n *NetworkFence) { n.Labels[BootLabel] = "boot-0"; delete(n.Labels, MachineLabel) }, none},
		"of this boot and this record":            {func(*story, *NetworkFence) {}, unfenced},
		"of this boot and another record":         {func(_ *story, n *NetworkFence) { n.Labels[RecordLabel] = "another" }, kept},
		"of this boot and another record, undone": {func(_ *story, n *NetworkFence) { n.Labels[RecordLabel], n.Unfenced = "another", true }, unfenced},
		"of this boot, by an older version":       {func(_ *story, n *NetworkFence) { delete(n.Labels, RecordLabel) }, kept},
		"of no boot":                              {func(_ *story, n *NetworkFence) { delete(n.Labels, BootLabel) }, none},
		"of another node":                         {func(_ *story, n *NetworkFence) { n.Labels[NodeLabel], n.CIDRs = "node-11", []string{"10.0.0.11/32"} }, none},
		"another party's":                         {func(_ *story, n *NetworkFence) { n.Labels, n.CIDRs = nil, []string{"10.0.0.11/32"} }, none},
		"on another record of the name": {func(s *story, n *NetworkFence) {
			s.beside(Other{Record: "node-1-0", Node: Node{Name: "node-1"}, Spec: v1alpha1.NodeFenceSpec{Fences: []v1alpha1.Fence{{Name: n.Name}}}})
		}, none},
		"of a class that is gone, and on its way out": {func(_ *story, n *NetworkFence) { n.Class, n.Deleting = "gone", true }, none},
		"of a secret": {func(_ *story, n *NetworkFence) {
			n.Class, n.Driver, n.Parameters = "", rbd, map[string]string{"clusterID": "a"}
		}, unfenced},
	} {
		t.Run(name, func(t *testing.T) {
			s := healthy(t)
			n := s.newObject(v1alpha1.Fence{Name: "late", Class: "fence-" + rbd, CIDRs: []string{"10.0.0.1/32"}}, false)
			c.how(s, &n)
			if s.objects(n).csi().look(); c.reason == none {
				s.wantThat(len(s.Spec.Fences) == 0, "it is not on record")
				return
			}
			r := s.wantReason(c.reason).Spec.Fences[0]
			s.wantThat(r.Driver == rbd && r.ClusterID == "a", "the fence is on record for its storage")
			if c.reason == kept { // volumes may have been released by it
				s.wantThat(r.VolumesReleased && !s.Fences[0].Unfenced, "it is kept").bootUntainted("boot-2").wantObjects(unfencedOf1)
				return
			}
			s.withdraw().is(saysHealthy)
		})
	}
}

// The record was lost while a fence of it was withdrawn. The fence of the next loss may have the name of that one.
func TestNodeWithAdoptedFenceIsFencedAgain(t *testing.T) {
	first := requested(t).Fences[0]
	first.Unfenced, first.Labels = true, map[string]string{NodeLabel: "node-1", BootLabel: "boot-1", RecordLabel: "lost"}
	s := healthy(t).objects(first).look().wantReason(ReasonUnfencing).loseTainted().wantHeld(true)
	for range 4 {
		s.answer()
	}
	s.wantObjects(fencedOf1).wantHeld(false)
}
