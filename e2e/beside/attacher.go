package beside

import (
	"context"
	"fmt"
	"sync"
	"time"

	storagev1 "k8s.io/api/storage/v1"

	"github.com/fairlead-io/fairlead/storage"
)

// attacher asks Longhorn for what its CSI driver would: an attachment of Longhorn for
// each of Kubernetes, of the same name.
type attacher struct {
	cluster *Cluster
	cancel  context.CancelFunc
	done    sync.WaitGroup
}

func (c *Cluster) startAttacher(ctx context.Context) {
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	c.attacher = &attacher{cluster: c, cancel: cancel}
	c.attacher.done.Go(func() { c.attacher.run(ctx) })
}

func (a *attacher) stop() {
	a.cancel()
	a.done.Wait()
}

// run compares rather than watches: an attempt that failed is made again.
func (a *attacher) run(ctx context.Context) {
	attached := map[string]string{} // volumes by attachment
	for {
		select {
		case <-ctx.Done():
			return
		case <-time.After(100 * time.Millisecond):
		}
		wanted, err := a.wanted(ctx)
		if err != nil {
			continue
		}
		for attachment, volume := range wanted {
			if attached[attachment] == "" && a.try(a.cluster.Attach(ctx, volume, attachment)) {
				attached[attachment] = volume
			}
		}
		for attachment, volume := range attached {
			if wanted[attachment] == "" && a.try(a.cluster.Detach(ctx, volume, attachment)) {
				delete(attached, attachment)
			}
		}
	}
}

func (a *attacher) try(err error) bool {
	if err != nil {
		fmt.Fprintln(a.cluster.Out, "will be tried again:", err)
	}
	return err == nil
}

func (a *attacher) wanted(ctx context.Context) (map[string]string, error) {
	var list storagev1.VolumeAttachmentList
	if err := a.cluster.Client.List(ctx, &list); err != nil {
		return nil, err
	}
	wanted := map[string]string{}
	for _, o := range list.Items {
		name := o.Spec.Source.PersistentVolumeName
		if o.Spec.Attacher == storage.Longhorn().Driver && name != nil && o.DeletionTimestamp == nil {
			wanted[o.Name] = *name // volumes here have the names of their PersistentVolumes
		}
	}
	return wanted, nil
}
