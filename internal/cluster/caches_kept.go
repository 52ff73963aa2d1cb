package cluster

import corev1 "k8s.io/api/core/v1"

// Longhorn's StorageClass parameters, kept in the PersistentVolume's volumeAttributes.
const (
	migratableAttribute = "migratable"
	engineAttribute     = "dataEngine"
)

const (
	// logVolume is the instance managers' volume of logs.
	logVolume = "log"
	hugepages = corev1.ResourceName(corev1.ResourceHugePagesPrefix + "2Mi")
)

// Annotations and attributes that say whose a volume is.
const (
	clusterIDAttribute = "clusterID"
	// Written by the external-provisioner.
	deletionSecretName      = "volume.kubernetes.io/provisioner-deletion-secret-name"
	deletionSecretNamespace = "volume.kubernetes.io/provisioner-deletion-secret-namespace"
)

// Parameters of a StorageClass that the external-provisioner reads.
const (
	provisionerSecretName      = "csi.storage.k8s.io/provisioner-secret-name"
	provisionerSecretNamespace = "csi.storage.k8s.io/provisioner-secret-namespace"
)
