package longhorn

import "time"

var v1_10_0 = Version{
	Name: "v1.10.0", RWXNetwork: networkSwitch, RWXInterface: "lhnet1",
	// deploy/longhorn-images.txt
	Sidecars: []string{
		"csi-attacher:v4.9.0-20250826", "csi-provisioner:v5.3.0-20250826", "csi-resizer:v1.14.0-20250826", "csi-snapshotter:v8.3.0-20250826",
		"csi-node-driver-registrar:v2.14.0-20250826", "livenessprobe:v2.16.0-20250826",
	},
	BackOff:      2 * time.Minute, // controller/utils.go
	AppliedStays: []string{"instance-manager-pod-liveness-probe-timeout"},
	Zone: v1_8_1.Zone.but(Zone{
		"guaranteed-instance-manager-cpu":             {`{"v1":"12","v2":"12"}`, `{"v1":"20","v2":"12"}`},
		"data-engine-cpu-mask":                        {`{"v2":"0x1"}`, `{"v2":"0x3"}`},
		"data-engine-hugepage-enabled":                {`{"v2":"true"}`, `{"v2":"false"}`},
		"data-engine-interrupt-mode-enabled":          {`{"v2":"false"}`, `{"v2":"true"}`},
		"data-engine-memory-size":                     {`{"v2":"2048"}`, `{"v2":"1024"}`},
		"instance-manager-pod-liveness-probe-timeout": {"10", "20"},
		"log-path": {"/var/lib/longhorn/logs/", "/var/lib/longhorn/other/"},
	}, "v2-data-engine-guaranteed-instance-manager-cpu", "v2-data-engine-cpu-mask"),
}
