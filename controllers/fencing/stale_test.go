package fencing

import (
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fairlead-io/fairlead/api/v1alpha1"
	"github.com/fairlead-io/fairlead/internal/fence"
	"github.com/fairlead-io/fairlead/internal/reads/csiaddons"
	"github.com/fairlead-io/fairlead/internal/reads/fencingreads"
	"github.com/fairlead-io/fairlead/internal/testkit/fakeapi"
	"github.com/fairlead-io/fairlead/internal/testkit/must"
)

// stale reads from a cache that shows objects as given. Live reads stay live.
func (w *world) stale(objects ...client.Object) *fakeapi.Cache {
	cache := w.NewCache()
	for _, o := range objects {
		cache.Show(o)
	}
	w.reads(cache, w.Client)
	return cache
}

// The attachment is gone because the node was lost. A cache that shows the deletion but not the
// loss must not make the record drop the volume.
func TestStaleCacheOfTheNodeKeepsItsVolumeOnRecord(t *testing.T) {
	w := newWorld(t).look()
	w.stale(node("node-1", "192.168.1.1"))
	w.lose("node-1").taint("node-1", "nodeshutdown").detach("pvc-a", "node-1").look()
	w.mustBeFencing().mustHold("pvc-a").mustHaveFences(ours)
}

// The volume was detached by force, and the node is Ready without a reboot: it may still write.
func TestForcedDetachmentIsSeenThroughAStaleCache(t *testing.T) {
	w := newWorld(t).look().lose("node-1").look()
	cache := w.stale()
	w.Must(cache.Hold(t.Context(), attachment("pvc-a", "node-1")))
	w.detach("pvc-a", "node-1").recover().look().mustBeHealthy().mustBeLabelled(fence.ReasonStillMounted)
}

func TestNothingIsFencedOnTheCacheAlone(t *testing.T) {
	w := newWorld(t).look()
	lost := node("node-1", "192.168.1.1")
	w.ready(corev1.ConditionUnknown)(lost)
	lost.Spec.Taints = []corev1.Taint{{Key: fence.OutOfServiceTaint, Effect: corev1.TaintEffectNoExecute}}
	w.stale(lost)
	w.look().mustBeHealthy().mustHaveFences()
}

func TestNoLossIsRecordedOnTheCacheAlone(t *testing.T) {
	w := newWorld(t).look()
	lost := node("node-1", "192.168.1.1")
	w.ready(corev1.ConditionUnknown)(lost)
	w.stale(lost)
	w.look().mustBeHealthy()
}

func TestOtherNodesAreReadLive(t *testing.T) {
	w := newWorld(t, volume("pvc-b"), attachment("pvc-b", "node-1")).loseForGood()
	w.stale(node("node-2", "192.168.1.2"))
	w.move("node-2", "192.168.1.1")
	w.look().mustBe(v1alpha1.NodeFencing, fence.ReasonAddressInUse).mustHaveFences().move("node-2", "192.168.1.2")
	w.look().lookAfterCSI().mustBeFenced()
}

func TestOnlyOwnTaintsAreRemoved(t *testing.T) {
	other := corev1.Taint{Key: "other", Effect: corev1.TaintEffectNoSchedule}
	own := corev1.Taint{Key: fence.OutOfServiceTaint, Value: fence.OwnTaintValue, Effect: corev1.TaintEffectNoExecute}
	theirs := corev1.Taint{Key: fence.OutOfServiceTaint, Value: "nodeshutdown", Effect: corev1.TaintEffectNoExecute}
	theirsToo := corev1.Taint{Key: fence.OutOfServiceTaint, Value: "nodeshutdown", Effect: corev1.TaintEffectNoSchedule}
	for name, test := range map[string]struct {
		taints, kept []corev1.Taint
		recorded     bool
	}{
		"own":                   {[]corev1.Taint{other, own}, []corev1.Taint{other}, true},
		"an operator's":         {[]corev1.Taint{other, theirs}, []corev1.Taint{other, theirs}, false},
		"of another effect too": {[]corev1.Taint{theirsToo, own}, []corev1.Taint{theirsToo}, true},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t).look().change("node-1", func(n *corev1.Node) { n.Spec.Taints = test.taints }).look()
			got := w.node("node-1").Spec.Taints
			must.True(t, slices.Equal(got, test.kept), "got %v, want %v", got, test.kept)
			recorded := w.record("node-1").Status.Tainted != nil
			must.True(t, recorded == test.recorded, "recorded as own: %t", recorded)
			if w.look(); test.recorded && len(test.kept) == 1 && test.kept[0] == other && w.record("node-1").Status.Tainted != nil {
				t.Error("still recorded as tainted")
			}
		})
	}
}

