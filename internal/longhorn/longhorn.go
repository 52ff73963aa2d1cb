package longhorn

import (
	"encoding/json"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"
)

// DefaultNames are the names of Longhorn 1.7 and later:
// longhorn-manager, types/types.go for labels, csi/deployment.go for the plugin.
func DefaultNames() Names {
	const managedBy, component = "longhorn.io/managed-by", "longhorn.io/component"
	return Names{
		Driver:         "driver.longhorn.io",
		Namespace:      "longhorn-system",
		ServiceAccount: "longhorn-service-account", // of its manifests and chart; --service-account of longhorn-manager
		ServerLabels:   map[string]string{managedBy: "longhorn-manager", component: "share-manager"},
		// controller/share_manager_controller.go, createPodManifest: a controller, unlike on Service and Endpoints.
		ServerController: GroupVersion.Group + "/" + ShareManagerKind,
		ClientLabels:     map[string]string{"app": "longhorn-csi-plugin"},
		ClientDaemonSet:  "longhorn-csi-plugin",
		// Longhorn 1.7 and later mounts through nsmounter, in the host's namespaces, unless its RWX network setting is on.
		MountsFromHost:            true,
		VolumeLabel:               "longhorn.io/share-manager",
		InstanceManagerLabels:     map[string]string{managedBy: "longhorn-manager", component: "instance-manager"},
		BackingImageManagerLabels: map[string]string{managedBy: "longhorn-manager", component: "backing-image-manager"},
		EngineLabel:               "longhorn.io/data-engine",
		ManagedLabels:             map[string]string{managedBy: "longhorn-manager"},
		TolerationsAnnotation:     "longhorn.io/last-applied-tolerations",
		DisableV2Label:            "node.longhorn.io/disable-v2-data-engine",
		DefaultSettings:           DefaultSettings,
		Versions:                  versions(),
		StorageInterface:          "lhnet1",
		EndpointInterface:         "lhnet2",
	}
}

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

// EngineV1 is the data engine of objects that name none.
const EngineV1 = "v1"

// VolumeOfInstance is the volume that an engine, frontend or replica was named after:
// VOLUME-e-0, VOLUME-ef-0, VOLUME-r-1a2b3c4d.
// Source: longhorn-manager types/types.go, GenerateEngineNameForVolume and those beside it.
func VolumeOfInstance(name string) string {
	for range 2 {
		name = name[:max(0, strings.LastIndex(name, "-"))]
	}
	return name
}

// VolumeOfShard is the volume of a shard, which is named VOLUME-SLOT. A shard group has the volume's name.
// Source: longhorn-manager v1.12.1, controller/shard_group_controller.go.
func VolumeOfShard(name string) string { return name[:max(0, strings.LastIndex(name, "-"))] }

// DefaultSettings is the ConfigMap in Longhorn's namespace with the settings that the chart or the user has given, and
// DefaultSettingsKey its key.
//
// At each start, longhorn-manager writes these values into the Settings that differ (v1.7.2 datastore/longhorn.go,
// UpdateCustomizedSettings; v1.12.0 the same).
const (
	DefaultSettings    = "longhorn-default-setting"
	DefaultSettingsKey = "default-setting.yaml"
)

// ParseDefaultSettings reads the values of the ConfigMap, by name of the setting. Longhorn ignores all of them if the text
// is malformed, and so nothing is returned then.
func ParseDefaultSettings(text string) map[string]string {
	var values map[string]any
	number := func(d *json.Decoder) *json.Decoder { d.UseNumber(); return d }
	if err := yaml.Unmarshal([]byte(text), &values, number); err != nil {
		return nil
	}
	defaults := make(map[string]string, len(values))
	for name, value := range values {
		switch v := value.(type) {
		case nil:
			defaults[name] = ""
		case string:
			defaults[name] = strings.Trim(v, " ")
		case bool, json.Number:
			defaults[name] = fmt.Sprint(v)
		default: // a list or an object is no value of a setting
			return nil
		}
	}
	return defaults
}
