package nfs

import (
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/fairlead-io/fairlead/api/v1alpha1"
	"github.com/fairlead-io/fairlead/internal/cluster"
	"github.com/fairlead-io/fairlead/internal/cluster/lists"
	"github.com/fairlead-io/fairlead/internal/testkit/must"
)

func TestUseOfNFSServices(t *testing.T) {
	scheme, err := cluster.NewScheme()
	must.Do(t, err)
	pv := func(name, driver, service string) *corev1.PersistentVolume {
		attributes := map[string]string{"service": service}
		if service == "" {
			attributes = nil
		}
		return &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: corev1.PersistentVolumeSpec{PersistentVolumeSource: corev1.PersistentVolumeSource{
			CSI: &corev1.CSIPersistentVolumeSource{Driver: driver, VolumeHandle: name, VolumeAttributes: attributes}}}}
	}
	va := func(volume, node, driver, address, recorded string) *storagev1.VolumeAttachment {
		a := &storagev1.VolumeAttachment{ObjectMeta: metav1.ObjectMeta{Name: volume + "-" + node}, Spec: storagev1.VolumeAttachmentSpec{
			Attacher: driver, NodeName: node, Source: storagev1.VolumeAttachmentSource{PersistentVolumeName: &volume}}}
		if address != "" {
			a.Status.AttachmentMetadata = map[string]string{driver + "/assigned-ip": address, "other": "x"}
		}
		if recorded != "" {
			a.Annotations = map[string]string{"fairlead.io/nfs-attached-service": recorded}
		}
		return a
	}
	objects := fake.NewClientBuilder().WithScheme(scheme).WithObjects(
		&v1alpha1.NFSService{ObjectMeta: metav1.ObjectMeta{Namespace: "b", Name: "files"}}, &v1alpha1.NFSService{ObjectMeta: metav1.ObjectMeta{Namespace: "a", Name: "files"}},
		pv("pv-1", "d", "a/files"), pv("pv-2", "e", ""), pv("pv-3", "other", "a/files"), pv("pv-4", "d", "malformed"),
		va("pv-1", "node-2", "d", "10.0.0.1", ""), va("pv-1", "node-1", "d", "", ""), va("pv-2", "node-1", "e", "10.0.0.2", "b/files"),
		va("pv-3", "node-1", "other", "10.0.0.3", "a/files"), va("pv-4", "node-1", "d", "10.0.0.4", ""), va("gone", "node-3", "d", "10.0.0.5", "a/files"),
	).Build()
	reader := NewNFSReader(lists.NewLive(objects), map[string]types.NamespacedName{"d": {}, "e": {Namespace: "b", Name: "files"}})
	use, err := reader.Use(t.Context())
	must.Do(t, err)
	const want = "map[a/files:{[pv-1] [{node-1 pv-1 d  false} {node-2 pv-1 d 10.0.0.1 false} {node-3 gone d 10.0.0.5 false}]} b/files:{[pv-2] [{node-1 pv-2 e 10.0.0.2 false}]}]"
	if got := fmt.Sprint(use); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	services, err := reader.Services(t.Context())
	if err != nil || len(services) != 2 || services[0].Namespace != "a" {
		t.Errorf("got %v, %v", services, err)
	}
	if s, err := reader.Service(t.Context(), types.NamespacedName{Namespace: "a", Name: "none"}); s != nil || err != nil {
		t.Errorf("got %v, %v", s, err)
	}
}
