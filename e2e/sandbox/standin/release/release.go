package release

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// Default is the version that the stand-in is compared with, object by object.
const Default = "v1.7.2"

// Release is a version of longhorn-manager: what it does otherwise than other versions.
// Manifests are those of v1.7.2 in every version, but for images and networks.
type Release struct {
	Version string
	// EndpointNetwork: RWX volumes have a network setting of their own, on lhnet2, instead of a
	// switch that puts them on storage-network (types/setting.go, types/deploy.go).
	EndpointNetwork bool
	// GatesByState: storage-network, priority-class, taint-toleration and the node selector wait for the
	// state of volumes (AreAllVolumesDetachedState), earlier for engines (AreAllVolumesDetached in datastore/longhorn.go).
	GatesByState bool
	// SkipsMigratable: migratable volumes do not hold up the RWX network (AreAllRWXVolumesDetached in datastore/longhorn.go).
	SkipsMigratable bool
	// Settings that v1.7.2 has not, of those that Fairlead looks at, with their defaults (types/setting.go).
	Settings map[string]string
	// Without: settings of v1.7.2 that it has not any more.
	Without []string
}

// releases of Longhorn whose sources were read, oldest first.
func releases() []Release {
	of18 := map[string]string{FormerCPUMask: "0x1"}
	of110 := map[string]string{
		CpuMask: `{"v2":"0x1"}`, MemorySize: `{"v2":"2048"}`, HugepagesEnabled: `{"v2":"true"}`, InterruptMode: `{"v2":"false"}`,
		ManagerProbe: "10", LogPath: "/var/lib/longhorn/logs/",
	}
	of111 := with(of110, map[string]string{
		RWXEndpointNetwork: "", "blacklist-for-auto-delete-pod-when-volume-detached-unexpectedly": "", "system-managed-csi-components-resource-limits": "",
	})
	of112 := with(of111, map[string]string{
		CpuMask: `{"v2":"0x3"}`, "engine-image-pod-liveness-probe-period": "5", "engine-image-pod-liveness-probe-timeout": "4",
		"engine-image-pod-liveness-probe-failure-threshold": "3",
	})
	of1121 := with(of112, map[string]string{
		CpuCores: `{"v2":"0"}`, CpuIsolation: `{"v2":"false"}`, LargePool: `{"v2":"1024"}`, SmallPool: `{"v2":"8192"}`,
	})
	gone110 := []string{FormerCPUMask, FormerMemory, FormerCPU}
	gone111 := append(slices.Clone(gone110), RWXOnStorage)
	return []Release{
		{Version: Default},
		{Version: "v1.8.1", GatesByState: true, Settings: of18},
		{Version: "v1.9.0", GatesByState: true, Settings: of18},
		{Version: "v1.10.0", GatesByState: true, Settings: of110, Without: gone110},
		{Version: "v1.11.1", GatesByState: true, SkipsMigratable: true, EndpointNetwork: true, Settings: of111, Without: gone111},
		{Version: "v1.12.0", GatesByState: true, SkipsMigratable: true, EndpointNetwork: true, Settings: of112, Without: gone111},
		{Version: "v1.12.1", GatesByState: true, SkipsMigratable: true, EndpointNetwork: true, Settings: of1121, Without: gone111},
	}
}

// with returns the settings and more, which take precedence.
func with(settings, more map[string]string) map[string]string {
	all := maps.Clone(settings)
	maps.Copy(all, more)
	return all
}

// Network settings of Longhorn.
const (
	StorageNetwork     = "storage-network"
	RWXOnStorage       = "storage-network-for-rwx-volume-enabled"
	RWXEndpointNetwork = "endpoint-network-for-rwx-volume"
)

// Interfaces of Longhorn's networks (types/types.go).
const (
	StorageInterface  = "lhnet1"
	endpointInterface = "lhnet2"
)

