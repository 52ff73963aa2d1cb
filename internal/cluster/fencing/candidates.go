package fencing

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fairlead-io/fairlead/api/v1alpha1"
	"github.com/fairlead-io/fairlead/internal/fence"
)

// candidates name the nodes that may hold a volume. They decide nothing: each named node is read live.
type candidates interface {
	// holders names the nodes that may have or had a volume.
	holders(context.Context, fence.Volume) ([]string, error)
	// recordsOf names the records of the machines that have or had a node's name.
	recordsOf(ctx context.Context, node string) ([]string, error)
	// nodes counts all nodes.
	nodes(context.Context) (int, error)
}

// cachedCandidates finds candidates in a cache with the indexes of HolderIndexes.
type cachedCandidates struct{ client.Reader }

func (c cachedCandidates) holders(ctx context.Context, v fence.Volume) (names []string, _ error) {
	for _, key := range volumeKeys(v.Held()) {
		var fences v1alpha1.NodeFenceList
		if err := c.List(ctx, &fences, client.MatchingFields{heldVolume: key}, client.UnsafeDisableDeepCopy); err != nil {
			return nil, fmt.Errorf("looking for the NodeFences that hold volume %s: %w", v.Name, err)
		}
		for i := range fences.Items {
			names = append(names, NodeOfFence(&fences.Items[i]))
		}
	}
	if v.Name != "" {
		var attachments storagev1.VolumeAttachmentList
		if err := c.List(ctx, &attachments, client.MatchingFields{heldVolume: v.Name}, client.UnsafeDisableDeepCopy); err != nil {
			return nil, fmt.Errorf("looking for the VolumeAttachments of volume %s: %w", v.Name, err)
		}
		for i := range attachments.Items {
			names = append(names, attachments.Items[i].Spec.NodeName)
		}
	}
	if v.Handle != "" {
		var nodes corev1.NodeList
		if err := c.List(ctx, &nodes, client.MatchingFields{volumeInUse: fence.UniqueName(v.Driver, v.Handle)}, client.UnsafeDisableDeepCopy); err != nil {
			return nil, fmt.Errorf("looking for the Nodes that use volume %s: %w", v.Name, err)
		}
		for i := range nodes.Items {
			names = append(names, nodes.Items[i].Name)
		}
	}
	return names, nil
}

func (c cachedCandidates) recordsOf(ctx context.Context, node string) (names []string, _ error) {
	var list v1alpha1.NodeFenceList
	if err := c.List(ctx, &list, client.MatchingFields{recordedNode: node}, client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("looking for the NodeFences of node %s: %w", node, err)
	}
	for i := range list.Items {
		names = append(names, list.Items[i].Name)
	}
	return names, nil
}

func (c cachedCandidates) nodes(ctx context.Context) (int, error) {
	var known corev1.NodeList
	if err := c.List(ctx, &known, client.UnsafeDisableDeepCopy); err != nil {
		return 0, fmt.Errorf("counting nodes: %w", err)
	}
	return len(known.Items), nil
}
