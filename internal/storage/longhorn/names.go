package longhorn

import corev1 "k8s.io/api/core/v1"

const (
	// ShareManagerKind owns the pod, the Service and the Endpoints of a shared volume.
	ShareManagerKind = "ShareManager"
	// OwnUpdateAnnotation marks a setting that longhorn-manager itself writes, also a read-only one.
	// Source: longhorn-manager datastore/longhorn.go, UpdateSetting; webhook/resources/setting/validator.go.
	OwnUpdateAnnotation = "longhorn.io/update-setting-from-longhorn"
)

// Parameters of a StorageClass that PersistentVolumes keep in volumeAttributes.
const (
	MigratableAttribute = "migratable"
	EngineAttribute     = "dataEngine"
)

const (
	// LogVolume is the volume of an instance-manager pod that holds its logs.
	LogVolume = "log"
	// Hugepages are the memory of the v2 data engine.
	Hugepages = corev1.ResourceName(corev1.ResourceHugePagesPrefix + "2Mi")
)

// Data engines. V1 is the engine of objects that name none.
const (
	EngineV1 = "v1"
	EngineV2 = "v2"
)