func TestHealthyNodeIsWrittenSeldom(t *testing.T) {
	w := newWorld(t).look().mustWait(refresh, refresh)
	seen := func() time.Time { return w.record("node-1").Status.Identities[0].Addresses[0].LastSeen.Time }
	first := seen()
	w.forgetWrites()
	for range 4 {
		w.pass(time.Minute).look()
	}
	w.mustHaveWritten().pass(2 * time.Minute).look().mustHaveWritten("update/status NodeFence/node-1")
	must.True(t, seen().After(first), "the address is as old as before: %v", first)
}

func TestSharedAddressIsUnfencedWithItsLastNode(t *testing.T) {
	w := newWorld(t, volume("pvc-b"), attachment("pvc-b", "node-2")).look("node-1", "node-2")
	w.change("node-1", w.ready(corev1.ConditionUnknown)).move("node-2", "192.168.1.1").look("node-2")
	w.lose("node-2").taint("node-1", "x").taint("node-2", "x")
	for range 2 {
		w.look("node-1", "node-2").csi()
	}
	w.look("node-1", "node-2").mustBeFenced().recordMustBe("node-2", v1alpha1.NodeFenced, fence.ReasonFenced).detach("pvc-a", "node-1").returnRebooted().look()
	w.mustBe(v1alpha1.NodeUnfencing, fence.ReasonSharedAddress).mustHaveFences("Fenced 192.168.1.1/32,192.168.1.2/32")
}

// Another leader or a user writes between the look and the write. The state machine assumes that such a write is refused.
func TestWritesWithStaleResourceVersionAreRefused(t *testing.T) {
	for name, test := range map[string]struct {
		object client.Object
		write  func(*world, client.Object) error
	}{
		"unfencing": {&csiaddons.NetworkFence{Spec: csiaddons.NetworkFenceSpec{FenceState: csiaddons.Fenced}}, func(w *world, o client.Object) error {
			return w.r.unfence(w.Context(), decision{FenceView: &fencingreads.FenceView{}}, fencingreads.FenceObject(o.(*csiaddons.NetworkFence)))
		}},
		"deleting a NetworkFence": {&csiaddons.NetworkFence{}, func(w *world, o client.Object) error {
			return w.r.remove(w.Context(), decision{FenceView: &fencingreads.FenceView{}}, fencingreads.FenceObject(o.(*csiaddons.NetworkFence)))
		}},
		"labelling a record": {&v1alpha1.NodeFence{}, func(w *world, o client.Object) error {
			return w.r.writeMeta(w.Context(), o.(*v1alpha1.NodeFence), v1alpha1.NodeFenceStatus{Phase: v1alpha1.NodeLost})
		}},
		"forgetting a record": {&v1alpha1.NodeFence{}, func(w *world, o client.Object) error {
			return w.r.forget(w.Context(), decision{FenceView: &fencingreads.FenceView{Record: o.(*v1alpha1.NodeFence)}})
		}},
		"forgetting a record with a finalizer": {&v1alpha1.NodeFence{ObjectMeta: metav1.ObjectMeta{Finalizers: []string{fence.RecordFinalizer}}}, func(w *world, o client.Object) error {
			return w.r.forget(w.Context(), decision{FenceView: &fencingreads.FenceView{Record: o.(*v1alpha1.NodeFence)}})
		}},
	} {
		t.Run(name, func(t *testing.T) {
			w, read := newWorld(t), test.object
			read.SetName("x")
			w.create(read)
			changed := read.DeepCopyObject().(client.Object)
			changed.SetAnnotations(map[string]string{"changed": "true"})
			w.Must(w.Update(t.Context(), changed))
			err := test.write(w, read)
			must.True(t, isOvertaken(err), "got %v", err)
			have := read.DeepCopyObject().(client.Object)
			w.Must(w.Get(t.Context(), client.ObjectKeyFromObject(read), have))
			must.True(t, have.GetResourceVersion() == changed.GetResourceVersion(), "it was written: %+v", have)
			w.Must(test.write(w, changed))
		})
	}
}

