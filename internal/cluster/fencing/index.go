package fencing

import (
	"context"
	"fmt"
	"slices"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fairlead-io/fairlead/api/v1alpha1"
	"github.com/fairlead-io/fairlead/internal/cluster/caches"
	"github.com/fairlead-io/fairlead/internal/cluster/csiaddons"
	"github.com/fairlead-io/fairlead/internal/fence"
)

// Fields of the indexes of candidates: heldVolume has the name of a PersistentVolume, on NodeFences its unique name
// too, and volumeInUse its unique name on Nodes.
const (
	heldVolume  = "fairlead.io/volume"
	volumeInUse = "fairlead.io/in-use"
	// recordedNode has the node name of a NodeFence.
	recordedNode = "fairlead.io/node"
)

// HolderIndex is one index of candidates.
type HolderIndex struct {
	Object client.Object
	Field  string
	Keys   client.IndexerFunc
}

// HolderIndexes are the indexes that a HolderReader needs in its cache.
func HolderIndexes() []HolderIndex {
	return []HolderIndex{
		{&v1alpha1.NodeFence{}, heldVolume, func(o client.Object) (names []string) {
			for _, v := range o.(*v1alpha1.NodeFence).Status.Volumes {
				names = append(names, volumeKeys(v)...)
			}
			return names
		}},
		{&v1alpha1.NodeFence{}, recordedNode, func(o client.Object) []string { return []string{NodeOfFence(o.(*v1alpha1.NodeFence))} }},
		{&storagev1.VolumeAttachment{}, heldVolume, func(o client.Object) []string {
			if name := o.(*storagev1.VolumeAttachment).Spec.Source.PersistentVolumeName; name != nil {
				return []string{*name}
			}
			return nil
		}},
		{&corev1.Node{}, volumeInUse, func(o client.Object) []string { return volumesInUse(o.(*corev1.Node)) }},
	}
}

// volumeKeys are the keys of a volume on record: its PersistentVolume, and its unique name.
func volumeKeys(v v1alpha1.HeldVolume) []string {
	if v.VolumeHandle == "" {
		return []string{v.PersistentVolume}
	}
	return []string{v.PersistentVolume, fence.UniqueName(v.Driver, v.VolumeHandle)}
}

// Fields of the indexes with which a FenceReader reads the objects of one node only.
const (
	attachedNode = "fairlead.io/attached-node"
	podNode      = "fairlead.io/pod-node"
	selfFencer   = "fairlead.io/self-fencer"
	driverNodeID = "fairlead.io/driver-node-id"
)

// FenceIndexes are the indexes that a FenceReader needs in its cache, besides that of IndexAddons.
func FenceIndexes() []HolderIndex {
	return append(HolderIndexes(),
		HolderIndex{&storagev1.VolumeAttachment{}, attachedNode, func(o client.Object) []string {
			return []string{o.(*storagev1.VolumeAttachment).Spec.NodeName}
		}},
		HolderIndex{&corev1.Pod{}, podNode, func(o client.Object) []string { return []string{o.(*corev1.Pod).Spec.NodeName} }},
		HolderIndex{&corev1.Pod{}, selfFencer, func(o client.Object) []string {
			return []string{strconv.FormatBool(caches.FencesItself(o.(*corev1.Pod)))}
		}},
		HolderIndex{&storagev1.CSINode{}, driverNodeID, func(o client.Object) (ids []string) {
			for _, d := range o.(*storagev1.CSINode).Spec.Drivers {
				ids = append(ids, FenceHandle(d.Name, d.NodeID))
			}
			return ids
		}},
	)
}

// IndexAddons adds the index of CSIAddonsNodes by node. FenceIndexes lacks that index, since a kind that is not installed
// can't be indexed.
func (r *FenceReader) IndexAddons(ctx context.Context, indexer client.FieldIndexer) error {
	err := indexer.IndexField(ctx, &csiaddons.CSIAddonsNode{}, driverNodeID, func(o client.Object) []string {
		d := o.(*csiaddons.CSIAddonsNode).Spec.Driver
		return []string{FenceHandle(d.Name, d.NodeID)}
	})
	if err != nil {
		return fmt.Errorf("indexing CSIAddonsNodes: %w", err)
	}
	r.addonsIndexed.Store(true)
	return nil
}

// by selects objects with an index. Without indexes it selects all, so the caller must filter.
func (r *FenceReader) by(field, value string, more ...client.ListOption) []client.ListOption {
	options := append(slices.Clone(more), client.UnsafeDisableDeepCopy)
	if r.indexed {
		options = append(options, client.MatchingFields{field: value})
	}
	return options
}

// HandleIndex is the index of PersistentVolumes by FenceHandle in the controller's cache.
const HandleIndex = "spec.csi.volumeHandle"

// FenceHandle is the key of HandleIndex.
func FenceHandle(driver, handle string) string { return driver + "^" + handle }

// IndexHandles adds HandleIndex to a cache.
func IndexHandles(ctx context.Context, indexer client.FieldIndexer) error {
	err := indexer.IndexField(ctx, &corev1.PersistentVolume{}, HandleIndex, func(o client.Object) []string {
		pv, ok := o.(*corev1.PersistentVolume)
		if !ok || pv.Spec.CSI == nil {
			return nil
		}
		return []string{FenceHandle(pv.Spec.CSI.Driver, pv.Spec.CSI.VolumeHandle)}
	})
	if err != nil {
		return fmt.Errorf("indexing PersistentVolumes by handle: %w", err)
	}
	return nil
}
