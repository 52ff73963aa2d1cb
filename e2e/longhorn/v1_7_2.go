package longhorn

var v1_7_2 = Version{
	Name: "v1.7.2", RWXNetwork: networkSwitch, RWXInterface: "lhnet1",
	Zone: Zone{
		"taint-toleration":                                  {"", "dedicated=storage:NoSchedule"},
		"system-managed-components-node-selector":           {"", "kubernetes.io/os:linux"},
		"priority-class":                                    {"longhorn-critical", "system-cluster-critical"},
		"storage-network":                                   {"", "kube-system/storage-net"},
		networkSwitch:                                       {"false", "true"},
		"guaranteed-instance-manager-cpu":                   {"12", "20"},
		"v1-data-engine":                                    {"true", "false"},
		"v2-data-engine":                                    {"false", "true"},
		"v2-data-engine-guaranteed-instance-manager-cpu":    {"1250", "2000"},
		"disable-snapshot-purge":                            {"false", "true"},
		"concurrent-replica-rebuild-per-node-limit":         {"5", "3"},
		"concurrent-backing-image-replenish-per-node-limit": {"5", "3"},
	},
}
