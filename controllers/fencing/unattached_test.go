package fencing

import (
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/event"

	"github.com/fairlead-io/fairlead/api/v1alpha1"
	"github.com/fairlead-io/fairlead/internal/cluster"
	"github.com/fairlead-io/fairlead/internal/fence"
)

func (w *world) recorded(volume string) bool {
	w.Helper()
	return slices.ContainsFunc(w.record("node-1").Status.Volumes, func(v v1alpha1.HeldVolume) bool { return v.PersistentVolume == volume })
}

// usesFiles is a node on which a pod uses a volume without attachment.
func usesFiles(t *testing.T) (*world, *corev1.Pod) {
	t.Helper()
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "app"}, Spec: corev1.PodSpec{NodeName: "node-1", Volumes: []corev1.Volume{
		{Name: "files", VolumeSource: corev1.VolumeSource{PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: "claim-files"}}},
	}}}
	w := newWorld(t, pod, volume("files", cephfs, "rook-ceph"),
		&storagev1.CSIDriver{ObjectMeta: metav1.ObjectMeta{Name: cephfs}, Spec: storagev1.CSIDriverSpec{AttachRequired: ptr.To(false)}})
	w.look("node-1")
	if !w.recorded("files") {
		t.Fatalf("on record are %+v", w.record("node-1").Status.Volumes)
	}
	return w, pod
}

// Its node was cut off, and Kubernetes had yet to say so: the pod runs, and writes.
func TestAPodThatWasDeletedByForceDoesNotTakeItsVolumeOffTheRecord(t *testing.T) {
	w, pod := usesFiles(t)
	w.must(w.Delete(t.Context(), pod))
	for range 4 {
		if after := w.look("node-1").RequeueAfter; after > leaving {
			t.Errorf("looked at again only after %s", after)
		}
		w.step(12 * time.Second)
	}
	w.lose("node-1")
	w.look("node-1")
	w.expect("node-1", v1alpha1.NodeLost, fence.ReasonNotReady)
	if !w.recorded("files") {
		t.Fatalf("on record are %+v", w.record("node-1").Status.Volumes)
	}
}

func TestAVolumeThatNoPodUsesAnyMoreIsForgotten(t *testing.T) {
	w, pod := usesFiles(t)
	w.must(w.Delete(t.Context(), pod))
	w.look("node-1")
	w.step(leaving)
	w.look("node-1")
	if w.recorded("files") || !w.recorded("pvc-a") {
		t.Fatalf("on record are %+v", w.record("node-1").Status.Volumes)
	}
	w, pod = usesFiles(t)
	w.must(w.Delete(t.Context(), pod))
	w.boot("node-1")
	w.look("node-1")
	if w.recorded("files") {
		t.Fatalf("after a boot, on record are %+v", w.record("node-1").Status.Volumes)
	}
	// One that has an attachment tells by it.
	w.detach("pvc-a", "node-1")
	w.look("node-1")
	if w.recorded("pvc-a") {
		t.Fatalf("on record are %+v", w.record("node-1").Status.Volumes)
	}
}

// Whoever drains a node may delete its object next: what its pods had is let go of as soon as may be.
func TestANodeThatIsDrainedIsLookedAtOften(t *testing.T) {
	w, pod := usesFiles(t)
	if after := w.look("node-1").RequeueAfter; after != refresh {
		t.Fatalf("looked at again after %s", after)
	}
	before := w.node("node-1")
	w.change("node-1", func(n *corev1.Node) { n.Spec.Unschedulable = true })
	if !cluster.FenceNodeChanged(before, w.node("node-1")) {
		t.Error("that it is cordoned is no event")
	}
	if after := w.look("node-1").RequeueAfter; after != lookForPods {
		t.Errorf("cordoned, it is looked at again after %s", after)
	}
	w.must(w.Delete(t.Context(), pod))
	for range leaving/lookForPods + 1 {
		w.look("node-1")
		w.step(lookForPods)
	}
	if after := w.look("node-1").RequeueAfter; w.recorded("files") || after != refresh {
		t.Errorf("on record are %+v; looked at again after %s", w.record("node-1").Status.Volumes, after)
	}
}

// One that stays cordoned, with pods that stay, is looked at like any other after a while.
func TestANodeThatStaysCordonedIsNotLookedAtOftenForEver(t *testing.T) {
	w, _ := usesFiles(t)
	w.change("node-1", func(n *corev1.Node) { n.Spec.Unschedulable = true })
	often := func(what string, want bool) {
		t.Helper()
		if after := w.look("node-1").RequeueAfter; (after == lookForPods) != want {
			t.Errorf("%s: looked at again after %s", what, after)
		}
	}
	often("cordoned", true)
	w.step(drainedWithin - time.Second)
	often("still", true)
	w.step(time.Second)
	often("for long", false)
	w.step(time.Hour)
	often("for longer", false)
	w.change("node-1", func(n *corev1.Node) { n.Spec.Unschedulable = false })
	often("not any more", false)
	w.change("node-1", func(n *corev1.Node) { n.Spec.Unschedulable = true })
	often("again", true)
}

func TestANodeIsLookedAtWhenAPodGetsToIt(t *testing.T) {
	pod := func(node string, phase corev1.PodPhase) *corev1.Pod {
		return &corev1.Pod{Spec: corev1.PodSpec{NodeName: node}, Status: corev1.PodStatus{Phase: phase}}
	}
	p := placed()
	for name, test := range map[string]struct{ got, want bool }{
		"waits":            {p.Create(event.CreateEvent{Object: pod("", corev1.PodPending)}), false},
		"is there":         {p.Create(event.CreateEvent{Object: pod("node-1", corev1.PodRunning)}), true},
		"gets to a node":   {p.Update(event.UpdateEvent{ObjectOld: pod("", corev1.PodPending), ObjectNew: pod("node-1", corev1.PodPending)}), true},
		"runs":             {p.Update(event.UpdateEvent{ObjectOld: pod("node-1", corev1.PodPending), ObjectNew: pod("node-1", corev1.PodRunning)}), true},
		"is as it was":     {p.Update(event.UpdateEvent{ObjectOld: pod("node-1", corev1.PodRunning), ObjectNew: pod("node-1", corev1.PodRunning)}), false},
		"is gone, somehow": {p.Delete(event.DeleteEvent{Object: pod("node-1", corev1.PodRunning)}), false},
	} {
		if test.got != test.want {
			t.Errorf("a pod that %s: %v", name, test.got)
		}
	}
}
