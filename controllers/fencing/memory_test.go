package fencing

import (
	"errors"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fairlead-io/fairlead/api/v1alpha1"
	"github.com/fairlead-io/fairlead/internal/fence"
	"github.com/fairlead-io/fairlead/internal/reads/csiaddons"
	"github.com/fairlead-io/fairlead/internal/testkit/fakeapi"
	"github.com/fairlead-io/fairlead/internal/testkit/must"
)

// The memory waits for nothing but the record, the Node, its attachments and their volumes.

// NetworkFences can't be read: what the node has, and that it is lost, is recorded all the same.
func TestMemoryDoesNotWaitForWhatFencesNeed(t *testing.T) {
	w := newWorld(t).look()
	w.Client.Reading = func(o runtime.Object) error {
		if _, fences := o.(*csiaddons.NetworkFenceList); fences {
			return errors.New("networkfences is forbidden")
		}
		return nil
	}
	w.create(volume("pvc-b")).create(attachment("pvc-b", "node-1"))
	w.change("node-1", func(n *corev1.Node) {
		n.Status.VolumesAttached = append(n.Status.VolumesAttached, corev1.AttachedVolume{Name: corev1.UniqueVolumeName("kubernetes.io/csi/" + rbd + "^handle-pvc-b")})
	})
	_, err := w.reconcile("node-1")
	must.True(t, err != nil, "the error is not reported")
	must.True(t, len(w.spec().Volumes) == 2, "on record are only %v", fence.VolumeNames(w.spec().Volumes))
	w.pass(time.Minute).lose("node-1")
	_, err = w.reconcile("node-1")
	must.True(t, err != nil && w.spec().LostSince != nil, "the loss is not on record (%v)", err)
}

// A write for one boot of a name is refused for good: the other boot is recorded all the same.
func TestRefusedWriteForOneBootStopsNoOther(t *testing.T) {
	marks := "" // so that the old record is looked at first
	for recordOf("node-1", marks) > recordOf("node-1", marks+"'") {
		marks += "'"
	}
	present := recordOf("node-1", marks+"'")
	w := newWorld(t)
	w.change("node-1", func(n *corev1.Node) { n.Status.NodeInfo.BootID += marks })
	w.loseForGood().look().lookAfterCSI()
	w.detach("pvc-a", "node-1").look()
	w.boot("node-1").untaint("node-1").look().pass(time.Hour)
	w.refuse(func(o client.Object) error {
		if _, fence := o.(*csiaddons.NetworkFence); fence {
			return errors.New("denied by a policy of another vendor")
		}
		return nil
	}, "delete")
	for range 2 {
		_, _ = w.reconcile("node-1")
		w.csi()
	}
	w.pass(time.Minute).lose("node-1").taint("node-1", "nodeshutdown")
	_, err := w.reconcile("node-1")
	must.True(t, w.record(present).Spec.LostSince != nil, "the loss of the present boot is not on record (%v)", err)
}

// The node is back while its fence is being recorded.
func TestNodeThatIsBackIsNotFenced(t *testing.T) {
	w := newWorld(t).loseForGood()
	back := false
	w.Client.Before = func(write fakeapi.Write) error {
		if n, ok := write.Object.(*v1alpha1.NodeFence); ok && !back && len(n.Spec.Fences) > 0 {
			back = true
			w.pass(time.Second).recover().untaint("node-1")
		}
		return nil
	}
	w.watch("node-1")
	var request ctrl.Request
	request.Name = "node-1"
	_, err := w.watched().r.Reconcile(t.Context(), request)
	must.True(t, back && err == nil && len(w.fences()) == 0, "created %v (%v)", w.fences(), err)
}

// A Node without a Ready condition has no time of it.
func TestNodeWithoutConditionIsSettled(t *testing.T) {
	w := newWorld(t).look()
	w.change("node-1", func(n *corev1.Node) { n.Status.Conditions = nil })
	_, err := w.reconcile("node-1")
	must.Do(t, err)
}
