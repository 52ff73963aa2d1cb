package objects

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// With changes an object.
func With[T client.Object](o T, changes ...func(T)) T {
	for _, change := range changes {
		change(o)
	}
	return o
}

// Node that is Ready. The machine is named after the node.
func Node(name string, changes ...func(*corev1.Node)) *corev1.Node {
	return With(&corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID("uid-" + name)},
		Status: corev1.NodeStatus{
			NodeInfo:   corev1.NodeSystemInfo{BootID: "boot-" + name, SystemUUID: "machine-" + name},
			Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}},
		},
	}, changes...)
}

// Readiness sets a node's Ready condition, since a time.
func Readiness(status corev1.ConditionStatus, since time.Time) func(*corev1.Node) {
	return func(n *corev1.Node) {
		ready := corev1.NodeCondition{Type: corev1.NodeReady, Status: status, LastTransitionTime: metav1.NewTime(since)}
		for i := range n.Status.Conditions {
			if n.Status.Conditions[i].Type == corev1.NodeReady {
				n.Status.Conditions[i] = ready
				return
			}
		}
		n.Status.Conditions = append(n.Status.Conditions, ready)
	}
}

// Pod on a node, with claims. An empty node means no node.
func Pod(namespace, name, node string, claims ...string) *corev1.Pod {
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, UID: types.UID("uid-" + name)},
		Spec:       corev1.PodSpec{NodeName: node},
	}
	for _, c := range claims {
		pod.Spec.Volumes = append(pod.Spec.Volumes, corev1.Volume{Name: c, VolumeSource: corev1.VolumeSource{
			PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: c},
		}})
	}
	return pod
}

// ReadyPod makes a pod Ready.
func ReadyPod(pod *corev1.Pod) {
	pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}
}

// OwnedBy makes a controller the owner of an object.
func OwnedBy[T client.Object](apiVersion, kind, name string) func(T) {
	return func(o T) {
		o.SetOwnerReferences([]metav1.OwnerReference{{APIVersion: apiVersion, Kind: kind, Name: name, Controller: ptr.To(true)}})
	}
}

// Claim in namespace default. An empty volume means no volume.
func Claim(name, volume string) *corev1.PersistentVolumeClaim {
	return &corev1.PersistentVolumeClaim{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name}, Spec: corev1.PersistentVolumeClaimSpec{VolumeName: volume},
	}
}

// Volume is a PersistentVolume of a CSI driver, bound to a claim in namespace default and used by one node at a time.
func Volume(name, driver, handle, claim string, changes ...func(*corev1.PersistentVolume)) *corev1.PersistentVolume {
	pv := &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: name}}
	pv.Spec.AccessModes = []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce}
	pv.Spec.ClaimRef = &corev1.ObjectReference{Namespace: "default", Name: claim}
	pv.Spec.CSI = &corev1.CSIPersistentVolumeSource{Driver: driver, VolumeHandle: handle}
	pv.Status.Phase = corev1.VolumeBound
	return With(pv, changes...)
}

// Shared makes a PersistentVolume RWX.
func Shared(pv *corev1.PersistentVolume) {
	pv.Spec.AccessModes = []corev1.PersistentVolumeAccessMode{corev1.ReadWriteMany}
}

// InCluster names a PersistentVolume's Ceph cluster.
func InCluster(id string) func(*corev1.PersistentVolume) {
	return func(pv *corev1.PersistentVolume) { pv.Spec.CSI.VolumeAttributes = map[string]string{"clusterID": id} }
}

// Attachment of a PersistentVolume to a node.
func Attachment(volume, node, driver string, changes ...func(*storagev1.VolumeAttachment)) *storagev1.VolumeAttachment {
	return With(&storagev1.VolumeAttachment{
		ObjectMeta: metav1.ObjectMeta{Name: "va-" + volume + "-" + node},
		Spec:       storagev1.VolumeAttachmentSpec{Attacher: driver, NodeName: node, Source: storagev1.VolumeAttachmentSource{PersistentVolumeName: &volume}},
	}, changes...)
}
