package fencing

import (
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"

	"github.com/fairlead-io/fairlead/api/v1alpha1"
	"github.com/fairlead-io/fairlead/controllers/kit"
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
	w.detach("pvc-a", "node-1").recover().look().mustBe(v1alpha1.NodeHealthy, fence.ReasonStillMounted).mustWithhold("pvc-a")
}

func TestNoLossIsRecordedOnTheCacheAlone(t *testing.T) {
	for name, taints := range map[string][]corev1.Taint{"lost": nil, "tainted": {{Key: fence.OutOfServiceTaint, Effect: corev1.TaintEffectNoExecute}}} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t).look()
			lost := node("node-1", "192.168.1.1")
			w.ready(corev1.ConditionUnknown)(lost)
			lost.Spec.Taints = taints
			w.stale(lost)
			w.look().mustBeHealthy().mustHaveFences()
		})
	}
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
			recorded := w.spec().Tainted != nil
			must.True(t, recorded == test.recorded, "recorded as own: %t", recorded)
			if w.look(); test.recorded && len(test.kept) == 1 && test.kept[0] == other && w.spec().Tainted != nil {
				t.Error("still recorded as tainted")
			}
		})
	}
}

func TestHealthyNodeIsWrittenSeldom(t *testing.T) {
	w := newWorld(t).look().mustWait(refresh, refresh)
	seen := func() time.Time { return w.spec().Identities[0].Addresses[0].LastSeen.Time }
	before := seen()
	w.forgetWrites()
	for range 4 {
		w.pass(time.Minute).look()
	}
	w.mustHaveWritten().pass(2*time.Minute).look().mustHaveWritten("update NodeFence/"+first, "update/status NodeFence/"+first)
	must.True(t, seen().After(before), "the address is as old as before: %v", before)
}

func TestUnchangedAddressWakesNoReconcile(t *testing.T) {
	w := newWorld(t).look()
	was := w.record(first)
	w.pass(fence.RefreshEvery + time.Minute).look()
	is := w.record(first)
	if was.ResourceVersion == is.ResourceVersion || kit.FenceRecordChanged().Update(event.UpdateEvent{ObjectOld: was, ObjectNew: is}) {
		t.Errorf("%+v passes after %+v", is, was)
	}
	must.True(t, !is.Spec.Identities[0].Addresses[0].LastSeen.IsZero(), "the cache's object was changed")
}

// Another leader or a user writes between the look and the write. The state machine assumes that such a write is refused.
func TestWritesWithStaleResourceVersionAreRefused(t *testing.T) {
	decided := func(record client.Object) decision {
		view := &fencingreads.FenceView{Record: record.(*v1alpha1.NodeFence)}
		view.Facts.Record = record.GetName()
		return decision{FenceView: view}
	}
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
		"recording": {&v1alpha1.NodeFence{}, func(w *world, o client.Object) error {
			d := decided(o)
			d.Spec.Requests = 7
			return w.r.remember(w.Context(), d)
		}},
		"writing a status": {&v1alpha1.NodeFence{}, func(w *world, o client.Object) error {
			d := decided(o)
			d.Status.Reason = fence.ReasonFencing
			return w.r.writeStatus(w.Context(), d)
		}},
		"forgetting a record": {&v1alpha1.NodeFence{}, func(w *world, o client.Object) error {
			return w.r.forget(w.Context(), decided(o))
		}},
		"forgetting a record with a finalizer": {&v1alpha1.NodeFence{ObjectMeta: metav1.ObjectMeta{Finalizers: []string{fence.RecordFinalizer}}}, func(w *world, o client.Object) error {
			return w.r.forget(w.Context(), decided(o))
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
