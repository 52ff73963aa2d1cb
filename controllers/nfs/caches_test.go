package nfs

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fairlead-io/fairlead/internal/testkit/must"
)

func TestOnlyWhatIsReadIsCached(t *testing.T) {
	s := slimmer{drivers: []string{"nfs.fairlead.io"}}
	meta := metav1.ObjectMeta{
		Name: "o", Labels: map[string]string{corev1.LabelTopologyZone: "a", "other": "x"}, Finalizers: []string{"f"},
		Annotations: map[string]string{"nfs.fairlead.io/assigned-ip": "10.0.0.1", "other": "x"},
	}
	node, _ := s.node(&corev1.Node{ObjectMeta: meta, Status: corev1.NodeStatus{Images: make([]corev1.ContainerImage, 9)}})
	n := node.(*corev1.Node)
	must.True(t, len(n.Annotations) == 1 && len(n.Labels) == 1 && n.Status.Images == nil, "node %+v", n)
	for driver, ours := range map[string]bool{"nfs.fairlead.io": true, "driver.longhorn.io": false} {
		pv, _ := s.volume(&corev1.PersistentVolume{ObjectMeta: meta, Spec: corev1.PersistentVolumeSpec{PersistentVolumeSource: corev1.PersistentVolumeSource{CSI: &corev1.CSIPersistentVolumeSource{Driver: driver}}}})
		v := pv.(*corev1.PersistentVolume)
		must.True(t, (v.Spec.CSI != nil) == ours && (len(v.Finalizers) > 0) == ours, "volume of %s: %+v", driver, pv)
		va, _ := s.attachment(&storagev1.VolumeAttachment{ObjectMeta: meta, Spec: storagev1.VolumeAttachmentSpec{Attacher: driver, NodeName: "n"}})
		if a := va.(*storagev1.VolumeAttachment); (a.Spec.NodeName != "") != ours || (len(a.Finalizers) > 0) != ours || a.Spec.Attacher != driver {
			t.Errorf("attachment of %s: %+v", driver, va)
		}
	}
}
