package caches

import corev1 "k8s.io/api/core/v1"

// Longhorn's StorageClass parameters, kept in the PersistentVolume's volumeAttributes.
const (
	MigratableAttribute = "migratable"
	EngineAttribute     = "dataEngine"
)

const (
	// logVolume is the instance managers' volume of logs.
	LogVolume = "log"
	Hugepages = corev1.ResourceName(corev1.ResourceHugePagesPrefix + "2Mi")
)

// Annotations and attributes that say whose a volume is.
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
