package fencing

import (
	"context"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"

	"github.com/fairlead-io/fairlead/api/v1alpha1"
	"github.com/fairlead-io/fairlead/controllers/kit"
	"github.com/fairlead-io/fairlead/internal/fence"
	"github.com/fairlead-io/fairlead/internal/testkit/must"
)

// replace node-1 by another machine of its name, and return the name of that machine's record.
func (w *world) replace(machine, address string) (record string) {
	w.Helper()
	w.Must(client.IgnoreNotFound(w.Delete(context.Background(), node("node-1", ""))))
	next := node("node-1", address)
	next.UID, next.Status.NodeInfo = types.UID("uid-"+machine), corev1.NodeSystemInfo{BootID: "boot-" + machine, SystemUUID: "machine-" + machine}
	w.Must(w.Seed(context.Background(), next))
	return fence.RecordName("node-1", v1alpha1.Boot{SystemUUID: "machine-" + machine, BootID: "boot-" + machine})
}

// mustHaveRecords compares the records.
func (w *world) mustHaveRecords(want ...string) *world {
	w.Helper()
	var list v1alpha1.NodeFenceList
	w.Must(w.List(context.Background(), &list))
	var got []string
	for i := range list.Items {
		got = append(got, list.Items[i].Name)
	}
	slices.Sort(got)
	slices.Sort(want)
	must.True(w, slices.Equal(got, want), "got records %q, want %q", got, want)
	return w
}

func TestEachMachineOfANameHasItsOwnRecordAndFence(t *testing.T) {
	w := newWorld(t, volume("pvc-b")).look().pass(time.Minute).delete(node("node-1", "")).look()
	machine2 := w.replace("2", "192.168.1.21")
	w.look().pass(time.Minute).look().lookAfterCSI().mustHaveRecords(first, machine2)
	w.mustBe(v1alpha1.NodeDrained, fence.ReasonReplaced).recordMustBe(machine2, v1alpha1.NodeHealthy, fence.ReasonReady)

	w.detach("pvc-a", "node-1").create(attachment("pvc-b", "node-1")).look().pass(time.Minute)
	w.lose("node-1").taint("node-1", "nodeshutdown").look().lookAfterCSI()
	w.mustHaveFences(ours, "Fenced 192.168.1.21/32").recordMustBe(machine2, v1alpha1.NodeFenced, fence.ReasonFenced)
	got := fence.VolumeNames(w.record(machine2).Spec.Volumes)
	must.True(t, slices.Equal(got, []string{"pvc-b"}), "%s holds %q", machine2, got)

	// An operator unfences the first machine, and a third one gets its name.
	w.override(fence.GateUnfence).finish().delete(node("node-1", "")).look()
	machine3 := w.replace("3", "192.168.1.31")
	w.look().mustHaveRecords(machine2, machine3).recordMustBe(machine3, v1alpha1.NodeHealthy, fence.ReasonReady)
	w.recordMustBe(machine2, v1alpha1.NodeDrained, fence.ReasonReplaced).mustHaveFences("Fenced 192.168.1.21/32")
}

// A new leader did not see which boot the Node was deleted in.
func TestVolumeOfAnUnseenMachineIsHeld(t *testing.T) {
	w := newWorld(t, volume("pvc-b")).look()
	w.delete(w.node("node-1")).look().pass(time.Minute).look().lookAfterCSI().restart().create(attachment("pvc-b", "node-1")).look().pass(time.Minute).look()
	unseen := fence.RecordName("node-1", v1alpha1.Boot{})
	w.mustHaveRecords(first, unseen).recordMustBe(unseen, v1alpha1.NodeFencing, fence.ReasonNoIdentity).mustHold("pvc-a")
	s := w.record(unseen).Spec
	must.True(t, slices.Equal(fence.VolumeNames(s.Volumes), []string{"pvc-b"}) && s.Unseen, "got %+v", s)
}

// The boot that is over ends only once all of its fences are lifted: until then there are two records.
func TestBootThatIsOverLeavesNoRecord(t *testing.T) {
	newWorld(t).look().boot("node-1").look().mustHaveRecords(second)
	w := newWorld(t).drain().boot("node-1").look().mustHaveRecords(first, second)
	must.True(t, w.spec().Over && len(w.spec().Volumes) == 0, "got %+v", w.spec())
	w.untaint("node-1").look().pass(time.Hour).look().mustHaveRecords(first, second).finish().mustHaveRecords(second)
}

// A finalizer of someone else keeps the record of a boot that is over: it is deleted once, and waited for.
func TestRecordWithAnotherFinalizerIsDeletedOnce(t *testing.T) {
	w := newWorld(t).look()
	record := w.record(first)
	record.Finalizers = append(record.Finalizers, "example.com/theirs")
	w.Must(w.Update(t.Context(), record))
	w.boot("node-1").forgetWrites().look().mustWait(time.Second, refresh)
	must.Equal(t, count(w.Client.Wrote(), "delete NodeFence/"+first), 1)
}

func TestLastBootOfDeletedNodeIsOnRecord(t *testing.T) {
	for name, test := range map[string]struct {
		happens func(*world)
		unseen  bool
		phase   v1alpha1.NodeFencePhase
		reason  string
	}{
		"seen until its deletion": {func(w *world) { w.delete(w.node("node-1")) }, false, v1alpha1.NodeFenced, fence.ReasonFenced},
		"a new leader":            {func(w *world) { w.delete(w.node("node-1")).restart() }, true, v1alpha1.NodeFencing, fence.ReasonUnseen},
		"the watch was interrupted": {func(w *world) {
			n := w.node("node-1")
			w.delete(n).r.observeNodes().Delete(event.DeleteEvent{Object: n, DeleteStateUnknown: true})
			delete(w.shown, "node-1")
		}, true, v1alpha1.NodeFencing, fence.ReasonUnseen},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t).look()
			test.happens(w)
			w.look().mustBe(v1alpha1.NodeLost, fence.ReasonNodeDeleted).pass(time.Minute).look().lookAfterCSI().mustBe(test.phase, test.reason)
			must.Equal(t, w.spec().Unseen, test.unseen)
		})
	}
}

// In the next boot, the node may have mounted by another address.
func TestNodeSeenInAnotherBootIsNotFencedByFormerAddresses(t *testing.T) {
	w := newWorld(t).look().boot("node-1")
	w.watch("node-1")
	w.delete(w.node("node-1")).look().pass(time.Minute).look().lookAfterCSI().mustHaveFences().mustBeForgotten()
	w.recordMustBe(second, v1alpha1.NodeFencing, fence.ReasonNoIdentity)
	must.Equal(t, fence.VolumeNames(w.record(second).Spec.Volumes), []string{"pvc-a"})
}

// A live read may be ahead of the watch, which has the last boot.
func TestDeletionIsDecidedOnceTheWatchHasShownIt(t *testing.T) {
	w := newWorld(t).look()
	w.delete(w.node("node-1"))
	result, err := w.r.Reconcile(t.Context(), kit.Request("node-1")[0])
	must.True(t, err == nil && result.RequeueAfter == behind, "got %+v, %v", result, err)
	w.mustBeHealthy().look().mustBe(v1alpha1.NodeLost, fence.ReasonNodeDeleted)
}
