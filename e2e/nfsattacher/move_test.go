// Package nfsattacher moves volumes between Kubernetes' external-attacher and
// Fairlead's attacher, there and back. It is a module of its own, so that the
// sidecar's requirements stay out of the product's go.mod.
package nfsattacher

import (
	"context"
	"testing"
	"time"

	csispec "github.com/container-storage-interface/spec/lib/go/csi"
	"github.com/kubernetes-csi/external-attacher/v4/pkg/controller"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/csi-translation-lib"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fairlead-io/fairlead/api/v1alpha1"
	"github.com/fairlead-io/fairlead/controllers/nfs/attach"
	"github.com/fairlead-io/fairlead/controllers/nfs/pools"
	"github.com/fairlead-io/fairlead/internal/nfs/volume"
	"github.com/fairlead-io/fairlead/internal/reads"
	"github.com/fairlead-io/fairlead/internal/reads/nfsreads"
	"github.com/fairlead-io/fairlead/internal/testkit"
	"github.com/fairlead-io/fairlead/internal/testkit/fakeapi"
	"github.com/fairlead-io/fairlead/internal/testkit/must"
	"github.com/fairlead-io/fairlead/internal/testkit/objects"
)

func TestFinalizersAreTheSidecars(t *testing.T) {
	for _, driver := range []string{volume.GKEDriver, "nfs.fairlead.io", "nfs.csi.k8s.io", "nfs", "a_b.c", "ends.", "UPPER-case.9"} {
		if got, want := nfsreads.Finalizer(driver), controller.GetFinalizerName(driver); got != want {
			t.Errorf("driver %s: finalizer %s, the sidecar's is %s", driver, got, want)
		}
	}
}

// sidecar is the real handler of external-attacher. The driver that it calls always answers.
type sidecar struct {
	client  *fake.Clientset
	handler controller.Handler
}

type driver struct{}

func (driver) Attach(context.Context, string, bool, string, *csispec.VolumeCapability, map[string]string, map[string]string) (map[string]string, bool, error) {
	return map[string]string{volume.GKEDriver + "/assigned-ip": "10.0.0.1"}, false, nil
}

func (driver) Detach(context.Context, string, string, map[string]string) error { return nil }

func newSidecar(t *testing.T, objects ...runtime.Object) *sidecar {
	client := fake.NewClientset(objects...)
	factory := informers.NewSharedInformerFactory(client, 0)
	timeout := time.Minute
	handler := controller.NewCSIHandler(client, volume.GKEDriver, driver{}, nil, factory.Core().V1().PersistentVolumes().Lister(),
		factory.Storage().V1().CSINodes().Lister(), factory.Storage().V1().VolumeAttachments().Lister(), &timeout, true, true, csitranslation.New(), "")
	queue := func() workqueue.TypedRateLimitingInterface[string] {
		return workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[string]())
	}
	handler.Init(queue(), queue())
	factory.Start(t.Context().Done())
	factory.WaitForCacheSync(t.Context().Done())
	return &sidecar{client, handler}
}

const node, name = "n0", "pv"

func persistentVolume() *corev1.PersistentVolume {
	pv := &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: name, UID: "pv-uid"}}
	pv.Spec.AccessModes = []corev1.PersistentVolumeAccessMode{corev1.ReadWriteMany}
	pv.Spec.CSI = &corev1.CSIPersistentVolumeSource{Driver: volume.GKEDriver, VolumeHandle: name, VolumeAttributes: map[string]string{"share": "/gpfs/fs1"}}
	return pv
}

func csiNode() *storagev1.CSINode {
	return &storagev1.CSINode{ObjectMeta: metav1.ObjectMeta{Name: node}, Spec: storagev1.CSINodeSpec{Drivers: []storagev1.CSINodeDriver{{Name: volume.GKEDriver, NodeID: node}}}}
}

func attachment() *storagev1.VolumeAttachment {
	return objects.Attachment(name, node, volume.GKEDriver, func(va *storagev1.VolumeAttachment) { va.UID = "va-uid" })
}

