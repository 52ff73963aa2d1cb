package attach

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// VolumeIndex of PersistentVolumes, by driver and volumeHandle.
const VolumeIndex = "fairlead.io/csi-handle"

func handleKey(driver, id string) string { return driver + " " + id }

// VolumeKeys are the keys of VolumeIndex.
func VolumeKeys(o client.Object) []string {
	if pv, ok := o.(*corev1.PersistentVolume); ok && pv.Spec.CSI != nil {
		return []string{handleKey(pv.Spec.CSI.Driver, pv.Spec.CSI.VolumeHandle)}
	}
	return nil
}

// Index adds the index to a cache.
func Index(ctx context.Context, indexer client.FieldIndexer) error {
	if err := indexer.IndexField(ctx, &corev1.PersistentVolume{}, VolumeIndex, VolumeKeys); err != nil {
		return fmt.Errorf("indexing PersistentVolumes: %w", err)
	}
	return nil
}

// volumes are the PersistentVolumes of a driver with a volumeHandle.
func (r *Reconciler) volumes(ctx context.Context, driver, handle string) ([]corev1.PersistentVolume, error) {
	var list corev1.PersistentVolumeList
	if err := r.Client.List(ctx, &list, client.MatchingFields{VolumeIndex: handleKey(driver, handle)}); err != nil {
		return nil, fmt.Errorf("looking for volume %s: %w", handle, err)
	}
	return list.Items, nil
}

// checkHandle refuses volumes of one handle that name different services. Kubernetes names a VolumeAttachment by handle and
// node, so one VolumeAttachment serves all of them, with one server.
func (r *Reconciler) checkHandle(list []corev1.PersistentVolume, service types.NamespacedName, name string) error {
	for i := range list {
		pv := &list[i]
		of, err := r.Drivers.OfVolume(pv.Spec.CSI, pv.Name)
		if err != nil {
			return err
		}
		if of != service {
			return fmt.Errorf("PersistentVolumes %s and %s have volumeHandle %s and name NFSServices %s and %s: give them different handles",
				name, pv.Name, pv.Spec.CSI.VolumeHandle, service, of)
		}
	}
	return nil
}
