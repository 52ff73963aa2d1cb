package caches

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/controller-runtime/pkg/cache"

	"github.com/fairlead-io/fairlead/internal/fence"
)

// UnattachedPodsCache holds the pods that may use volumes without attachment, by their
// label, wherever they are: which node they are on, and how far they are. It is one
// of its own, since a cache selects the pods of all namespaces by one selector only.
func UnattachedPodsCache() cache.Options {
	return cache.Options{
		ReaderFailOnMissingInformer: true,
		DefaultLabelSelector:        labels.SelectorFromSet(labels.Set{fence.UnattachedLabel: "true"}),
		DefaultTransform:            placedPod,
	}
}

// placedPod keeps of a pod where it is.
func placedPod(object any) (any, error) {
	if pod, ok := object.(*corev1.Pod); ok {
		return &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{Namespace: pod.Namespace, Name: pod.Name, UID: pod.UID, ResourceVersion: pod.ResourceVersion},
			Spec:       corev1.PodSpec{NodeName: pod.Spec.NodeName}, Status: corev1.PodStatus{Phase: pod.Status.Phase},
		}, nil
	}
	return object, nil
}
