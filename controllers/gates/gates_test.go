package gates

import (
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/event"

	"github.com/fairlead-io/fairlead/internal/fence"
	"github.com/fairlead-io/fairlead/internal/testkit"
	"github.com/fairlead-io/fairlead/internal/testkit/must"
	"github.com/fairlead-io/fairlead/internal/testkit/objects"
)

func TestGateIsRemovedOnceTheNodeIsFenced(t *testing.T) {
	f := newFixture(t, waiting("data", "unbound", "gone"), objects.Claim("data", "data"), objects.Claim("unbound", ""), volume("data", driver), node(corev1.ConditionUnknown), record())
	for range 2 {
		f.mustHaveGates("other.io/gate", fence.SchedulingGate)
	}
	must.True(t, len(f.Events.All()) == 1 && len(f.Events.About("Fencing", ": volume data was last on node node-1")) == 1, "events: %q", f.Events.Notes())
	f.fenced()
	f.mustHaveGates("other.io/gate")
	pod := f.reconcile()
	if _, gated := pod.Labels[fence.GatedLabel]; gated || pod.Labels["app"] != "x" {
		t.Errorf("labels: %v", pod.Labels)
	}
	if len(f.Client.Writes) != 1 || len(f.Events.All()) != 2 || len(f.Events.About("FenceGateLifted Pod/app")) != 1 {
		t.Errorf("wrote %q, events: %q", f.Client.Wrote(), f.Events.Notes())
	}
	f.mustRemember(0)
}

// Until the record names a volume without attachment, only pods show the volume's node.
func TestPodOnLostNodeHoldsVolumeWithoutAttachment(t *testing.T) {
	f := newFixture(t, waiting("data"), objects.Claim("data", "data"), volume("data", driver), objects.Pod("default", "old", "node-1", "data"), node(corev1.ConditionUnknown))
	f.mustHaveGates("other.io/gate", fence.SchedulingGate)
	testkit.Change(f.Bench, "", "node-1", objects.Readiness(corev1.ConditionTrue, testkit.Noon))
	f.mustHaveGates("other.io/gate")
}

func TestPodThatChangedMeanwhileIsCheckedAgain(t *testing.T) {
	for name, tt := range map[string]struct {
		change func(*fixture, *corev1.Pod)
		want   []string
	}{
		"the gates have another order": {func(f *fixture, p *corev1.Pod) {
			p.Spec.SchedulingGates = []corev1.PodSchedulingGate{{Name: fence.SchedulingGate}, {Name: "third.io/gate"}}
			f.Must(f.Update(f.Context(), p))
		}, []string{fence.SchedulingGate, "third.io/gate"}},
		"the pod was replaced": {func(f *fixture, p *corev1.Pod) {
			f.Must(f.Delete(f.Context(), p))
			next := waiting("data")
			next.UID = "uid-next"
			f.Must(f.Create(f.Context(), next))
		}, []string{"other.io/gate", fence.SchedulingGate}},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t, waiting("data"), objects.Claim("data", "data"), volume("data", driver))
			f.beforePatch(func() { tt.change(f, testkit.Get[corev1.Pod](t, f.API, "default", "app")) })
			f.mustHaveGates(tt.want...)
			must.Check(t, len(f.Events.All()) == 0, "events: %q", f.Events.Notes())
			f.mustHaveGates(slices.DeleteFunc(tt.want, func(g string) bool { return g == fence.SchedulingGate })...)
		})
	}
}

func TestPodDeletedBeforeThePatchIsNoError(t *testing.T) {
	f := newFixture(t, waiting())
	f.beforePatch(func() { f.Must(f.Delete(t.Context(), waiting())) })
	_, err := f.r.Reconcile(t.Context(), request)
	if f.Must(err); len(f.Events.All()) != 0 {
		t.Errorf("events: %q", f.Events.Notes())
	}
}

// Users who create pods may set the label: only the gate makes a pod wait.
func TestLabelAloneMakesNoPodWait(t *testing.T) {
	gatedPod, labelled := waiting("data"), waiting("data")
	labelled.Name, labelled.Spec.SchedulingGates = "labelled", nil
	f := newFixture(t, gatedPod, labelled)
	if all := f.r.all(t.Context(), nil); len(all) != 1 || all[0] != request {
		t.Errorf("requests: %v", all)
	}
	p := gated()
	if p.Create(event.CreateEvent{Object: labelled}) || p.Update(event.UpdateEvent{ObjectOld: labelled, ObjectNew: labelled}) {
		t.Error("an event of a pod that has only the label passes")
	}
	if !p.Create(event.CreateEvent{Object: gatedPod}) || !p.Update(event.UpdateEvent{ObjectOld: gatedPod, ObjectNew: labelled}) {
		t.Error("an event of a pod that waits, or waited, does not pass")
	}
}

func TestNamespacePodsAreListedOnlyForProtectedVolumes(t *testing.T) {
	for name, tt := range map[string]struct {
		driver string
		lists  int
	}{
		"protected, one list for all volumes": {driver, 1},
		"not protected":                       {otherDriver, 0},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t, waiting("data", "more"), objects.Claim("data", "data"), objects.Claim("more", "more"), volume("data", tt.driver), volume("more", tt.driver))
			f.mustHaveGates("other.io/gate")
			must.Check(t, f.lists == tt.lists, "listed pods %d times, want %d", f.lists, tt.lists)
		})
	}
}

func TestReportIsForgottenWithThePod(t *testing.T) {
	f := newFixture(t, waiting("data"), objects.Claim("data", "data"), volume("data", driver), record())
	f.reconcile()
	f.Must(f.Delete(t.Context(), waiting()))
	next := waiting("data")
	next.UID = "uid-next"
	f.Must(f.Create(t.Context(), next))
	f.reconcile()
	f.mustRemember(1)
	must.True(t, len(f.Events.All()) == 2, "no event says why the next pod of the name waits; events: %q", f.Events.Notes())
	f.Must(f.Delete(t.Context(), next))
	_, err := f.r.Reconcile(t.Context(), request)
	f.Must(err)
	f.mustRemember(0)
}
