package attach

import (
	"context"
	"testing"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fairlead-io/fairlead/internal/csi"
	"github.com/fairlead-io/fairlead/internal/testkit"
	"github.com/fairlead-io/fairlead/internal/testkit/must"
)

const (
	// sidecars is the finalizer that external-attacher writes.
	sidecars   = "external-attacher/nfs-fairlead-io"
	foreign    = "example.org/gate"
	nodeIDName = "csi.alpha.kubernetes.io/node-id"
)

func TestDetachRemovesTheFinalizerOfTheSidecar(t *testing.T) {
	for name, finalizers := range map[string][]string{"first": {sidecars, foreign}, "last": {foreign, sidecars}} {
		t.Run(name, func(t *testing.T) {
			w, l := attaching(t, serviceOf(1), 1)
			va := w.attachment(w.request("pv", "n0"))
			va.Finalizers = finalizers
			w.Must(w.Update(t.Context(), va))
			va.Status = storagev1.VolumeAttachmentStatus{Attached: true, AttachmentMetadata: map[string]string{csi.AddressKey(driver): "10.0.0.1"}}
			w.Must(w.Status().Update(t.Context(), va))
			l.observer.Observe(t.Context(), w.attachment(va.Name))
			must.Equal(t, l.loads(), []int{1}, "while the volume is attached")
			w.Must(w.Delete(t.Context(), va))
			l.observer.Observe(t.Context(), w.attachment(va.Name))
			must.Equal(t, l.loads(), []int{1}, "until the volume is released")
			l.settle(va.Name)
			must.Equal(t, w.attachment(va.Name).Finalizers, []string{foreign})
			must.Equal(t, l.loads(), []int{0})
			l.observer.Observe(t.Context(), w.attachment(va.Name))
			must.Equal(t, l.loads(), []int{0}, "after the event of the release")
		})
	}
}

// Volumes that are attached already are made fit for the way back, too.
func TestAttachmentsAreMarkedAsTheSidecarDoes(t *testing.T) {
	for name, finalizers := range map[string][]string{"new": nil, "another's": {foreign}, "both": {foreign, sidecars}} {
		t.Run(name, func(t *testing.T) {
			w, l := attaching(t, serviceOf(1), 1)
			va := w.attachment(w.request("pv", "n0"))
			if finalizers != nil {
				va.Finalizers = finalizers
				w.Must(w.Update(t.Context(), va))
				va.Status = storagev1.VolumeAttachmentStatus{Attached: true, AttachmentMetadata: map[string]string{csi.AddressKey(driver): "10.0.0.1"}}
				w.Must(w.Status().Update(t.Context(), va))
			}
			l.settle(va.Name)
			want := []string{sidecars}
			if finalizers != nil {
				want = []string{foreign, sidecars}
			}
			va = w.attachment(va.Name)
			must.Equal(t, va.Finalizers, want)
			must.Equal(t, va.Annotations[nodeIDName], "n0", "the sidecar detaches from nodes that are gone by this annotation")
		})
	}
}

func TestFinalizerOfDeletedVolumesGoesAfterTheirAttachments(t *testing.T) {
	w, l := attaching(t, serviceOf(1), 1)
	pv := testkit.Get[corev1.PersistentVolume](w, w.API, "", "pv")
	pv.Finalizers = []string{foreign, sidecars}
	w.Must(w.Update(t.Context(), pv))
	finalizers := func() []string {
		t.Helper()
		l.catchUp()
		_, err := l.volumes.Reconcile(context.Background(), request("pv"))
		w.Must(err)
		return testkit.Get[corev1.PersistentVolume](w, w.API, "", "pv").Finalizers
	}
	l.attach("pv", "n0")
	must.Equal(t, finalizers(), []string{foreign, sidecars}, "of a volume in use")
	w.Must(w.Delete(t.Context(), &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: "pv"}}))
	must.Equal(t, finalizers(), []string{foreign, sidecars}, "while the volume is attached")
	l.detach("pv", "n0")
	must.Equal(t, finalizers(), []string{foreign})
}

func TestFinalizersOfOtherAttachersVolumesStay(t *testing.T) {
	for name, change := range map[string]func(*corev1.PersistentVolume){
		"another driver": func(pv *corev1.PersistentVolume) { pv.Spec.CSI.Driver = "other.example.org" },
		"no CSI":         func(pv *corev1.PersistentVolume) { pv.Spec.CSI = nil },
	} {
		t.Run(name, func(t *testing.T) {
			w, l := attaching(t, serviceOf(1), 1)
			pv := testkit.Get[corev1.PersistentVolume](w, w.API, "", "pv")
			pv.Finalizers = []string{sidecars}
			change(pv)
			w.Must(w.Update(t.Context(), pv))
			w.Must(w.Delete(t.Context(), pv))
			_, err := l.volumes.Reconcile(context.Background(), request("pv"))
			w.Must(err)
			must.Equal(t, testkit.Get[corev1.PersistentVolume](w, w.API, "", "pv").Finalizers, []string{sidecars})
		})
	}
}
