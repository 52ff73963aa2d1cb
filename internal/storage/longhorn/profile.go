package longhorn

import "github.com/fairlead-io/fairlead/internal/storage"

// Profile of Longhorn 1.7 and later. Names are those of
// longhorn-manager: types/types.go for labels, csi/deployment.go for the plugin.
func Profile() storage.Profile {
	const managedBy, component = "longhorn.io/managed-by", "longhorn.io/component"
	return storage.Profile{
		Name:           "longhorn",
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
