package beside

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Use starts a workload, pod default/VOLUME on the manager's node, that uses a volume:
// Kubernetes attaches the volume to the node, and so does Longhorn.
func (c *Cluster) Use(ctx context.Context, volume string) error {
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: volume},
		Spec: corev1.PodSpec{
			NodeName: c.Manager.pod.Spec.NodeName, TerminationGracePeriodSeconds: ptr.To[int64](0),
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
func (c *Cluster) Unuse(ctx context.Context, volume string) error {
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: volume}}
	if err := c.Client.Delete(ctx, pod, client.GracePeriodSeconds(0)); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("ending the workload of %s: %w", volume, err)
	}
	return nil
}