// mustBeLabelled compares the value by which the API server finds the record of node-1 without Fairlead.
func (w *world) mustBeLabelled(want string) *world {
	w.Helper()
	got := w.record("node-1").Labels[fence.PhaseLabel]
	must.True(w, got == want, "the record is labelled %s, want %s", got, want)
	return w
}

func inUse(n *corev1.Node) {
	n.Status.VolumesInUse = []corev1.UniqueVolumeName{corev1.UniqueVolumeName(fence.UniqueName(rbd, "handle-pvc-a"))}
}

// returned is a node whose volume was detached by force, and that is Ready again in the same boot.
func returned(t *testing.T, changes ...func(*corev1.Node)) *world {
	t.Helper()
	w := newWorld(t).look().lose("node-1").look().detach("pvc-a", "node-1").look()
	for _, change := range append(changes, w.ready(corev1.ConditionTrue)) {
		w.change("node-1", change)
	}
	w.look()
	return w.mustBeHealthy()
}

func TestLabelShowsThatAVolumeMayStillBeMounted(t *testing.T) {
	w := returned(t).mustBeLabelled(fence.ReasonStillMounted).pass(5*time.Minute + time.Second).look()
	w.mustBeLabelled(string(v1alpha1.NodeHealthy))
	w = returned(t, inUse).pass(time.Hour).look().mustBeLabelled(fence.ReasonStillMounted)
	w.change("node-1", func(n *corev1.Node) { n.Status.VolumesInUse = nil }).look().mustBeLabelled(string(v1alpha1.NodeHealthy))
}

// The node is lost, detached and back between two looks.
func TestLabelOfAMountedVolumeComesBeforeTheStatus(t *testing.T) {
	w := newWorld(t).change("node-1", inUse).look().detach("pvc-a", "node-1").forgetWrites()
	w.look().mustBeLabelled(fence.ReasonStillMounted)
	wrote := w.Client.Wrote()
	label, status := slices.Index(wrote, "patch NodeFence/node-1"), slices.Index(wrote, "update/status NodeFence/node-1")
	must.True(t, label >= 0 && status >= label, "wrote %v", wrote)
}

// A round takes a while: what was decided on a node that is back, or lost again, is not done.
func TestNodeIsReadAgainBeforeAnythingIsTakenOrGivenBack(t *testing.T) {
	decided := func(w *world) decision {
		now, err := w.r.Reader.Snapshot(t.Context(), []string{"node-1"})
		w.Must(err)
		views, err := w.r.views(t.Context(), now, "node-1")
		w.Must(err)
		return decide(views[0])
	}
	fences := func(o client.Object) error {
		if _, ok := o.(*csiaddons.NetworkFence); ok {
			return errAPI
		}
		return nil
	}
	for name, test := range map[string]struct {
		before, happens func(*world)
	}{
		"fenced": {
			func(w *world) { w.refuse(fences, "create").loseForGood().fails(1).accept() },
			func(w *world) { w.change("node-1", w.ready(corev1.ConditionTrue)) },
		},
		"unfenced": {
			func(w *world) { w.drain().returnRebooted().pass(time.Hour).refuse(fences, "patch").fails(1).accept() },
			func(w *world) { w.change("node-1", w.ready(corev1.ConditionUnknown)) },
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t).look()
			test.before(w)
			d := decided(w)
			must.True(t, len(d.Create)+len(d.Unfence) == 1, "nothing is to be done: %+v", d.Step)
			test.happens(w)
			must.True(t, isOvertaken(w.r.do(t.Context(), d)) && len(w.forgetWrites().Client.Writes) == 0, "done on a node that has changed")
		})
	}
}
