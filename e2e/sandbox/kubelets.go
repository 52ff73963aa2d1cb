package sandbox

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/uuid"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fairlead-io/fairlead/e2e/sandbox/changes"
)

// MountedAnnotation is on a pod from when its volumes are mounted. kwok lets a pod
// run, and be Ready, without.
const MountedAnnotation = "fairlead.io/mounted"

// What makes kwok live in a node (e2e/controlplane/nodes).
const manageLabel, manageValue = "type", "kwok"

// RunKubelets does, until the context ends, what kwok leaves out of a kubelet's
// work with volumes: it says in status.volumesInUse which CSI volumes the pods of
// its node have, before it takes them for mounted, and then writes MountedAnnotation. A node that
// is switched off says nothing any more, so what it said last stays.
func (s *Sandbox) RunKubelets(ctx context.Context) {
	lists := []client.ObjectList{&corev1.NodeList{}, &corev1.PodList{}, &corev1.PersistentVolumeClaimList{}, &corev1.PersistentVolumeList{}}
	changes.Follow(ctx, s.Client, func() {
		if err := s.kubelets(ctx); err != nil && ctx.Err() == nil {
			fmt.Fprintln(s.Out, "kubelets:", err)
		}
	}, lists)
}

func (s *Sandbox) kubelets(ctx context.Context) error {
	var nodes corev1.NodeList
	var pods corev1.PodList
	var claims corev1.PersistentVolumeClaimList
	var volumes corev1.PersistentVolumeList
	for _, list := range []client.ObjectList{&nodes, &pods, &claims, &volumes} {
		if err := s.Client.List(ctx, list); err != nil {
			return err
		}
	}
	names := map[string]corev1.UniqueVolumeName{}
	for _, pv := range volumes.Items {
		if csi := pv.Spec.CSI; csi != nil {
			names[pv.Name] = corev1.UniqueVolumeName("kubernetes.io/csi/" + csi.Driver + "^" + csi.VolumeHandle)
		}
	}
	bound := map[client.ObjectKey]corev1.UniqueVolumeName{}
	for _, claim := range claims.Items {
		if name, ok := names[claim.Spec.VolumeName]; ok {
			bound[client.ObjectKeyFromObject(&claim)] = name
		}
	}
	for i := range nodes.Items {
		node := &nodes.Items[i]
		if node.Labels[manageLabel] != manageValue {
			continue
		}
		var use []corev1.UniqueVolumeName
		for p := range pods.Items {
			pod := &pods.Items[p]
			if pod.Spec.NodeName != node.Name || pod.Status.Phase == corev1.PodFailed || pod.Status.Phase == corev1.PodSucceeded {
				continue
			}
			mine := volumesOf(pod, bound)
			use = append(use, mine...)
			if err := s.markMounted(ctx, node, pod, mine); err != nil {
				return err
			}
		}
		slices.Sort(use)
		if use = slices.Compact(use); slices.Equal(use, node.Status.VolumesInUse) {
			continue
		}
		before := node.DeepCopy()
		node.Status.VolumesInUse = use
		if err := s.Client.Status().Patch(ctx, node, client.MergeFrom(before)); err != nil {
			return err
		}
	}
	return nil
}

func volumesOf(pod *corev1.Pod, bound map[client.ObjectKey]corev1.UniqueVolumeName) []corev1.UniqueVolumeName {
	var list []corev1.UniqueVolumeName
	for _, v := range pod.Spec.Volumes {
		if v.PersistentVolumeClaim == nil {
			continue
		}
		if name, ok := bound[client.ObjectKey{Namespace: pod.Namespace, Name: v.PersistentVolumeClaim.ClaimName}]; ok {
			list = append(list, name)
		}
	}
	return list
}

// markMounted marks a pod whose volumes are attached and said to be in use.
func (s *Sandbox) markMounted(ctx context.Context, node *corev1.Node, pod *corev1.Pod, volumes []corev1.UniqueVolumeName) error {
	claims := slices.ContainsFunc(pod.Spec.Volumes, func(v corev1.Volume) bool { return v.PersistentVolumeClaim != nil })
	if !claims || pod.Annotations[MountedAnnotation] != "" || pod.Status.Phase != corev1.PodRunning {
		return nil
	}
	for _, v := range volumes {
		attached := slices.ContainsFunc(node.Status.VolumesAttached, func(a corev1.AttachedVolume) bool { return a.Name == v })
		if !attached || !slices.Contains(node.Status.VolumesInUse, v) {
			return nil
		}
	}
	patch := fmt.Sprintf(`{"metadata":{"uid":%q,"annotations":{%q:"true"}}}`, pod.UID, MountedAnnotation)
	return client.IgnoreNotFound(s.Client.Patch(ctx, pod.DeepCopy(), client.RawPatch("application/merge-patch+json", []byte(patch))))
}

// SwitchOff a node: nothing of it is heard any more.
func (s *Sandbox) SwitchOff(ctx context.Context, node string) error {
	return s.label(ctx, node, nil)
}

// SwitchOn a node again, rebooted or, if it was only cut off, as it was. A reboot restarts the plugin pods of the node.
func (s *Sandbox) SwitchOn(ctx context.Context, node string, rebooted bool) error {
	value := manageValue
	if !rebooted {
		return s.label(ctx, node, &value)
	}
	patch := fmt.Sprintf(`{"status":{"nodeInfo":{"bootID":%q}}}`, uuid.NewUUID())
	var n corev1.Node
	n.Name = node
	if err := s.Client.Status().Patch(ctx, &n, client.RawPatch("application/merge-patch+json", []byte(patch))); err != nil {
		return fmt.Errorf("rebooting %s: %w", node, err)
	}
	if err := s.label(ctx, node, &value); err != nil {
		return err
	}
	for _, a := range s.csiAddons {
		if err := a.rebootNode(ctx, node); err != nil {
			return fmt.Errorf("rebooting %s: %w", node, err)
		}
	}
	return nil
}

func (s *Sandbox) label(ctx context.Context, node string, value *string) error {
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"labels": map[string]any{manageLabel: value}}})
	if err != nil {
		return err
	}
	var n corev1.Node
	n.Name = node
	if err := s.Client.Patch(ctx, &n, client.RawPatch("application/merge-patch+json", patch)); err != nil {
		return fmt.Errorf("switching %s: %w", node, err)
	}
	return nil
}