// fairlead is Fairlead's attacher over an API with these objects.
func fairlead(t *testing.T, stored ...client.Object) (*testkit.Bench, func()) {
	service := &v1alpha1.NFSService{ObjectMeta: metav1.ObjectMeta{Namespace: "storage", Name: "pool"}, Spec: v1alpha1.NFSServiceSpec{Exposure: "PerNode", Port: 2049}}
	service.Status.Backends = []v1alpha1.NFSBackendStatus{{Address: "10.0.0.1:2049", Health: "Healthy", Weight: 1}}
	b := testkit.NewBench(t, fakeapi.New(testkit.Value[*runtime.Scheme](t)(reads.NewScheme()),
		[]fakeapi.Index{{Object: &corev1.PersistentVolume{}, Field: attach.VolumeIndex, Keys: attach.VolumeKeys}}, &v1alpha1.NFSService{}),
		append(stored, service, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: node}})...)
	drivers := nfsreads.Drivers{volume.GKEDriver: client.ObjectKeyFromObject(service)}
	assignments := pools.New()
	assignments.SetService(service)
	r := &attach.Reconciler{
		Client: b.Client, Live: b.API, Pools: assignments, Drivers: drivers, Clock: b.Clock, Log: b.Log,
	}
	volumes := &attach.VolumeReleaser{Client: b.Client, Drivers: drivers}
	return b, func() {
		t.Helper()
		for range 3 {
			for of, reconcile := range map[string]func(context.Context, ctrl.Request) (ctrl.Result, error){attachment().Name: r.Reconcile, name: volumes.Reconcile} {
				_, err := reconcile(t.Context(), ctrl.Request{NamespacedName: client.ObjectKey{Name: of}})
				b.Must(err)
			}
		}
	}
}

// stored is an object as another API server can take it over.
func stored[T client.Object](t *testing.T) func(T, error) T {
	return func(o T, err error) T {
		must.Do(t, err)
		o.SetResourceVersion("")
		return o
	}
}

func TestFairleadReleasesWhatTheSidecarAttached(t *testing.T) {
	sidecar := newSidecar(t, persistentVolume(), csiNode(), attachment())
	sidecar.handler.SyncNewOrUpdatedVolumeAttachment(t.Context(), attachment())
	va := stored[*storagev1.VolumeAttachment](t)(sidecar.client.StorageV1().VolumeAttachments().Get(t.Context(), attachment().Name, metav1.GetOptions{}))
	pv := stored[*corev1.PersistentVolume](t)(sidecar.client.CoreV1().PersistentVolumes().Get(t.Context(), name, metav1.GetOptions{}))
	must.True(t, va.Status.Attached && len(va.Finalizers) == 1 && len(pv.Finalizers) == 1, "the sidecar attached %+v, %+v", va, pv)

	b, settle := fairlead(t, va, pv)
	settle()
	must.Equal(t, testkit.Get[storagev1.VolumeAttachment](b, b.API, "", va.Name).Status.AttachmentMetadata, va.Status.AttachmentMetadata, "the address of a mounted volume")
	b.Must(b.Delete(t.Context(), va))
	b.Must(b.Delete(t.Context(), pv))
	settle()
	must.Equal(t, testkit.Get[storagev1.VolumeAttachment](b, b.API, "", va.Name), nil)
	must.Equal(t, testkit.Get[corev1.PersistentVolume](b, b.API, "", name), nil)
}

// The node may be gone by then: its ID is in the VolumeAttachment.
func TestSidecarReleasesWhatFairleadAttached(t *testing.T) {
	b, settle := fairlead(t, persistentVolume(), attachment())
	settle()
	va := testkit.Get[storagev1.VolumeAttachment](b, b.API, "", attachment().Name)
	must.True(t, va.Status.Attached && len(va.Finalizers) == 1, "Fairlead attached %+v", va)

	now := metav1.Now()
	va.DeletionTimestamp = &now
	sidecar := newSidecar(t, persistentVolume(), va)
	sidecar.handler.SyncNewOrUpdatedVolumeAttachment(t.Context(), va)
	after, err := sidecar.client.StorageV1().VolumeAttachments().Get(t.Context(), va.Name, metav1.GetOptions{})
	must.True(t, apierrors.IsNotFound(err) || len(after.Finalizers) == 0, "the sidecar left %+v", after)
}
