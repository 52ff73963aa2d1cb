package reads

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fairlead-io/fairlead/internal/reads/caches"
	"github.com/fairlead-io/fairlead/internal/reads/lists"
	"github.com/fairlead-io/fairlead/internal/rwx"
)

// Request reads the annotations that apply to one volume.
func (r *Reader) Request(ctx context.Context, volume string) (rwx.Request, error) {
	pv, err := r.persistentVolumeOf(ctx, volume)
	if err != nil || pv == nil {
		return rwx.Request{}, err
	}
	var claim rwx.RequestSource
	if ref := pv.Spec.ClaimRef; ref != nil {
		if claim, err = r.Claim(ctx, ref.Namespace, ref.Name, string(ref.UID)); err != nil {
			return rwx.Request{}, err
		}
	}
	class, provisioner, err := r.Class(ctx, pv.Spec.StorageClassName)
	if err != nil {
		return rwx.Request{}, err
	}
	if provisioner != r.names.Driver {
		class = rwx.RequestSource{}
	}
	request := rwx.Resolve(r.names.VolumeNetworks, claim, SourceOf(rwx.VolumeKind, pv), class)
	if request.Identity.IsZero() {
		return request, nil
	}
	// Only a comparison with all volumes shows whether another volume has the identity.
	all, err := r.Requests(ctx)
	return all.ByVolume[volume], err
}

// persistentVolumeOf finds the PersistentVolume of a volume, or nil. Provisioners give
// both the same name; a manually created PersistentVolume may have any name.
func (r *Reader) persistentVolumeOf(ctx context.Context, volume string) (*corev1.PersistentVolume, error) {
	pv, err := r.PersistentVolume(ctx, volume)
	if err != nil || pv != nil && r.isOf(pv, volume) {
		return pv, err
	}
	var found *corev1.PersistentVolume
	err = lists.ForEach(ctx, r.provisioned, &corev1.PersistentVolumeList{}, func(pv *corev1.PersistentVolume) {
		if found == nil && r.isOf(pv, volume) {
			found = pv.DeepCopy() // so that the page can be freed
		}
	})
	if err != nil {
		return nil, fmt.Errorf("listing PersistentVolumes: %w", err)
	}
	return found, nil
}

// isOf reports whether a PersistentVolume stands for a volume of Longhorn.
func (r *Reader) isOf(pv *corev1.PersistentVolume, volume string) bool {
	return pv.Spec.CSI != nil && pv.Spec.CSI.Driver == r.names.Driver && pv.Spec.CSI.VolumeHandle == volume
}

// PersistentVolume reads a PersistentVolume by name; nil if there is none.
func (r *Reader) PersistentVolume(ctx context.Context, name string) (*corev1.PersistentVolume, error) {
	var pv corev1.PersistentVolume
	err := r.provisioned.Get(ctx, client.ObjectKey{Name: name}, &pv)
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading PersistentVolume %s: %w", name, err)
	}
	return &pv, nil
}

// Claim reads the request of a claim; the zero source if the claim is gone or has
// another UID. An empty uid matches any claim of the name.
func (r *Reader) Claim(ctx context.Context, namespace, name, uid string) (rwx.RequestSource, error) {
	object := caches.ClaimMetadata()
	err := r.provisioned.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, object)
	if err == nil && (uid == "" || uid == string(object.UID)) {
		return SourceOf(rwx.ClaimKind, object), nil
	}
	if client.IgnoreNotFound(err) != nil {
		return rwx.RequestSource{}, fmt.Errorf("reading PersistentVolumeClaim %s/%s: %w", namespace, name, err)
	}
	return rwx.RequestSource{}, nil
}

// Class reads the request and the driver of a StorageClass; the zero source if
// there is none.
func (r *Reader) Class(ctx context.Context, name string) (source rwx.RequestSource, provisioner string, err error) {
	if name == "" {
		return source, "", nil
	}
	var class storagev1.StorageClass
	if err := r.provisioned.Get(ctx, client.ObjectKey{Name: name}, &class); apierrors.IsNotFound(err) {
		return source, "", nil
	} else if err != nil {
		return source, "", fmt.Errorf("reading StorageClass %s: %w", name, err)
	}
	return SourceOf(rwx.ClassKind, &class), class.Provisioner, nil
}
