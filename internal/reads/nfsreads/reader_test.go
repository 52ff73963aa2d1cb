package nfsreads

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/fairlead-io/fairlead/api/v1alpha1"
	"github.com/fairlead-io/fairlead/internal/reads"
	"github.com/fairlead-io/fairlead/internal/reads/lists"
	"github.com/fairlead-io/fairlead/internal/testkit/must"
)

func TestUseOfNFSServices(t *testing.T) {
	scheme, err := reads.NewScheme()
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
	reader := &Reader{lists.NewLive(objects), Drivers{"d": {}, "e": {Namespace: "b", Name: "files"}}}
	uses, err := reader.Uses(t.Context())
	must.Do(t, err)
	// A node with a volume of a driver that is no longer served has the service mounted all the same.
	for service, want := range map[string]string{
		"a/files": "{[pv-1] [{a/files node-1 pv-1  false} {a/files node-1 pv-3 10.0.0.3 false} {a/files node-2 pv-1 10.0.0.1 false} {a/files node-3 gone 10.0.0.5 false}]}",
		"b/files": "{[pv-2] [{b/files node-1 pv-2 10.0.0.2 false}]}",
	} {
		namespace, name, _ := strings.Cut(service, "/")
		must.Equal(t, fmt.Sprint(*uses[types.NamespacedName{Namespace: namespace, Name: name}]), want)
	}
	must.Equal(t, len(uses), 2, "services")
	services, err := reader.Services(t.Context())
	if err != nil || len(services) != 2 || services[0].Namespace != "a" {
		t.Errorf("got %v, %v", services, err)
	}
	if s, err := reader.Service(t.Context(), types.NamespacedName{Namespace: "a", Name: "none"}); s != nil || err != nil {
		t.Errorf("got %v, %v", s, err)
	}
}

func TestServiceOfVolume(t *testing.T) {
	drivers := Drivers{"nfs.fairlead.io": {}, "nfs.lb.csi.storage.gke.io": {Namespace: "storage", Name: "pool"}}
	source := func(driver string, attributes ...string) *corev1.CSIPersistentVolumeSource {
		s := &corev1.CSIPersistentVolumeSource{Driver: driver, VolumeAttributes: map[string]string{}}
		for i := 0; i < len(attributes); i += 2 {
			s.VolumeAttributes[attributes[i]] = attributes[i+1]
		}
		return s
	}
	for _, test := range []struct {
		source *corev1.CSIPersistentVolumeSource
		want   string
	}{
		{source("nfs.fairlead.io", "service", "a/b"), "a/b"},
		{source("nfs.lb.csi.storage.gke.io"), "storage/pool"},
		{source("nfs.lb.csi.storage.gke.io", "service", "a/b"), "a/b"},
		{source("nfs.fairlead.io"), ""},
		{source("nfs.fairlead.io", "service", "b"), ""},
		{source("nfs.fairlead.io", "service", "a/b/c"), ""},
		{source("nfs.fairlead.io", "service", "/b"), ""},
	} {
		got, err := drivers.OfVolume(test.source, "pv")
		if (test.want == "") != errors.Is(err, ErrNoService) || err == nil && got.String() != test.want {
			t.Errorf("%v: got %s, %v, want %q", test.source, got, err, test.want)
		}
	}
}

// Nothing removes the finalizer of an attacher that does not run.
func TestAttachmentOfADriverThatIsNotServedCountsUntilItsDeletion(t *testing.T) {
	va := &storagev1.VolumeAttachment{ObjectMeta: metav1.ObjectMeta{Finalizers: []string{Finalizer("other")}, Annotations: map[string]string{"fairlead.io/nfs-attached-service": "a/files"}}}
	va.Spec.Attacher, va.Status.AttachmentMetadata = "other", map[string]string{"other/assigned-ip": "10.0.0.1"}
	none := func(string) (*corev1.CSIPersistentVolumeSource, error) { return nil, nil }
	for _, served := range []bool{false, true} {
		drivers := Drivers{}
		if served {
			drivers["other"] = types.NamespacedName{}
		}
		va.DeletionTimestamp = nil
		a, ok, err := drivers.Attachment(va, none)
		must.True(t, ok && err == nil && a.Service.String() == "a/files", "%+v, %v", a, err)
		va.DeletionTimestamp = &metav1.Time{}
		_, ok, err = drivers.Attachment(va, none)
		must.True(t, ok == served && err == nil, "while it is deleted, served %v: %v, %v", served, ok, err)
	}
}
