package attach

import (
	"context"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fairlead-io/fairlead/internal/csi"
)

// Indexes that the Publisher reads by.
const (
	// VolumeIndex of PersistentVolumes, by driver and volumeHandle.
	VolumeIndex = "fairlead.io/csi-handle"
	// NodeIndex of CSINodes, by driver and node ID.
	NodeIndex = "fairlead.io/csi-node"
)

func handleKey(driver, id string) string { return driver + " " + id }

// VolumeKeys are the keys of VolumeIndex.
func VolumeKeys(o client.Object) []string {
	if pv, ok := o.(*corev1.PersistentVolume); ok && pv.Spec.CSI != nil {
		return []string{handleKey(pv.Spec.CSI.Driver, pv.Spec.CSI.VolumeHandle)}
	}
	return nil
}

// NodeKeys are the keys of NodeIndex.
func NodeKeys(o client.Object) []string {
	var keys []string
	if n, ok := o.(*storagev1.CSINode); ok {
		for _, d := range n.Spec.Drivers {
			keys = append(keys, handleKey(d.Name, d.NodeID))
		}
	}
	return keys
}

// Index adds the indexes to a cache.
func Index(ctx context.Context, indexer client.FieldIndexer) error {
	if err := indexer.IndexField(ctx, &corev1.PersistentVolume{}, VolumeIndex, VolumeKeys); err != nil {
		return fmt.Errorf("indexing PersistentVolumes: %w", err)
	}
	if err := indexer.IndexField(ctx, &storagev1.CSINode{}, NodeIndex, NodeKeys); err != nil {
		return fmt.Errorf("indexing CSINodes: %w", err)
	}
	return nil
}

func isNotFound(err error) bool { return errors.Is(err, csi.ErrNotFound) }
