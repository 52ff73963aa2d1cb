package fencing

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/event"

	"github.com/fairlead-io/fairlead/internal/fence"
	"github.com/fairlead-io/fairlead/internal/reads/fencingreads"
	"github.com/fairlead-io/fairlead/internal/testkit/must"
	"github.com/fairlead-io/fairlead/internal/testkit/objects"
)

// usesFiles is a node on which a pod uses a volume without attachment.
func usesFiles(t *testing.T) (*world, *corev1.Pod) {
	t.Helper()
	pod := objects.Pod("default", "app", "node-1", "claim-files")
	w := newWorld(t, pod, objects.CephVolume("files", cephfs, "rook-ceph"),
		&storagev1.CSIDriver{ObjectMeta: metav1.ObjectMeta{Name: cephfs}, Spec: storagev1.CSIDriverSpec{AttachRequired: ptr.To(false)}})
	w.look().mustHold("files", "pvc-a")
	return w, pod
}

// The node may be cut off, before Kubernetes says so: the pod runs, and writes.
func TestForceDeletedPodKeepsItsVolumeOnRecord(t *testing.T) {
	w, pod := usesFiles(t)
	w.delete(pod)
	for range 4 {
		w.look().mustWait(0, leaving).pass(12 * time.Second)
	}
	w.lose("node-1").look().mustBeLost().mustHold("files", "pvc-a")
}

func TestUnusedVolumeIsForgotten(t *testing.T) {
	for name, after := range map[string]func(*world){
		"after a while":  func(w *world) { w.look(); w.Pass(leaving) },
		"after a reboot": func(w *world) { w.boot("node-1") },
	} {
		t.Run(name, func(t *testing.T) {
			w, pod := usesFiles(t)
			w.delete(pod)
			after(w)
			w.look().mustHold("pvc-a").detach("pvc-a", "node-1").look().mustHold()
		})
	}
}

// cordon taints node-1 as Kubernetes taints a cordoned node.
func (w *world) cordon() *world {
	w.Helper()
	return w.change("node-1", func(n *corev1.Node) {
		n.Spec.Taints = []corev1.Taint{{Key: corev1.TaintNodeUnschedulable, Effect: corev1.TaintEffectNoSchedule, TimeAdded: ptr.To(metav1.NewTime(w.Clock.Now()))}}
	})
}

// Whoever drains a node may delete its object next.
func TestCordonedNodeIsCheckedOftenUntilItIsDrained(t *testing.T) {
	w, pod := usesFiles(t)
	before := w.node("node-1")
	w.cordon()
	must.True(t, fencingreads.FenceNodeChanged(before, w.node("node-1")), "the cordon is no event")
	w.look().mustWait(lookForPods, lookForPods).delete(pod)
	for range leaving/lookForPods + 1 {
		w.look().pass(lookForPods)
	}
	w.look().mustWait(refresh, refresh).mustHold("pvc-a")
}

func TestCordonedNodeIsCheckedOftenForALimitedTime(t *testing.T) {
	w, _ := usesFiles(t)
	w.cordon()
	for i, step := range []struct {
		after  time.Duration
		change func() *world
		often  bool
	}{
		{0, nil, true},
		{drainedWithin - time.Second, nil, true},
		{time.Second, nil, false},
		{time.Hour, nil, false},
		{0, func() *world { return w.untaint("node-1") }, false},
		{0, w.cordon, true},
	} {
		w.pass(step.after)
		if step.change != nil {
			step.change()
		}
		after := w.look().after
		must.True(t, (after == lookForPods) == step.often, "step %d: checked again after %s", i, after)
	}
}

func TestOnlyPlacedPodsWakeTheController(t *testing.T) {
	pod := func(node string, phase corev1.PodPhase) *corev1.Pod {
		return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{fence.UnattachedLabel: "true"}}, Spec: corev1.PodSpec{NodeName: node}, Status: corev1.PodStatus{Phase: phase}}
	}
	update := func(before, after *corev1.Pod) bool {
		return placed().Update(event.UpdateEvent{ObjectOld: before, ObjectNew: after})
	}
	waiting, pending, running := pod("", corev1.PodPending), pod("node-1", corev1.PodPending), pod("node-1", corev1.PodRunning)
	for name, test := range map[string]struct{ got, want bool }{
		"created on a node": {placed().Create(event.CreateEvent{Object: running}), true},
		"placed":            {update(waiting, pending), true},
		"started":           {update(pending, running), true},
		"unchanged":         {update(running, running), false},
		"not labelled":      {placed().Create(event.CreateEvent{Object: &corev1.Pod{Spec: corev1.PodSpec{NodeName: "node-1"}}}), false},
	} {
		must.True(t, test.got == test.want, "a pod that is %s passes: %v", name, test.got)
	}
}
