package standin

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fairlead-io/fairlead/e2e/sandbox/changes"
	"github.com/fairlead-io/fairlead/internal/storage/longhorn"
)

// FollowAttachments attaches and detaches volumes as Kubernetes' attachments
// come and go, until the context ends: what longhorn-manager does behind its
// CSI driver. What somebody does by hand in between stays.
func (l Longhorn) FollowAttachments(ctx context.Context) {
	known, err := l.attachments(ctx)
	if err != nil {
		known = map[string]string{}
	}
	changes.Follow(ctx, l.client, func() {
		now, err := l.attachments(ctx)
		if err != nil {
			return
		}
		for volume, node := range now {
			if _, was := known[volume]; !was && l.Attach(ctx, volume, node, l.workloads(ctx, volume)...) != nil {
				delete(now, volume) // tried again
			}
		}
		for volume, node := range known {
			if _, is := now[volume]; !is && l.Detach(ctx, volume) != nil {
				now[volume] = node
			}
		}
		known = now
	}, []client.ObjectList{&storagev1.VolumeAttachmentList{}})
}

// attachments maps volumes to a node that Kubernetes has attached them to.
func (l Longhorn) attachments(ctx context.Context) (map[string]string, error) {
	var list storagev1.VolumeAttachmentList
	if err := l.client.List(ctx, &list); err != nil {
		return nil, err
	}
	nodes := map[string]string{}
	for _, va := range list.Items {
		if name := va.Spec.Source.PersistentVolumeName; name != nil && va.Spec.Attacher == longhorn.Profile().Driver {
			nodes[*name] = va.Spec.NodeName
		}
	}
	return nodes, nil
}

// workloads are the pods that use the claim of the volume.
func (l Longhorn) workloads(ctx context.Context, volume string) []string {
	var pv corev1.PersistentVolume
	if err := l.client.Get(ctx, client.ObjectKey{Name: volume}, &pv); err != nil || pv.Spec.ClaimRef == nil {
		return nil
	}
	var pods corev1.PodList
	if err := l.client.List(ctx, &pods, client.InNamespace(pv.Spec.ClaimRef.Namespace)); err != nil {
		return nil
	}
	var names []string
	for _, pod := range pods.Items {
		for _, v := range pod.Spec.Volumes {
			if claim := v.PersistentVolumeClaim; claim != nil && claim.ClaimName == pv.Spec.ClaimRef.Name {
				names = append(names, pod.Namespace+"/"+pod.Name)
			}
		}
	}
	return names
}
