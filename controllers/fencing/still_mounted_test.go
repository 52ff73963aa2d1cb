package fencing

import (
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/fairlead-io/fairlead/api/v1alpha1"
	"github.com/fairlead-io/fairlead/internal/fence"
)

// labelled tells by which value the API server finds the record while it judges alone.
func (w *world) labelled() string {
	w.Helper()
	return w.record("node-1").Labels[fence.PhaseLabel]
}

// backAsItWas is a node whose volume was taken by force, and that is Ready again in the same boot.
func backAsItWas(t *testing.T, inUse bool) *world {
	t.Helper()
	w := newWorld(t)
	w.look("node-1")
	w.lose("node-1")
	w.look("node-1")
	w.detach("pvc-a", "node-1")
	w.look("node-1")
	w.writes = nil
	w.change("node-1", func(n *corev1.Node) {
		w.ready(corev1.ConditionTrue)(n)
		if inUse {
			n.Status.VolumesInUse = []corev1.UniqueVolumeName{corev1.UniqueVolumeName(fence.UniqueName(rbd, "handle-pvc-a"))}
		}
	})
	w.look("node-1")
	if s := w.record("node-1").Status; s.Phase != v1alpha1.NodeHealthy || s.Reason != fence.ReasonReady {
		t.Fatalf("the node is %s (%s)", s.Phase, s.Reason)
	}
	return w
}

// While it may still write, the API server has to find its record without Fairlead.
func TestTheLabelTellsOfWhatIsStillMounted(t *testing.T) {
	w := backAsItWas(t, false)
	if got := w.labelled(); got != fence.ReasonStillMounted {
		t.Fatalf("given time to end, it is labelled %s", got)
	}
	w.step(5*time.Minute + time.Second)
	w.look("node-1")
	if got := w.labelled(); got != string(v1alpha1.NodeHealthy) {
		t.Fatalf("when that has passed, it is labelled %s", got)
	}
	w = backAsItWas(t, true)
	w.step(time.Hour)
	w.look("node-1")
	if got := w.labelled(); got != fence.ReasonStillMounted {
		t.Fatalf("while its kubelet uses the volume, it is labelled %s", got)
	}
	w.change("node-1", func(n *corev1.Node) { n.Status.VolumesInUse = nil })
	w.look("node-1")
	if got := w.labelled(); got != string(v1alpha1.NodeHealthy) {
		t.Fatalf("when that is unmounted, it is labelled %s", got)
	}
}

// It is lost, detached and back before anybody looks: the record says Healthy all the time.
func TestTheLabelOfWhatIsStillMountedComesBeforeTheStatus(t *testing.T) {
	w := newWorld(t)
	w.change("node-1", func(n *corev1.Node) {
		n.Status.VolumesInUse = []corev1.UniqueVolumeName{corev1.UniqueVolumeName(fence.UniqueName(rbd, "handle-pvc-a"))}
	})
	w.look("node-1")
	w.detach("pvc-a", "node-1")
	w.writes = nil
	w.look("node-1")
	if got := w.labelled(); got != fence.ReasonStillMounted {
		t.Fatalf("it is labelled %s", got)
	}
	label, status := slices.Index(w.writes, "patch *v1alpha1.NodeFence node-1"), slices.Index(w.writes, "update status *v1alpha1.NodeFence node-1")
	if label < 0 || status < label {
		t.Fatalf("written in the order %v", w.writes)
	}
}
