package fencing

import (
	"context"
	"log/slog"
	"strings"
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"

	"github.com/fairlead-io/fairlead/cluster"
	"github.com/fairlead-io/fairlead/fence"
)

func gatedUser(claims ...string) *corev1.Pod {
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "app", UID: "uid-app", Labels: map[string]string{fence.GatedLabel: "true", "app": "x"}},
		Spec:       corev1.PodSpec{SchedulingGates: []corev1.PodSchedulingGate{{Name: "other.io/gate"}, {Name: fence.SchedulingGate}}},
	}
	for _, c := range claims {
		pod.Spec.Volumes = append(pod.Spec.Volumes, corev1.Volume{Name: c, VolumeSource: corev1.VolumeSource{PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: c}}})
	}
	return pod
}

func claim(name, volume string) *corev1.PersistentVolumeClaim {
	return &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name}, Spec: corev1.PersistentVolumeClaimSpec{VolumeName: volume}}
}

// gates looks at the pod that waits, and returns the gates and labels that it has then.
func (w *world) gates(g *Gates) (gates []string, labels map[string]string) {
	w.Helper()
	_, err := g.Reconcile(w.Context(), ctrl.Request{NamespacedName: types.NamespacedName{Namespace: "default", Name: "app"}})
	w.must(err)
	var pod corev1.Pod
	w.must(w.Get(w.Context(), client.ObjectKey{Namespace: "default", Name: "app"}, &pod))
	for _, s := range pod.Spec.SchedulingGates {
		gates = append(gates, s.Name)
	}
	return gates, pod.Labels
}

func (w *world) newGates() *Gates {
	api := w.r.Client
	return &Gates{Client: api, Facts: w.r.Live, Holders: cluster.NewHolderReader(api, api), API: api, Events: recorder{w}, Log: slog.New(slog.DiscardHandler)}
}

func TestAGateIsLiftedWhenTheFenceStands(t *testing.T) {
	w := newWorld(t, gatedUser("claim-pvc-a", "unbound", "gone"), claim("claim-pvc-a", "pvc-a"), claim("unbound", ""))
	w.gone("node-1")
	w.look("node-1")
	g := w.newGates()
	for range 2 {
		if gates, _ := w.gates(g); len(gates) != 2 {
			t.Fatalf("lifted before the fence stands: %v", gates)
		}
	}
	told := 0
	for _, n := range w.notes {
		if strings.HasPrefix(n, "*v1.Pod Warning Fencing: volume pvc-a was last on node node-1") {
			told++
		}
	}
	if told != 1 {
		t.Fatalf("told %d times: %q", told, w.notes)
	}
	w.csi()
	w.look("node-1")
	gates, labels := w.gates(g)
	if len(gates) != 1 || gates[0] != "other.io/gate" || labels[fence.GatedLabel] != "" || labels["app"] != "x" {
		t.Fatalf("got %v, %v", gates, labels)
	}
	w.writes = nil
	w.gates(g)
	if len(w.writes) != 0 {
		t.Fatalf("wrote %q", w.writes)
	}
}

// A driver without attachments leaves a trace of who has a volume only in pods.
func TestAPodOnALostNodeHoldsAVolumeWithoutAttachment(t *testing.T) {
	user := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "old"}, Spec: corev1.PodSpec{NodeName: "node-1", Volumes: gatedUser("claim-files").Spec.Volumes}}
	w := newWorld(t, gatedUser("claim-files"), claim("claim-files", "files"), volume("files", cephfs, "rook-ceph"), user)
	w.lose("node-1")
	g := w.newGates()
	if gates, _ := w.gates(g); len(gates) != 2 {
		t.Fatalf("lifted: %v", gates)
	}
	w.change("node-1", w.ready(corev1.ConditionTrue))
	if gates, _ := w.gates(g); len(gates) != 1 {
		t.Fatalf("not lifted: %v", gates)
	}
}

