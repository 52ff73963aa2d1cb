package longhorn

var v1_8_1 = Version{
	Name: "v1.8.1", RWXNetwork: networkSwitch, RWXInterface: "lhnet1",
	// deploy/longhorn-images.txt
	Sidecars: []string{
		"csi-attacher:v4.8.0", "csi-provisioner:v5.1.0-20241220", "csi-resizer:v1.13.1", "csi-snapshotter:v8.2.0",
		"csi-node-driver-registrar:v2.13.0", "livenessprobe:v2.15.0",
	},
	Zone: v1_7_2.Zone.but(Zone{"v2-data-engine-cpu-mask": {"0x1", "0x2"}}),
}
