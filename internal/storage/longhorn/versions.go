package longhorn

import "github.com/fairlead-io/fairlead/internal/storage"

// versions of Longhorn and their duties. Source: longhorn-manager v1.7.0, v1.11.1 and v1.12.0 (csi/deployment.go, and in
// controller: setting_controller.go, instance_manager_controller.go, share_manager_controller.go,
// kubernetes_endpoint_controller.go, kubernetes_pod_controller.go).
func versions() []storage.VersionDuties {
	return []storage.VersionDuties{
		{
			Before: "1.7",
			Does:   "always mounts RWX volumes in the host's network namespace, refuses danger-zone changes while volumes are attached, and has no status.applied",
			Duties: map[string]string{storage.DutySettings: "guard", storage.DutyPods: "off", storage.DutyServices: "off", storage.DutyEndpoints: "off", storage.DutyWorkloads: "off", storage.DutyRemount: "off"},
		},
		{
			From: "1.7", Before: "1.11",
			Does: "applies a danger-zone setting within three retries after a change, and then tries once an hour. Longhorn writes status.applied when it issues updates. The sync of one network setting may restart pods for another. " +
				"The Services and Endpoints of share managers depend on storage-network-for-rwx-volume-enabled",
			Duties: map[string]string{storage.DutySettings: "apply", storage.DutyPods: "on", storage.DutyServices: "on", storage.DutyEndpoints: "on", storage.DutyWorkloads: "on", storage.DutyRemount: "off"},
		},
		{
			From:   "1.11",
			Does:   "behaves as since 1.7, but the setting is endpoint-network-for-rwx-volume, and the network is on a separate interface (lhnet2)",
			Duties: map[string]string{storage.DutySettings: "apply", storage.DutyPods: "on", storage.DutyServices: "on", storage.DutyEndpoints: "on", storage.DutyWorkloads: "on", storage.DutyRemount: "off"},
		},
	}
}
