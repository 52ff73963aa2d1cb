package fence

import (
	"strings"
	"testing"

	"github.com/fairlead-io/fairlead/api/v1alpha1"
)

// An operator brings a class of its own name while a node is fenced (ocs-operator#3532).
func TestClassThatWasReplacedIsLookedForAnew(t *testing.T) {
	const class = "fence-" + rbd
	ours, another := Class{class, rbd, "a"}, Class{"odf-rbd", rbd, "a"}
	s := fenced(t)
	s.Classes = []Class{another, {"other", other, "b"}}
	s.look().wantDrained().wantObjects(fencedOf1) // what is confirmed stays
	old := s.Fences[0].Name
	s.boot("boot-2").taint(false).report(identity(rbd, "a", "10.0.0.1/32")).hold().look().pass(DefaultReadyFor).look()
	r := s.Status.Fences[0]
	s.wantThat(r.Class == another.Name && r.Name != old && strings.HasPrefix(r.Name, old), "the fence has another class and name")
	s.answers(3).wantHealthy().wantObjects() // the old object is deleted, which ends once its class is back

	// A hung leader has created a fence of a class that is gone. A fence of the other class unfences the node.
	late := requested(t).Fences[0]
	s = healthy(t)
	s.Classes = []Class{another}
	late.Labels = map[string]string{NodeLabel: "node-1", IncidentLabel: late.Labels[IncidentLabel], BootLabel: "boot-0"}
	s.objects(late).look().wantReason(ReasonUnfencing)
	s.wantThat(len(s.created) == 1 && len(s.deleted) == 1 && s.deleted[0] == late.Name, "the node is unfenced by the other class, and the late fence is deleted")
	s.answers(3).wantHealthy().wantObjects()

	s = requested(t)
	s.Classes = []Class{{"other", other, "b"}}
	s.pass(unanswered*2).look().want(v1alpha1.NodeFencing, ReasonUnanswered, "waiting for NetworkFence "+s.Fences[0].Name+
		": NetworkFenceClass "+class+" is gone, and there is no other for "+rbd+" of a: create one; csi-addons does nothing without it")
	s.Classes = []Class{ours}
	s.look().answer().wantDrained()
}
