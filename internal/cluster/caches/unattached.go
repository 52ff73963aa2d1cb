package caches

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/controller-runtime/pkg/cache"

	"github.com/fairlead-io/fairlead/internal/fence"
)

// UnattachedPodsCache holds the node and phase of pods that may use volumes without
// attachment. It selects them by label in all namespaces. The cache is separate, since a
// cache has only one selector for pods of all namespaces.
func UnattachedPodsCache() cache.Options {
	return cache.Options{
		ReaderFailOnMissingInformer: true,
		DefaultLabelSelector:        labels.SelectorFromSet(labels.Set{fence.UnattachedLabel: "true"}),
		DefaultTransform:            placedPod,
	}
}

// placedPod keeps the node and the phase of a pod.
func placedPod(object any) (any, error) {
	if pod, ok := object.(*corev1.Pod); ok {
		return &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{Namespace: pod.Namespace, Name: pod.Name, UID: pod.UID, ResourceVersion: pod.ResourceVersion},
			Spec:       corev1.PodSpec{NodeName: pod.Spec.NodeName}, Status: corev1.PodStatus{Phase: pod.Status.Phase},
		}, nil
	}
	return object, nil
}
