package longhorn

// versions of Longhorn and their duties. Source: longhorn-manager v1.7.0, v1.11.1 and v1.12.0 (csi/deployment.go, and in
// controller: setting_controller.go, instance_manager_controller.go, share_manager_controller.go,
// kubernetes_endpoint_controller.go, kubernetes_pod_controller.go).
func versions() []VersionDuties {
	return []VersionDuties{
		{
			Before: "1.7",
			Does:   "always mounts RWX volumes in the host's network namespace, refuses danger-zone changes while volumes are attached, and has no status.applied",
			Duties: map[string]string{DutySettings: "guard", DutyPods: "off", DutyServices: "off", DutyEndpoints: "off", DutyWorkloads: "off", DutyRemount: "off"},
		},
		{
			From: "1.7", Before: "1.11",
			Does: "applies a danger-zone setting within three retries after a change, and then tries once an hour. Longhorn writes status.applied when it issues updates. The sync of one network setting may restart pods for another. " +
				"The Services and Endpoints of share managers depend on storage-network-for-rwx-volume-enabled",
			Duties: map[string]string{DutySettings: "apply", DutyPods: "on", DutyServices: "on", DutyEndpoints: "on", DutyWorkloads: "on", DutyRemount: "off"},
		},
		{
			From:   "1.11",
			Does:   "behaves as since 1.7, but the setting is endpoint-network-for-rwx-volume, and the network is on a separate interface (lhnet2)",
			Duties: map[string]string{DutySettings: "apply", DutyPods: "on", DutyServices: "on", DutyEndpoints: "on", DutyWorkloads: "on", DutyRemount: "off"},
		},
	}
}
