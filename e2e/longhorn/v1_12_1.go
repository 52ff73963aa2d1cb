package longhorn

import "time"

var v1_12_1 = Version{
	Name: "v1.12.1", FromSource: true, RWXNetwork: endpointNetwork, RWXInterface: "lhnet2",
	Sidecars:     v1_10_0.Sidecars, // simulated: only their names count
	BackOff:      2 * time.Minute,  // controller/utils.go
	AppliedStays: v1_10_0.AppliedStays,
	Fixed:        []string{"data-engine-number-of-cpu-cores"}, // "not all nodes have CPU manager policy configured"
	Zone: v1_10_0.Zone.but(Zone{
		"data-engine-cpu-mask":                              {`{"v2":"0x3"}`, `{"v2":"0x7"}`},
		"system-managed-csi-components-resource-limits":     {"", `{"csi-attacher":{"requests":{"cpu":"10m"}}}`},
		"engine-image-pod-liveness-probe-failure-threshold": {"3", "4"},
		"engine-image-pod-liveness-probe-period":            {"5", "6"},
		"engine-image-pod-liveness-probe-timeout":           {"4", "5"},
		"data-engine-cpu-isolation-enabled":                 {`{"v2":"false"}`, `{"v2":"true"}`},
		"data-engine-iobuf-large-pool-size":                 {`{"v2":"1024"}`, `{"v2":"2048"}`},
		"data-engine-iobuf-small-pool-size":                 {`{"v2":"8192"}`, `{"v2":"16384"}`},
	}),
}
