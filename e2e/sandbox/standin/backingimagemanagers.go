package standin

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/fairlead-io/fairlead/e2e/sandbox/standin/release"
)

const backingImageManagerImage = "longhornio/backing-image-manager:" + release.Default

// createBackingImageManager makes that of the disk of a node.
func (l Longhorn) createBackingImageManager(ctx context.Context, node string) error {
	disk := diskUUID(node)
	bim := l.object("BackingImageManager", "backing-image-manager-"+checksum(backingImageManagerImage)[:4]+"-"+disk[:4])
	bim.SetLabels(backingImageManagerLabels(node, disk))
	bim.Object["spec"] = map[string]any{
		"image": backingImageManagerImage, "nodeID": node, "diskUUID": disk, "diskPath": diskPath, "backingImages": map[string]any{},
	}
	return l.create(ctx, bim)
}

func backingImageManagerLabels(node, disk string) map[string]string {
	return map[string]string{
		"longhorn.io/managed-by": "longhorn-manager", "longhorn.io/component": "backing-image-manager",
		"longhorn.io/node": node, "longhorn.io/disk-uuid": disk,
	}
}

// backingImageManagerPod follows generateBackingImageManagerPodManifest.
func backingImageManagerPod(bim *unstructured.Unstructured, s *survey) (*corev1.Pod, error) {
	pod := managerPod(bim, "backing-image-manager")
	pod.Labels = backingImageManagerLabels(text(bim, "spec", "nodeID"), text(bim, "spec", "diskUUID"))
	return pod, s.settings.buildOnStorageNetwork(pod)
}
