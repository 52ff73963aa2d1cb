package standin

import (
	"context"
	"fmt"
	"reflect"
	"time"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fairlead-io/fairlead/e2e/sandbox/changes"
	"github.com/fairlead-io/fairlead/internal/longhorn"
)

// FollowAttachments attaches and detaches volumes as Kubernetes' attachments come and go, names the pods that use them,
// and starts servers again whose pods are gone, until the context ends: what longhorn-manager does behind its CSI
// driver. Volumes that a user attaches or detaches by hand stay as they are.
func (l Longhorn) FollowAttachments(ctx context.Context) {
	known, err := l.attachments(ctx)
	if err != nil {
		known = map[string]string{}
	}
	follow := func() {
		now, err := l.attachments(ctx)
		if err != nil {
			return
		}
		for volume, node := range known {
			if _, is := now[volume]; !is && l.Detach(ctx, volume) != nil {
				now[volume] = node
			}
		}
		for volume, node := range now {
			if err := l.keepAttached(ctx, volume, known[volume], node); err == nil {
				continue
			}
			if delete(now, volume); known[volume] != "" {
				now[volume] = known[volume] // tried again
			}
		}
		known = now
	}
	changes.Follow(ctx, l.client, follow, []client.ObjectList{&storagev1.VolumeAttachmentList{}, &corev1.PodList{}})
}

// keepAttached attaches a volume. It attaches the volume again if the volume has left its node, or if the server of the
// shared volume is gone, which starts elsewhere.
func (l Longhorn) keepAttached(ctx context.Context, volume, before, node string) error {
	sm := l.object("ShareManager", volume)
	err := l.client.Get(ctx, client.ObjectKeyFromObject(sm), sm)
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("reading the share manager of %s: %w", volume, err)
	}
	left := before != node
	if shared := err == nil; shared {
		server := client.ObjectKey{Namespace: l.namespace, Name: "share-manager-" + volume}
		left = apierrors.IsNotFound(l.client.Get(ctx, server, &corev1.Pod{})) && text(sm, "status", "state") == stateRunning
	}
	if before != "" && left {
		if err := l.Detach(ctx, volume); err != nil {
			return err
		}
	}
	if before == "" || left {
		if err := l.Attach(ctx, volume, node); err != nil {
			return err
		}
	}
	return l.nameWorkloads(ctx, volume)
}

// nameWorkloads follows setWorkloads in controller/kubernetes_pv_controller.go: the last pods stay named, as pods of the past.
func (l Longhorn) nameWorkloads(ctx context.Context, volume string) error {
	v := l.object("Volume", volume)
	if err := l.client.Get(ctx, client.ObjectKeyFromObject(v), v); err != nil {
		return fmt.Errorf("reading volume %s: %w", volume, err)
	}
	namespace, pods, err := l.workloads(ctx, volume)
	if err != nil {
		return err
	}
	named, _, _ := unstructured.NestedSlice(v.Object, "status", "kubernetesStatus", "workloadsStatus")
	past := text(v, "status", "kubernetesStatus", "lastPodRefAt")
	switch {
	case len(pods) > 0 && (past != "" || !reflect.DeepEqual(named, pods)):
		return l.status(ctx, "Volume", volume, map[string]any{"kubernetesStatus": map[string]any{
			"namespace": namespace, "pvName": volume, "workloadsStatus": pods, "lastPodRefAt": "",
		}})
	case len(pods) == 0 && len(named) > 0 && past == "":
		return l.status(ctx, "Volume", volume, map[string]any{"kubernetesStatus": map[string]any{
			"lastPodRefAt": time.Now().UTC().Format(time.RFC3339),
		}})
	}
	return nil
}

// attachments maps volumes to a node that Kubernetes has attached them to.
func (l Longhorn) attachments(ctx context.Context) (map[string]string, error) {
	var list storagev1.VolumeAttachmentList
	if err := l.client.List(ctx, &list); err != nil {
		return nil, err
	}
	nodes := map[string]string{}
	for _, va := range list.Items {
		if name := va.Spec.Source.PersistentVolumeName; name != nil && va.Spec.Attacher == longhorn.DefaultNames().Driver {
			nodes[*name] = va.Spec.NodeName
		}
	}
	return nodes, nil
}

// workloads are the pods that use the claim of the volume, in the form of the volume's status, and their namespace.
func (l Longhorn) workloads(ctx context.Context, volume string) (namespace string, workloads []any, err error) {
	var pv corev1.PersistentVolume
	if err := l.client.Get(ctx, client.ObjectKey{Name: volume}, &pv); err != nil {
		return "", nil, client.IgnoreNotFound(err)
	}
	if pv.Spec.ClaimRef == nil {
		return "", nil, nil
	}
	var pods corev1.PodList
	if err := l.client.List(ctx, &pods, client.InNamespace(pv.Spec.ClaimRef.Namespace)); err != nil {
		return "", nil, fmt.Errorf("listing pods: %w", err)
	}
	for i := range pods.Items {
		pod := &pods.Items[i]
		for _, v := range pod.Spec.Volumes {
			if claim := v.PersistentVolumeClaim; claim != nil && claim.ClaimName == pv.Spec.ClaimRef.Name {
				workloads = append(workloads, workloadStatus(pod))
			}
		}
	}
	return pv.Spec.ClaimRef.Namespace, workloads, nil
}

// workloadStatus names the pod's first owner, as detectWorkload in controller/kubernetes_pv_controller.go does.
func workloadStatus(pod *corev1.Pod) map[string]any {
	status := map[string]any{"podName": pod.Name, "podStatus": string(pod.Status.Phase), "workloadName": "", "workloadType": ""}
	if len(pod.OwnerReferences) > 0 {
		status["workloadName"], status["workloadType"] = pod.OwnerReferences[0].Name, pod.OwnerReferences[0].Kind
	}
	return status
}
