package fencingreads

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fairlead-io/fairlead/internal/fence"
)

// Volume reads a PersistentVolume; nil if there is none.
func (r *HolderReader) Volume(ctx context.Context, name string) (*fence.Volume, error) {
	var pv corev1.PersistentVolume
	if there, err := get(ctx, r.live, name, &pv); err != nil || !there {
		return nil, err
	}
	v := FenceVolume(&pv)
	return &v, nil
}

// BoundVolume reads the volume of a claim; nil if the claim is not bound.
func (r *HolderReader) BoundVolume(ctx context.Context, namespace, claim string) (*fence.Volume, error) {
	var pvc corev1.PersistentVolumeClaim
	err := r.live.Get(ctx, client.ObjectKey{Namespace: namespace, Name: claim}, &pvc)
	if apierrors.IsNotFound(err) || err == nil && pvc.Spec.VolumeName == "" {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading PersistentVolumeClaim %s/%s: %w", namespace, claim, err)
	}
	return r.Volume(ctx, pvc.Spec.VolumeName)
}

// Attached reports whether a driver's volumes have VolumeAttachments (attachRequired, true by default).
func (r *HolderReader) Attached(ctx context.Context, driver string) (bool, error) {
	var d storagev1.CSIDriver
	there, err := get(ctx, r.live, driver, &d)
	return !there || ptr.Deref(d.Spec.AttachRequired, true), err
}
