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
	"github.com/fairlead-io/fairlead/internal/cluster/fencing"
	"github.com/fairlead-io/fairlead/internal/fence"
	"github.com/fairlead-io/fairlead/internal/testkit/objects"
)

// mustRecord compares the volumes on the record of node-1.
func (w *world) mustRecord(want ...string) {
	w.Helper()
	var got []string
	for _, v := range w.record("node-1").Status.Volumes {
		got = append(got, v.PersistentVolume)
	}
	if slices.Sort(got); !slices.Equal(got, want) {
		w.Fatalf("on record are %q, want %q", got, want)
	}
}

// usesFiles is a node on which a pod uses a volume without attachment.
func usesFiles(t *testing.T) (*world, *corev1.Pod) {
	t.Helper()
	pod := objects.Pod("default", "app", "node-1", "claim-files")
	w := newWorld(t, pod, volume("files", cephfs, "rook-ceph"),
		&storagev1.CSIDriver{ObjectMeta: metav1.ObjectMeta{Name: cephfs}, Spec: storagev1.CSIDriverSpec{AttachRequired: ptr.To(false)}})
	w.look()
	w.mustRecord("files", "pvc-a")
	return w, pod
}

// The node may be cut off, before Kubernetes says so: the pod runs, and writes.
func TestForceDeletedPodKeepsItsVolumeOnRecord(t *testing.T) {
	w, pod := usesFiles(t)
	w.Must(w.Delete(t.Context(), pod))
	for range 4 {
		if after := w.look().RequeueAfter; after > leaving {
			t.Errorf("looks again after %s", after)
		}
		w.Pass(12 * time.Second)
	}
	w.lose("node-1")
	w.look()
	w.mustBe(v1alpha1.NodeLost, fence.ReasonNotReady)
	w.mustRecord("files", "pvc-a")
}

func TestUnusedVolumeIsForgotten(t *testing.T) {
	for name, after := range map[string]func(*world){
		"after a while":  func(w *world) { w.look(); w.Pass(leaving) },
		"after a reboot": func(w *world) { w.boot("node-1") },
	} {
		t.Run(name, func(t *testing.T) {
			w, pod := usesFiles(t)
			w.Must(w.Delete(t.Context(), pod))
			after(w)
			w.look()
			w.mustRecord("pvc-a")
			w.detach("pvc-a", "node-1")
			w.look()
			w.mustRecord()
		})
	}
}

// Whoever drains a node may delete its object next.
func TestCordonedNodeIsCheckedOftenUntilItIsDrained(t *testing.T) {
	w, pod := usesFiles(t)
	before := w.node("node-1")
	w.change("node-1", func(n *corev1.Node) { n.Spec.Unschedulable = true })
	if !fencing.FenceNodeChanged(before, w.node("node-1")) {
		t.Error("the cordon is no event")
	}
	if after := w.look().RequeueAfter; after != lookForPods {
		t.Errorf("cordoned, it is checked again after %s", after)
	}
	w.Must(w.Delete(t.Context(), pod))
	for range leaving/lookForPods + 1 {
		w.look()
		w.Pass(lookForPods)
	}
	if after := w.look().RequeueAfter; after != refresh {
		t.Errorf("drained, it is checked again after %s", after)
	}
	w.mustRecord("pvc-a")
}

func TestCordonedNodeIsCheckedOftenForALimitedTime(t *testing.T) {
	w, _ := usesFiles(t)
	cordon := func(cordoned bool) func(*corev1.Node) {
		return func(n *corev1.Node) { n.Spec.Unschedulable = cordoned }
	}
	w.change("node-1", cordon(true))
	for i, step := range []struct {
		after  time.Duration
		change func(*corev1.Node)
		often  bool
	}{
		{0, nil, true},
		{drainedWithin - time.Second, nil, true},
		{time.Second, nil, false},
		{time.Hour, nil, false},
		{0, cordon(false), false},
		{0, cordon(true), true},
	} {
		w.Pass(step.after)
		if step.change != nil {
			w.change("node-1", step.change)
		}
		if after := w.look().RequeueAfter; (after == lookForPods) != step.often {
			t.Errorf("step %d: checked again after %s", i, after)
		}
	}
}

func TestOnlyPlacedPodsWakeTheController(t *testing.T) {
	pod := func(node string, phase corev1.PodPhase) *corev1.Pod {
		return &corev1.Pod{Spec: corev1.PodSpec{NodeName: node}, Status: corev1.PodStatus{Phase: phase}}
	}
	update := func(before, after *corev1.Pod) bool {
		return placed().Update(event.UpdateEvent{ObjectOld: before, ObjectNew: after})
	}
	waiting, pending, running := pod("", corev1.PodPending), pod("node-1", corev1.PodPending), pod("node-1", corev1.PodRunning)
	for name, test := range map[string]struct{ got, want bool }{
		"created without a node": {placed().Create(event.CreateEvent{Object: waiting}), false},
		"created on a node":      {placed().Create(event.CreateEvent{Object: running}), true},
		"placed":                 {update(waiting, pending), true},
		"started":                {update(pending, running), true},
		"unchanged":              {update(running, running), false},
		"deleted":                {placed().Delete(event.DeleteEvent{Object: running}), false},
	} {
		if test.got != test.want {
			t.Errorf("a pod that is %s passes: %v", name, test.got)
		}
	}
}
