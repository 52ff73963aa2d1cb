package attach

import (
	"context"
	"encoding/json"
	"fmt"

	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fairlead-io/fairlead/controllers/kit"
	"github.com/fairlead-io/fairlead/internal/nfs/volume"
	"github.com/fairlead-io/fairlead/internal/reads/nfsreads"
)

// maxMessage keeps an attachError readable in a pod's events.
const maxMessage = 1000

// nodeIDAnnotation of a VolumeAttachment is the node's CSI ID. The external attacher detaches from nodes without a CSINode
// by it (pkg/controller/csi_handler.go: getNodeID). Fairlead's node IDs are the nodes' names.
const nodeIDAnnotation = "csi.alpha.kubernetes.io/node-id"

// isMarked reports whether a VolumeAttachment is held as the external attacher would hold it.
func isMarked(va *storagev1.VolumeAttachment) bool {
	return nfsreads.IsHeld(va) && va.Annotations[nodeIDAnnotation] != ""
}

// hold writes the attacher's finalizer, and the service by which the attachment is counted.
func (r *Reconciler) hold(ctx context.Context, va *storagev1.VolumeAttachment, service types.NamespacedName) error {
	if isMarked(va) && va.Annotations[volume.AttachedServiceAnnotation] == service.String() {
		return nil
	}
	annotations := map[string]string{volume.AttachedServiceAnnotation: service.String()}
	if va.Annotations[nodeIDAnnotation] == "" {
		annotations[nodeIDAnnotation] = va.Spec.NodeName
	}
	finalizers := append(nfsreads.WithoutFinalizer(va.Spec.Attacher, va.Finalizers), nfsreads.Finalizer(va.Spec.Attacher))
	return r.patch(ctx, va, map[string]any{"finalizers": finalizers, "annotations": annotations})
}

// release removes the attacher's finalizer.
func (r *Reconciler) release(ctx context.Context, va *storagev1.VolumeAttachment) error {
	return r.patch(ctx, va, map[string]any{"finalizers": nfsreads.WithoutFinalizer(va.Spec.Attacher, va.Finalizers)})
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
