package attach

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fairlead-io/fairlead/controllers/kit"
	"github.com/fairlead-io/fairlead/controllers/nfs/pools"
)

// maxMessage keeps an attachError readable in a pod's events.
const maxMessage = 1000

// hold writes the attacher's finalizer, and the service by which the attachment is counted.
func (r *Reconciler) hold(ctx context.Context, va *storagev1.VolumeAttachment, service types.NamespacedName) error {
	finalizer := pools.Finalizer(va.Spec.Attacher)
	if slices.Contains(va.Finalizers, finalizer) && va.Annotations[pools.ServiceAnnotation] == service.String() {
		return nil
	}
	finalizers := va.Finalizers
	if !slices.Contains(finalizers, finalizer) {
		finalizers = append(slices.Clone(finalizers), finalizer)
	}
	return r.patch(ctx, va, map[string]any{"finalizers": finalizers, "annotations": map[string]string{pools.ServiceAnnotation: service.String()}})
}

// release removes the attacher's finalizer.
func (r *Reconciler) release(ctx context.Context, va *storagev1.VolumeAttachment) error {
	finalizer := pools.Finalizer(va.Spec.Attacher)
	others := slices.DeleteFunc(slices.Clone(va.Finalizers), func(f string) bool { return f == finalizer })
	return r.patch(ctx, va, map[string]any{"finalizers": others})
}

// refuse writes why the volume is not attached, once for each reason.
func (r *Reconciler) refuse(ctx context.Context, va *storagev1.VolumeAttachment, why error) error {
	message := kit.Clip(why.Error(), maxMessage)
	if have := va.Status.AttachError; have != nil && have.Message == message {
		return nil
	}
	r.Log.Warn("not attached", "volumeattachment", va.Name, "node", va.Spec.NodeName, "why", message)
	err := r.patchStatus(ctx, va, map[string]any{
		"attachError": storagev1.VolumeError{Time: metav1.NewTime(r.Clock.Now()), Message: message},
	})
	return client.IgnoreNotFound(err)
}

// patch changes the metadata, if the object still has the version that was read.
func (r *Reconciler) patch(ctx context.Context, va *storagev1.VolumeAttachment, metadata map[string]any) error {
	metadata["resourceVersion"], metadata["uid"] = va.ResourceVersion, va.UID
	data, err := json.Marshal(map[string]any{"metadata": metadata})
	if err != nil {
		return fmt.Errorf("writing VolumeAttachment %s: %w", va.Name, err)
	}
	return r.Client.Patch(ctx, va, client.RawPatch(types.MergePatchType, data))
}

// patchStatus changes the status, if the object still has the version that was read.
func (r *Reconciler) patchStatus(ctx context.Context, va *storagev1.VolumeAttachment, status map[string]any) error {
	data, err := json.Marshal(map[string]any{
		"metadata": map[string]any{"resourceVersion": va.ResourceVersion, "uid": va.UID}, "status": status,
	})
	if err != nil {
		return fmt.Errorf("writing the status of VolumeAttachment %s: %w", va.Name, err)
	}
	return r.Client.Status().Patch(ctx, va, client.RawPatch(types.MergePatchType, data))
}
