package fencingreads

import (
	"context"
	"errors"
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fairlead-io/fairlead/internal/config"
	"github.com/fairlead-io/fairlead/internal/testkit/must"
	"github.com/fairlead-io/fairlead/internal/testkit/objects"
)

func TestLiveReaderWaitsForWatches(t *testing.T) {
	c := withHolders(t)
	_, err := NewFenceReader(config.Fencing{}, c, c, nil, NewHoldingsWithVolumes(c, ofCeph)).Live(t.Context())
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

// Kubernetes takes a volume from the Node's status before it detaches the volume. Where the status still lists a volume without
// attachment, a person has deleted the attachment; or one of two caches is behind, which live reads show.
func TestTornAttachments(t *testing.T) {
	const unique = "kubernetes.io/csi/" + rbd + "^a"
	attached := attachedAt("pv-a", rbd, "node-1", fenceNoon)
	attached.Name = attachmentName(rbd, "a", "node-1")
	node := nodeAt("node-1", "192.168.1.1")
	node.Status.VolumesAttached, node.Status.VolumesInUse = []corev1.AttachedVolume{{Name: unique}, {Name: "kubernetes.io/csi/ebs.csi.aws.com^b"}}, []corev1.UniqueVolumeName{unique}
	record := recordOf("node-1", "pv-a")
	record.Spec.NodeUID, record.Spec.ReadyChanged = node.UID, &node.Status.Conditions[0].LastTransitionTime
	for name, c := range map[string]struct {
		objects, live []client.Object // live are there only for live reads
		changes       bool
		cached, torn  string
	}{
		"attached":                            {[]client.Object{attached}, nil, false, "[]", "[]"},
		"deleted":                             {nil, nil, false, "[" + unique + "]", "[" + unique + "]"},
		"attached, which a cache lacks":       {nil, []client.Object{attached}, false, "[" + unique + "]", "[]"},
		"deleted, and the Node changes again": {nil, nil, true, "[" + unique + "]", "[]"},
	} {
		t.Run(name, func(t *testing.T) {
			w := fenceWorld{objects: append([]client.Object{node.DeepCopy(), record.DeepCopy(), objects.Volume("pv-a", rbd, "a", "claim")}, c.objects...)}
			reads := 0
			w.funcs.Get = func(ctx context.Context, from client.WithWatch, key client.ObjectKey, o client.Object, options ...client.GetOption) error {
				for _, va := range c.live {
					if va.GetName() == key.Name {
						return nil
					}
				}
				err := from.Get(ctx, key, o, options...)
				if n, is := o.(*corev1.Node); is && c.changes {
					reads++
					n.Status.VolumesInUse = n.Status.VolumesInUse[:1/reads]
				}
				return err
			}
			r := w.reader(t)
			view := onlyView(t, r, "node-1", fenceNoon)
			must.Equal(t, fmt.Sprint(view.Facts.Torn), c.cached)
			must.Equal(t, view.Quiet(), c.cached == "[]")
			reads = 0
			must.Equal(t, fmt.Sprint(onlyView(t, now(t, r), "node-1", fenceNoon).Facts.Torn), c.torn)
		})
	}
}
