package nfs

import (
	"cmp"
	"context"
	"crypto/sha256"
	"fmt"

	"golang.org/x/sync/errgroup"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// parallel requests of a test.
const parallel = 16

// Attach asks for a volume on nodes, as the attach-detach controller does for a pod.
func (c *Cluster) Attach(ctx context.Context, v Volume, nodes ...string) error {
	return each(nodes, func(node string) error {
		va := attachment(v, node)
		if err := c.Client.Create(ctx, va); err != nil {
			return fmt.Errorf("attaching %s to %s: %w", v.Name, node, err)
		}
		return nil
	})
}

// Detach deletes the attachments, as the attach-detach controller does once the volume
// is unmounted.
func (c *Cluster) Detach(ctx context.Context, v Volume, nodes ...string) error {
	return each(nodes, func(node string) error {
		if err := c.Client.Delete(ctx, attachment(v, node)); client.IgnoreNotFound(err) != nil {
			return fmt.Errorf("detaching %s from %s: %w", v.Name, node, err)
		}
		return nil
	})
}

// attachment is named as Kubernetes does (pkg/volume/csi/csi_attacher.go: getAttachmentName).
func attachment(v Volume, node string) *storagev1.VolumeAttachment {
	driver, handle := cmp.Or(v.Driver, Driver), cmp.Or(v.Handle, v.Name)
	return &storagev1.VolumeAttachment{
		ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("csi-%x", sha256.Sum256([]byte(handle+driver+node)))},
		Spec: storagev1.VolumeAttachmentSpec{
			Attacher: driver, NodeName: node, Source: storagev1.VolumeAttachmentSource{PersistentVolumeName: &v.Name},
		},
	}
}

func each(names []string, do func(string) error) error {
	var group errgroup.Group
	group.SetLimit(parallel)
	for _, name := range names {
		group.Go(func() error { return do(name) })
	}
	return group.Wait()
}