// Find by version; empty is the default.
func Find(version string) (Release, error) {
	if version == "" {
		version = Default
	}
	all := releases()
	if n := slices.IndexFunc(all, func(r Release) bool { return r.Version == version }); n >= 0 {
		return all[n], nil
	}
	return Release{}, fmt.Errorf("the stand-in does not know Longhorn %s", version)
}

// Image of one of Longhorn's own components.
func (r Release) Image(name string) string { return "longhornio/" + name + ":" + r.Version }

// RWXSetting names the setting that decides on the network of RWX volumes.
func (r Release) RWXSetting() string {
	if r.EndpointNetwork {
		return RWXEndpointNetwork
	}
	return RWXOnStorage
}

// RWXNetwork is the network of RWX volumes by the settings' values, applied or not, empty for none: IsStorageNetworkForRWXVolume
// and, from 1.11, IsEndpointNetworkForRWXVolumeInSetting in datastore/longhorn.go.
func (r Release) RWXNetwork(values map[string]string) string {
	if r.EndpointNetwork {
		return values[RWXEndpointNetwork]
	}
	if SwitchedOn(values[RWXOnStorage]) {
		return values[StorageNetwork]
	}
	return ""
}

// RWXAnnotation is what server and client pods of RWX volumes ask Multus for.
func (r Release) RWXAnnotation(values map[string]string) map[string]string {
	if r.EndpointNetwork {
		return CNIAnnotation(r.RWXNetwork(values), endpointInterface)
	}
	return CNIAnnotation(r.RWXNetwork(values), StorageInterface)
}

// Published is the network whose address the endpoint controller publishes: from 1.11 that of RWX volumes, earlier
// storage-network even where RWX volumes do not use it (GetStorageIPFromPod in datastore/kubernetes.go).
func (r Release) Published(values map[string]string) string {
	if r.EndpointNetwork {
		return values[RWXEndpointNetwork]
	}
	return values[StorageNetwork]
}

// NetworksAnnotation asks Multus for networks.
const NetworksAnnotation = "k8s.v1.cni.cncf.io/networks"

// CNIAnnotation follows CreateCniAnnotationFromSetting in types/types.go.
func CNIAnnotation(network, iface string) map[string]string {
	namespace, name, found := strings.Cut(network, "/")
	if !found {
		return nil
	}
	return map[string]string{NetworksAnnotation: fmt.Sprintf(`[{"namespace": "%s", "name": "%s", "interface": "%s"}]`, namespace, name, iface)}
}

// WithNetwork sets or removes the request for a network, as UpdateDaemonSetTemplateBasedOnStorageNetwork in types/deploy.go does.
func WithNetwork(annotations, network map[string]string) map[string]string {
	annotations = maps.Clone(annotations)
	delete(annotations, NetworksAnnotation)
	if annotations == nil && len(network) > 0 {
		annotations = map[string]string{}
	}
	maps.Copy(annotations, network)
	return annotations
}

// SwitchedOn and decimal read values as Longhorn does, in any spelling: parseSettingSingleBool and parseSettingSingleInt in types/setting.go.
func SwitchedOn(value string) bool {
	on, err := strconv.ParseBool(strings.TrimSpace(value))
	return err == nil && on
}

// Settings that instance managers are built by.
const (
	GuaranteedCPU    = "guaranteed-instance-manager-cpu"
	ManagerProbe     = "instance-manager-pod-liveness-probe-timeout"
	LogPath          = "log-path"
	CpuMask          = "data-engine-cpu-mask"
	CpuCores         = "data-engine-number-of-cpu-cores"
	CpuIsolation     = "data-engine-cpu-isolation-enabled"
	MemorySize       = "data-engine-memory-size"
	HugepagesEnabled = "data-engine-hugepage-enabled"
	InterruptMode    = "data-engine-interrupt-mode-enabled"
	LargePool        = "data-engine-iobuf-large-pool-size"
	SmallPool        = "data-engine-iobuf-small-pool-size"

	FormerCPU     = "v2-data-engine-guaranteed-instance-manager-cpu"
	FormerCPUMask = "v2-data-engine-cpu-mask"
	FormerMemory  = "v2-data-engine-hugepage-limit"
)
