package fencingreads

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
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

// Unattached names the protected drivers whose volumes have no VolumeAttachments (attachRequired, true by default).
func Unattached(ctx context.Context, from client.Reader, protects func(driver string) bool) (drivers []string, err error) {
	list, err := readAll(ctx, from, &storagev1.CSIDriverList{})
	for i := range list.Items {
		if d := &list.Items[i]; !ptr.Deref(d.Spec.AttachRequired, true) && protects(d.Name) {
			drivers = append(drivers, d.Name)
		}
	}
	return drivers, err
}
