package fencing

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/event"

	"github.com/fairlead-io/fairlead/api/v1alpha1"
	"github.com/fairlead-io/fairlead/controllers/kit"
	"github.com/fairlead-io/fairlead/internal/fence"
	"github.com/fairlead-io/fairlead/internal/testkit/must"
)

func TestLastBootOfDeletedNodeIsOnRecord(t *testing.T) {
	boot := node("node-1", "192.168.1.1").Status.NodeInfo.BootID
	for name, c := range map[string]struct {
		happens func(*world)
		want    string
	}{
		"seen until its deletion": {func(w *world) { w.delete(w.node("node-1")) }, boot},
		"a new leader":            {func(w *world) { w.delete(w.node("node-1")).restart() }, ""},
		"the watch was interrupted": {func(w *world) {
			n := w.node("node-1")
			w.delete(n).r.observeNodes().Delete(event.DeleteEvent{Object: n, DeleteStateUnknown: true})
		}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t).look()
			c.happens(w)
			w.look().mustBe(v1alpha1.NodeLost, fence.ReasonNodeDeleted).pass(time.Minute).look().lookAfterCSI().mustBe(v1alpha1.NodeFenced, fence.ReasonFenced)
			must.Equal(t, w.status().Node.BootID, c.want)
		})
	}
}

// In the next boot, the node may have mounted by another address.
func TestNodeSeenInAnotherBootIsNotFencedByFormerAddresses(t *testing.T) {
	w := newWorld(t).look()
	w.change("node-1", func(n *corev1.Node) { n.Status.NodeInfo.BootID = "next" }).watch("node-1")
	w.delete(w.node("node-1")).look().pass(time.Minute).look().lookAfterCSI().mustBe(v1alpha1.NodeFencing, fence.ReasonNoIdentity)
}

// A live read may be ahead of the watch, which has the last boot.
func TestDeletionIsDecidedOnceTheWatchHasShownIt(t *testing.T) {
	w := newWorld(t).look()
	w.delete(w.node("node-1"))
	result, err := w.r.Reconcile(t.Context(), kit.Request("node-1")[0])
	must.True(t, err == nil && result.RequeueAfter == behind, "got %+v, %v", result, err)
	w.mustBeHealthy().look().mustBe(v1alpha1.NodeLost, fence.ReasonNodeDeleted)
}
