package services

import (
	"context"
	"errors"
	"testing"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fairlead-io/fairlead/internal/csi"
	"github.com/fairlead-io/fairlead/internal/testkit/fakeapi"
	"github.com/fairlead-io/fairlead/internal/testkit/must"
	"github.com/fairlead-io/fairlead/internal/testkit/objects"
)

// mounted is an attachment with an address. The external attacher writes no annotations.
func (f *fixture) mounted(driver string, annotations map[string]string) {
	f.Helper()
	pv := objects.Volume("v", driver, "v", "v")
	pv.Spec.CSI.VolumeAttributes = map[string]string{"service": key.String()}
	f.Must(f.Create(context.Background(), pv))
	va := objects.Attachment("v", "n1", driver)
	va.Annotations = annotations
	va.Status = storagev1.VolumeAttachmentStatus{Attached: true, AttachmentMetadata: map[string]string{csi.AddressKey(driver): "10.96.0.1"}}
	f.Must(f.Seed(context.Background(), va))
}

type unread struct{ client.Reader }

func (u unread) Get(ctx context.Context, key client.ObjectKey, o client.Object, options ...client.GetOption) error {
	if _, ok := o.(*corev1.PersistentVolume); ok {
		return fakeapi.ErrCrashed
	}
	return u.Reader.Get(ctx, key, o, options...)
}

func TestServiceStaysWhileItsUsersAreUnreadable(t *testing.T) {
	f := running(t, "Stable", 1)
	f.mounted(csi.DefaultDriver, nil)
	f.Client.Cache = f.NewCache()
	f.Client.Cache.Absent(&corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: "v"}})
	f.r.Live = unread{f.API}
	f.Must(f.Delete(t.Context(), f.get()))
	_, err := f.r.Reconcile(t.Context(), requestOf())
	must.True(t, err != nil, "the pass is not tried again")
	f.get()
	f.Client.Cache.Release() // the cache has the volume: nothing else is to be read
	f.reconcile()
	f.notReady(reasonDeleted)
}

func TestServiceStaysWhileARemovedDriverHasIt(t *testing.T) {
	f := running(t, "Stable", 1)
	f.mounted("nfs.lb.csi.storage.gke.io", map[string]string{"fairlead.io/nfs-attached-service": key.String()})
	f.Must(f.Delete(t.Context(), f.get()))
	f.reconcile()
	f.notReady(reasonDeleted)
}

// Regression: with the namespace, Services and slices go at once, and only the NFSService is kept.
func TestDeletedNamespaceIsSaidToLoseTheAddresses(t *testing.T) {
	f := running(t, "Stable", 1)
	f.mounted(csi.DefaultDriver, nil)
	f.Must(f.Delete(t.Context(), f.get()))
	f.reconcile()
	f.notReady(reasonDeleted)
	var services corev1.ServiceList
	f.Must(f.List(t.Context(), &services, client.InNamespace(key.Namespace)))
	for i := range services.Items {
		f.Must(f.Delete(t.Context(), &services.Items[i]))
	}
	f.Client.Before = func(w fakeapi.Write) error {
		if w.Verb != "create" {
			return nil
		}
		return apierrors.NewForbidden(corev1.Resource("services"), w.Object.GetName(), errors.New("unable to create new content in namespace storage because it is being terminated"))
	}
	_, _ = f.r.Reconcile(t.Context(), requestOf())
	f.notReady(reasonLost)
}
