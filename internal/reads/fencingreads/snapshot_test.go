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

func TestLiveReaderWaitsForWatches(t *testing.T) {
	c := withHolders(t)
	_, err := NewFenceReader(config.Fencing{}, c, c, nil, NewHoldingsWithRows(c, ofCeph)).Live(t.Context())
	must.True(t, errors.Is(err, ErrNotSynced), "got %v", err)
}

// A loss of the node that came before the end of an attachment is never missed: attachments are read first.
func TestAttachmentsAreReadBeforeNodes(t *testing.T) {
	var r *FenceReader
	w := fenceWorld{objects: []client.Object{nodeAt("node-1", "192.168.1.1"), objects.CephVolume("a", rbd, "rook-ceph"), attachedAt("a", rbd, "node-1", fenceNoon)}}
	w.funcs.Get = func(ctx context.Context, c client.WithWatch, key client.ObjectKey, o client.Object, options ...client.GetOption) error {
		if _, node := o.(*corev1.Node); node {
			r.held.replace(ofAttachments, nil) // detached just now
		}
		return c.Get(ctx, key, o, options...)
	}
	r = w.reader(t)
	must.True(t, len(onlyView(t, now(t, r), "node-1", fenceNoon).Facts.Holding) == 1, "the attachment was missed")
}
