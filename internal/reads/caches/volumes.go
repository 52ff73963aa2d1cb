package caches

import (
	"unique"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fairlead-io/fairlead/internal/longhorn"
	"github.com/fairlead-io/fairlead/internal/rwx"
)

// The slim copies are read-only: writing one back would drop fields.

// Annotations and attributes that name a volume's storage cluster and Secret.
const (
	ClusterIDAttribute = "clusterID"
	// Written by the external-provisioner.
	DeletionSecretName      = "volume.kubernetes.io/provisioner-deletion-secret-name"
	DeletionSecretNamespace = "volume.kubernetes.io/provisioner-deletion-secret-namespace"
)

// Parameters of a StorageClass that the external-provisioner reads.
const (
	ProvisionerSecretName      = "csi.storage.k8s.io/provisioner-secret-name"
	ProvisionerSecretNamespace = "csi.storage.k8s.io/provisioner-secret-namespace"
)

// SlimPersistentVolume keeps the fields of a PersistentVolume that the duties of shared volumes read.
func SlimPersistentVolume(object any) (any, error) {
	pv, ok := object.(*corev1.PersistentVolume)
	if !ok {
		return object, nil
	}
	slim := &corev1.PersistentVolume{ObjectMeta: slimMeta(pv), Status: corev1.PersistentVolumeStatus{Phase: pv.Status.Phase}}
	slim.Annotations = kept(pv.Annotations, rwx.VolumeAnnotations()...)
	slim.Spec.AccessModes, slim.Spec.VolumeMode, slim.Spec.StorageClassName = pv.Spec.AccessModes, pv.Spec.VolumeMode, common(pv.Spec.StorageClassName)
	if ref := pv.Spec.ClaimRef; ref != nil {
		slim.Spec.ClaimRef = &corev1.ObjectReference{Namespace: common(ref.Namespace), Name: ref.Name, UID: ref.UID}
	}
	if csi := pv.Spec.CSI; csi != nil {
		slim.Spec.CSI = &corev1.CSIPersistentVolumeSource{
			Driver: common(csi.Driver), VolumeHandle: csi.VolumeHandle, VolumeAttributes: kept(csi.VolumeAttributes, longhorn.MigratableAttribute, longhorn.EngineAttribute),
		}
	}
	return slim, nil
}

// kept returns the entries of some keys; nil if there are none.
func kept(all map[string]string, keys ...string) map[string]string {
	var some map[string]string
	for _, key := range keys {
		if value, ok := all[key]; ok {
			if some == nil {
				some = map[string]string{}
			}
			some[key] = value
		}
	}
	return some
}

// ClaimMetadata is an object to read a claim's metadata into. Clusters have many claims, so only metadata is read.
func ClaimMetadata() *metav1.PartialObjectMetadata {
	var claim metav1.PartialObjectMetadata
	claim.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind(rwx.ClaimKind))
	return &claim
}

func SlimMetadata(object any) (any, error) {
	if o, ok := object.(*metav1.PartialObjectMetadata); ok {
		o.ObjectMeta = metav1.ObjectMeta{
			Namespace: o.Namespace, Name: o.Name, UID: o.UID, ResourceVersion: o.ResourceVersion, CreationTimestamp: o.CreationTimestamp,
			Annotations: kept(o.Annotations, rwx.VolumeAnnotations()...),
		}
	}
	return object, nil
}

func SlimStorageClass(object any) (any, error) {
	if c, ok := object.(*storagev1.StorageClass); ok {
		return &storagev1.StorageClass{
			ObjectMeta:  metav1.ObjectMeta{Name: c.Name, UID: c.UID, ResourceVersion: c.ResourceVersion, Annotations: kept(c.Annotations, rwx.VolumeAnnotations()...)},
			Provisioner: c.Provisioner,
			Parameters:  kept(c.Parameters, ClusterIDAttribute, ProvisionerSecretName, ProvisionerSecretNamespace),
		}, nil
	}
	return object, nil
}

func SlimVolumeAttachment(object any) (any, error) {
	if va, ok := object.(*storagev1.VolumeAttachment); ok {
		va.ObjectMeta, va.Status = slimMeta(va), storagev1.VolumeAttachmentStatus{}
		va.Spec.Attacher, va.Spec.NodeName = common(va.Spec.Attacher), common(va.Spec.NodeName)
	}
	return object, nil
}

// slimMeta keeps the identity and the times of an object.
func slimMeta(o metav1.Object) metav1.ObjectMeta {
	return metav1.ObjectMeta{
		Name: o.GetName(), UID: o.GetUID(), ResourceVersion: o.GetResourceVersion(),
		CreationTimestamp: o.GetCreationTimestamp(), DeletionTimestamp: o.GetDeletionTimestamp(),
	}
}

// common returns a text that many objects share: equal texts use the same memory.
func common(text string) string { return unique.Make(text).Value() }
