package beside

import (
	"context"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fairlead-io/fairlead/e2e/eventually"
)

// Use starts a workload, pod default/VOLUME on the manager's node, that uses a volume:
// Kubernetes attaches the volume to the node, and so does Longhorn.
func (c *Cluster) Use(ctx context.Context, volume string) error {
	return c.use(ctx, volume, volume, c.Manager.pod.Spec.NodeName)
}

// UseOn starts one more workload of a volume, pod default/VOLUME-NODE.
func (c *Cluster) UseOn(ctx context.Context, volume, node string) error {
	return c.use(ctx, volume+"-"+node, volume, node)
}

func (c *Cluster) use(ctx context.Context, name, volume, node string) error {
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name},
		Spec: corev1.PodSpec{
			NodeName: node, TerminationGracePeriodSeconds: ptr.To[int64](0),
			Containers: []corev1.Container{{Name: "main", Image: "nginx", VolumeMounts: []corev1.VolumeMount{{Name: "data", MountPath: "/data"}}}},
			Volumes: []corev1.Volume{{Name: "data", VolumeSource: corev1.VolumeSource{
				PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: volume},
			}}},
		},
	}
	if err := c.Client.Create(ctx, pod); err != nil {
		return fmt.Errorf("starting a workload of %s: %w", volume, err)
	}
	return nil
}

// Unuse ends the workload of a volume.
func (c *Cluster) Unuse(ctx context.Context, volume string) error { return c.endWorkload(ctx, volume) }

// UnuseOn ends what UseOn started, and waits until Kubernetes has detached the volume from the node.
func (c *Cluster) UnuseOn(ctx context.Context, volume, node string) error {
	if err := c.endWorkload(ctx, volume+"-"+node); err != nil {
		return err
	}
	return eventually.Until(ctx, fmt.Sprintf("%s to be detached from %s", volume, node), attachTimeout, func() error {
		attachment, err := c.attachment(ctx, volume, node)
		if err == nil && attachment != nil {
			err = fmt.Errorf("attachment %s is there", attachment.Name)
		}
		return err
	})
}

// WaitAttached waits until Kubernetes has attached the volume to a node.
func (c *Cluster) WaitAttached(ctx context.Context, volume, node string) error {
	return eventually.Until(ctx, fmt.Sprintf("%s to be attached to %s", volume, node), attachTimeout, func() error {
		attachment, err := c.attachment(ctx, volume, node)
		if err == nil && (attachment == nil || !attachment.Status.Attached) {
			err = errors.New("it is not")
		}
		return err
	})
}

func (c *Cluster) attachment(ctx context.Context, volume, node string) (*storagev1.VolumeAttachment, error) {
	var list storagev1.VolumeAttachmentList
	if err := c.Client.List(ctx, &list); err != nil {
		return nil, fmt.Errorf("listing attachments: %w", err)
	}
	for i, o := range list.Items {
		if name := o.Spec.Source.PersistentVolumeName; name != nil && *name == volume && o.Spec.NodeName == node {
			return &list.Items[i], nil
		}
	}
	return nil, nil
}

func (c *Cluster) endWorkload(ctx context.Context, name string) error {
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name}}
	if err := c.Client.Delete(ctx, pod, client.GracePeriodSeconds(0)); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("ending workload %s: %w", name, err)
	}
	return nil
}
