package attach

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/fairlead-io/fairlead/internal/reads/nfsreads"
)

// VolumeReleaser removes the finalizer that an external attacher has left on PersistentVolumes
// (pkg/controller/csi_handler.go: SyncNewOrUpdatedPersistentVolume). A request names a PersistentVolume.
//
// Fairlead writes no such finalizer. After a move from the external attacher, no other controller removes it, and a deleted
// PersistentVolume would stay for ever.
type VolumeReleaser struct {
	Client  client.Client
	Drivers nfsreads.Drivers
}

// Reconcile removes the finalizer of a deleted PersistentVolume, once no VolumeAttachment names the volume.
func (v *VolumeReleaser) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	var pv corev1.PersistentVolume
	if err := v.Client.Get(ctx, request.NamespacedName, &pv); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	if !v.isLeft(&pv) {
		return ctrl.Result{}, nil
	}
	var attachments storagev1.VolumeAttachmentList
	if err := v.Client.List(ctx, &attachments, client.UnsafeDisableDeepCopy); err != nil {
		return ctrl.Result{}, fmt.Errorf("looking for the attachments of PersistentVolume %s: %w", pv.Name, err)
	}
	if slices.ContainsFunc(attachments.Items, func(va storagev1.VolumeAttachment) bool { return nfsreads.VolumeName(&va) == pv.Name }) {
		return ctrl.Result{}, nil // its deletion is an event
	}
	data, err := json.Marshal(map[string]any{"metadata": map[string]any{
		"resourceVersion": pv.ResourceVersion, "uid": pv.UID, "finalizers": nfsreads.WithoutFinalizer(pv.Spec.CSI.Driver, pv.Finalizers),
	}})
	if err != nil {
		return ctrl.Result{}, fmt.Errorf("writing PersistentVolume %s: %w", pv.Name, err)
	}
	return ctrl.Result{}, client.IgnoreNotFound(v.Client.Patch(ctx, &pv, client.RawPatch(types.MergePatchType, data)))
}

// isLeft reports whether a PersistentVolume is deleted, and only Fairlead can remove its finalizer.
func (v *VolumeReleaser) isLeft(pv *corev1.PersistentVolume) bool {
	if pv.DeletionTimestamp == nil || pv.Spec.CSI == nil {
		return false
	}
	_, ours := v.Drivers[pv.Spec.CSI.Driver]
	return ours && slices.Contains(pv.Finalizers, nfsreads.Finalizer(pv.Spec.CSI.Driver))
}

// SetupWithManager registers the controller.
func (v *VolumeReleaser) SetupWithManager(mgr ctrl.Manager) error {
	left := predicate.NewPredicateFuncs(func(o client.Object) bool {
		pv, ok := o.(*corev1.PersistentVolume)
		return ok && v.isLeft(pv)
	})
	deleted := predicate.Funcs{
		CreateFunc: func(event.CreateEvent) bool { return false },
		UpdateFunc: func(event.UpdateEvent) bool { return false },
	}
	err := ctrl.NewControllerManagedBy(mgr).Named("nfs-volumes").
		For(&corev1.PersistentVolume{}, builder.WithPredicates(left)).
		Watches(&storagev1.VolumeAttachment{}, handler.EnqueueRequestsFromMapFunc(func(_ context.Context, o client.Object) []reconcile.Request {
			va, ok := o.(*storagev1.VolumeAttachment)
			if !ok || nfsreads.VolumeName(va) == "" {
				return nil
			}
			return []reconcile.Request{{NamespacedName: types.NamespacedName{Name: nfsreads.VolumeName(va)}}}
		}), builder.WithPredicates(deleted)).
		Complete(v)
	if err != nil {
		return fmt.Errorf("setting up the release of PersistentVolumes: %w", err)
	}
	return nil
}
