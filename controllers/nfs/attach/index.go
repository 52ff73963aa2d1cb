package attach

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
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
