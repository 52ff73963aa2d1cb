package sandbox

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/utils/ptr"

	"github.com/fairlead-io/fairlead/cluster/longhorn"
)

// The two objects that longhorn-manager v1.7.0 makes for a share manager
// (createServiceManifest and createPodManifest), as they are without a storage network.

func shareService(sm *unstructured.Unstructured) *corev1.Service {
	labels := map[string]string{"longhorn.io/managed-by": "longhorn-manager", "longhorn.io/share-manager": sm.GetName()}
	return &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: sm.GetNamespace(), Name: sm.GetName(), Labels: labels, OwnerReferences: owner(sm, false),
		},
		Spec: corev1.ServiceSpec{
			Type: corev1.ServiceTypeClusterIP, Selector: labels,
			Ports: []corev1.ServicePort{{Name: "nfs", Port: 2049, Protocol: corev1.ProtocolTCP}},
		},
	}
}

func sharePod(sm *unstructured.Unstructured, values settingValues) (*corev1.Pod, error) {
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: sm.GetNamespace(), Name: "share-manager-" + sm.GetName(), OwnerReferences: owner(sm, true),
			Labels: map[string]string{
				"longhorn.io/managed-by": "longhorn-manager", "longhorn.io/component": "share-manager",
				"longhorn.io/share-manager": sm.GetName(),
			},
		},
		Spec: corev1.PodSpec{
			ServiceAccountName: "longhorn-service-account", RestartPolicy: corev1.RestartPolicyNever,
			Containers: []corev1.Container{{
				Name: "share-manager", Image: "longhornio/longhorn-share-manager:v1.7.0",
				Args:            []string{"--debug", "daemon", "--volume", sm.GetName()},
				SecurityContext: &corev1.SecurityContext{Privileged: ptr.To(true)},
			}},
		},
	}
	return pod, values.build(pod)
}

func owner(o *unstructured.Unstructured, controller bool) []metav1.OwnerReference {
	return []metav1.OwnerReference{{
		APIVersion: longhorn.GroupVersion.String(), Kind: o.GetKind(), Name: o.GetName(), UID: o.GetUID(),
		BlockOwnerDeletion: ptr.To(true), Controller: ptr.To(controller),
	}}
}