// Somebody else takes his gate off meanwhile: the index is another one then.
func TestAGateIsNotMistakenForAnother(t *testing.T) {
	w := newWorld(t, gatedUser("claim-pvc-a"), claim("claim-pvc-a", "pvc-a"))
	w.funcs.Patch = func(ctx context.Context, c client.WithWatch, o client.Object, _ client.Patch, _ ...client.PatchOption) error {
		w.funcs.Patch = nil
		var pod corev1.Pod
		w.must(c.Get(ctx, client.ObjectKeyFromObject(o), &pod))
		pod.Spec.SchedulingGates = []corev1.PodSchedulingGate{{Name: fence.SchedulingGate}, {Name: "third.io/gate"}}
		return c.Update(ctx, &pod)
	}
	g := w.newGates()
	_, _ = g.Reconcile(t.Context(), ctrl.Request{NamespacedName: types.NamespacedName{Namespace: "default", Name: "app"}})
	if gates, _ := w.gates(g); len(gates) != 1 || gates[0] != "third.io/gate" {
		t.Fatalf("got %v", gates)
	}
}

// Whoever makes pods may set the label: it is the gate that makes a pod wait.
func TestTheLabelAloneMakesNoPodWait(t *testing.T) {
	labelled := gatedUser("claim-pvc-a")
	labelled.Name, labelled.UID, labelled.Spec.SchedulingGates = "labelled", "uid-labelled", nil
	waiting := gatedUser("claim-pvc-a")
	w := newWorld(t, waiting, labelled)
	if all := w.newGates().all(t.Context(), nil); len(all) != 1 || all[0].Name != "app" {
		t.Errorf("looks at %v", all)
	}
	p := gated()
	if p.Create(event.CreateEvent{Object: labelled}) || p.Update(event.UpdateEvent{ObjectOld: labelled, ObjectNew: labelled}) {
		t.Error("looks at a pod that has only the label")
	}
	if !p.Create(event.CreateEvent{Object: waiting}) || !p.Update(event.UpdateEvent{ObjectOld: waiting, ObjectNew: labelled}) {
		t.Error("does not look at a pod that waits, or did")
	}
}

func TestANamespacesPodsAreListedOncePerLook(t *testing.T) {
	w := newWorld(t, gatedUser("claim-pvc-a", "claim-pvc-b"), claim("claim-pvc-a", "pvc-a"), claim("claim-pvc-b", "pvc-b"), volume("pvc-b", rbd, "rook-ceph"))
	g := w.newGates()
	lists := 0
	w.funcs.List = func(ctx context.Context, c client.WithWatch, list client.ObjectList, opts ...client.ListOption) error {
		if _, pods := list.(*corev1.PodList); pods {
			lists++
		}
		return c.List(ctx, list, opts...)
	}
	if gates, _ := w.gates(g); len(gates) != 1 || lists != 1 {
		t.Fatalf("gates %v, listed %d times", gates, lists)
	}
}

// sizeOf what is remembered.
func sizeOf(m *sync.Map) (n int) {
	m.Range(func(any, any) bool { n++; return true })
	return n
}

// A pod that is deleted while it waits is not remembered, and the next one of its name is told anew.
func TestWhatAPodWasToldIsForgottenWithIt(t *testing.T) {
	w := newWorld(t, gatedUser("claim-pvc-a"), claim("claim-pvc-a", "pvc-a"))
	w.gone("node-1")
	w.look("node-1")
	g := w.newGates()
	w.gates(g)
	told := func() (n int) {
		for _, note := range w.notes {
			if strings.HasPrefix(note, "*v1.Pod Warning Fencing:") {
				n++
			}
		}
		return n
	}
	w.must(w.Delete(t.Context(), gatedUser()))
	next := gatedUser("claim-pvc-a")
	next.UID = "uid-next"
	w.must(w.Create(t.Context(), next))
	if w.gates(g); told() != 2 || sizeOf(&g.told) != 1 {
		t.Fatalf("told %d times, remembered are %d", told(), sizeOf(&g.told))
	}
	w.must(w.Delete(t.Context(), next))
	if _, err := g.Reconcile(t.Context(), ctrl.Request{NamespacedName: client.ObjectKeyFromObject(next)}); err != nil || sizeOf(&g.told) != 0 {
		t.Fatalf("remembered are %d (%v)", sizeOf(&g.told), err)
	}
}
