package beside

import (
	"context"
	"fmt"
	"net/http"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fairlead-io/fairlead/e2e/eventually"
	"github.com/fairlead-io/fairlead/internal/longhorn"
)

// volumeSize is small: replicas are names, but Longhorn counts what they would take.
const volumeSize = "16777216"

// CreateVolume has Longhorn create a volume, with a PersistentVolume and a claim of its
// name in namespace default, and waits until the volume can be attached. The access mode
// is rwx or rwo.
func (c *Cluster) CreateVolume(ctx context.Context, name, accessMode string) error {
	body := map[string]any{
		"name": name, "size": volumeSize, "numberOfReplicas": 1, "accessMode": accessMode, "frontend": "blockdev", "dataEngine": "v1",
	}
	if err := c.Manager.call(ctx, http.MethodPost, "volumes", body, nil); err != nil {
		return err
	}
	if err := c.WaitVolume(ctx, name, "detached"); err != nil {
		return err
	}
	if err := c.Manager.call(ctx, http.MethodPost, "volumes/"+name+"?action=pvCreate", map[string]any{"pvName": name, "fsType": "ext4"}, nil); err != nil {
		return err
	}
	claim := map[string]any{"namespace": "default", "pvcName": name}
	if err := c.Manager.call(ctx, http.MethodPost, "volumes/"+name+"?action=pvcCreate", claim, nil); err != nil {
		return err
	}
	return c.waitText(ctx, name, "Volume", name, "status", "kubernetesStatus", "pvName")
}

// DeleteVolume has Longhorn delete a volume, and waits until it is gone, and its
// PersistentVolume with it: the attacher keeps that until nothing of the volume is attached.
func (c *Cluster) DeleteVolume(ctx context.Context, volume string) error {
	if err := c.Manager.call(ctx, http.MethodDelete, "volumes/"+volume, nil, nil); err != nil {
		return err
	}
	return eventually.Until(ctx, "volume "+volume+" to be deleted", attachTimeout, func() error {
		for _, o := range []client.Object{&longhorn.Volume{}, &corev1.PersistentVolume{}} {
			if err := c.Client.Get(ctx, key(volume), o); err == nil {
				return fmt.Errorf("%T %s is there", o, volume)
			} else if client.IgnoreNotFound(err) != nil {
				return err
			}
		}
		return nil
	})
}

// attachTimeout is what it takes to attach or detach a volume on a busy machine: Kubernetes alone waits up to
// two minutes before it tries again what has failed (maxDurationBeforeRetry in pkg/util/goroutinemap/exponentialbackoff).
const attachTimeout = 4 * time.Minute

// WaitVolume waits until Longhorn has the volume in a state, such as attached.
func (c *Cluster) WaitVolume(ctx context.Context, name, state string) error {
	return c.waitText(ctx, state, "Volume", name, "status", "state")
}

// WaitServed waits until the ShareManager of an RWX volume is running.
func (c *Cluster) WaitServed(ctx context.Context, volume string) error {
	return c.waitText(ctx, "running", "ShareManager", volume, "status", "state")
}
