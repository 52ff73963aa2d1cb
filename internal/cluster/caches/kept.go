package caches

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
