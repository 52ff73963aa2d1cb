package fencingreads

import (
	"context"
	"errors"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fairlead-io/fairlead/internal/config"
	"github.com/fairlead-io/fairlead/internal/testkit/must"
	"github.com/fairlead-io/fairlead/internal/testkit/objects"
)

func TestSnapshotWaitsForWatches(t *testing.T) {
	c := withHolders(t)
	_, err := NewFenceReader(config.Fencing{}, c, c, nil, NewHoldingsWithRows(c, ofCeph)).Snapshot(t.Context(), []string{"node-1"})
	must.True(t, errors.Is(err, ErrNotSynced), "got %v", err)
}

// A loss of the node that came before the end of an attachment is never missed: attachments are read first.
func TestAttachmentsAreReadBeforeNodes(t *testing.T) {
	var r *FenceReader
	w := fenceWorld{objects: []client.Object{nodeAt("node-1", "192.168.1.1"), objects.CephVolume("a", rbd, "rook-ceph"), attachedAt("a", rbd, "node-1", fenceNoon)}}
	w.funcs.List = func(ctx context.Context, c client.WithWatch, list client.ObjectList, options ...client.ListOption) error {
		if _, nodes := list.(*corev1.NodeList); nodes && r != nil {
			r.held.replace(ofAttachments, nil) // detached just now
		}
		return c.List(ctx, list, options...)
	}
	reader := w.reader(t)
	r = reader
	must.True(t, len(now(t, reader, "node-1").snapshot.attached["node-1"]) == 1, "the attachment was missed")
}
