package fencingreads

import (
	"context"
	"errors"
	"fmt"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fairlead-io/fairlead/internal/reads/caches"
	"github.com/fairlead-io/fairlead/internal/reads/csiaddons"
)

// Fields of the indexes by which a FenceReader lists.
const (
	selfFencer   = "fairlead.io/self-fencer"
	driverNodeID = "fairlead.io/driver-node-id"
)

// IndexFencing adds the indexes that a FenceReader needs to a cache, besides those of reads.IndexNodes and IndexAddons.
func IndexFencing(ctx context.Context, indexer client.FieldIndexer) error {
	fencers := indexer.IndexField(ctx, &corev1.Pod{}, selfFencer, func(o client.Object) []string {
		return []string{strconv.FormatBool(caches.FencesItself(o.(*corev1.Pod)))}
	})
	ids := indexer.IndexField(ctx, &storagev1.CSINode{}, driverNodeID, func(o client.Object) (ids []string) {
		for _, d := range o.(*storagev1.CSINode).Spec.Drivers {
			ids = append(ids, driverID(d.Name, d.NodeID))
		}
		return ids
	})
	if err := errors.Join(fencers, ids); err != nil {
		return fmt.Errorf("indexing pods and CSINodes: %w", err)
	}
	return nil
}

// IndexAddons adds the index of CSIAddonsNodes by node. IndexFencing does not: a kind that is not installed can't be
// indexed.
func (r *FenceReader) IndexAddons(ctx context.Context, indexer client.FieldIndexer) error {
	err := indexer.IndexField(ctx, &csiaddons.CSIAddonsNode{}, driverNodeID, func(o client.Object) []string {
		d := o.(*csiaddons.CSIAddonsNode).Spec.Driver
		return []string{driverID(d.Name, d.NodeID)}
	})
	if err != nil {
		return fmt.Errorf("indexing CSIAddonsNodes: %w", err)
	}
	r.addonsIndexed.Store(true)
	return nil
}

// driverID is the key of a driver's name for a volume or a node.
func driverID(driver, id string) string { return driver + "^" + id }
