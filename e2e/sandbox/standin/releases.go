package standin

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// defaultRelease is the version that the stand-in is compared with, object by object.
const defaultRelease = "v1.7.2"

// Release is a version of longhorn-manager: what it does otherwise than other versions.
// Manifests are those of v1.7.2 in every version, but for images and networks.
type Release struct {
	version string
	// endpointNetwork: RWX volumes have a network setting of their own, on lhnet2, instead of a
	// switch that puts them on storage-network (types/setting.go, types/deploy.go).
	endpointNetwork bool
	// gatesByState: storage-network, priority-class, taint-toleration and the node selector wait for the
	// state of volumes (AreAllVolumesDetachedState), earlier for engines (AreAllVolumesDetached in datastore/longhorn.go).
	gatesByState bool
	// skipsMigratable: migratable volumes do not hold up the RWX network (AreAllRWXVolumesDetached in datastore/longhorn.go).
	skipsMigratable bool
	// settings that v1.7.2 has not, of those that Fairlead looks at, with their defaults (types/setting.go).
	settings map[string]string
	// without: settings of v1.7.2 that it has not any more.
	without []string
}

// releases of Longhorn whose sources were read, oldest first.
func releases() []Release {
	of18 := map[string]string{formerCPUMask: "0x1"}
	of110 := map[string]string{
		cpuMask: `{"v2":"0x1"}`, memorySize: `{"v2":"2048"}`, hugepagesEnabled: `{"v2":"true"}`, interruptMode: `{"v2":"false"}`,
		managerProbe: "10", logPath: "/var/lib/longhorn/logs/",
	}
	of111 := with(of110, map[string]string{
		rwxEndpointNetwork: "", "blacklist-for-auto-delete-pod-when-volume-detached-unexpectedly": "", "system-managed-csi-components-resource-limits": "",
	})
	of112 := with(of111, map[string]string{
		cpuMask: `{"v2":"0x3"}`, "engine-image-pod-liveness-probe-period": "5", "engine-image-pod-liveness-probe-timeout": "4",
		"engine-image-pod-liveness-probe-failure-threshold": "3",
	})
	of1121 := with(of112, map[string]string{
		cpuCores: `{"v2":"0"}`, cpuIsolation: `{"v2":"false"}`, largePool: `{"v2":"1024"}`, smallPool: `{"v2":"8192"}`,
	})
	gone110 := []string{formerCPUMask, formerMemory, formerCPU}
	gone111 := append(slices.Clone(gone110), rwxOnStorage)
	return []Release{
		{version: defaultRelease},
		{version: "v1.8.1", gatesByState: true, settings: of18},
		{version: "v1.9.0", gatesByState: true, settings: of18},
		{version: "v1.10.0", gatesByState: true, settings: of110, without: gone110},
		{version: "v1.11.1", gatesByState: true, skipsMigratable: true, endpointNetwork: true, settings: of111, without: gone111},
		{version: "v1.12.0", gatesByState: true, skipsMigratable: true, endpointNetwork: true, settings: of112, without: gone111},
		{version: "v1.12.1", gatesByState: true, skipsMigratable: true, endpointNetwork: true, settings: of1121, without: gone111},
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
	storageNetwork     = "storage-network"
	rwxOnStorage       = "storage-network-for-rwx-volume-enabled"
	rwxEndpointNetwork = "endpoint-network-for-rwx-volume"
)

// Interfaces of Longhorn's networks (types/types.go).
const (
	storageInterface  = "lhnet1"
	endpointInterface = "lhnet2"
)

// FindRelease by version; empty is the default.
func FindRelease(version string) (Release, error) {
	if version == "" {
		version = defaultRelease
	}
	all := releases()
	if n := slices.IndexFunc(all, func(r Release) bool { return r.version == version }); n >= 0 {
		return all[n], nil
	}
	return Release{}, fmt.Errorf("the stand-in does not know Longhorn %s", version)
}

// image of one of Longhorn's own components.
func (r Release) image(name string) string { return "longhornio/" + name + ":" + r.version }

// rwxSetting names the setting that decides on the network of RWX volumes.
func (r Release) rwxSetting() string {
	if r.endpointNetwork {
		return rwxEndpointNetwork
	}
	return rwxOnStorage
}

// rwxNetwork is the network of RWX volumes by the settings' values, applied or not, empty for none: IsStorageNetworkForRWXVolume
// and, from 1.11, IsEndpointNetworkForRWXVolumeInSetting in datastore/longhorn.go.
func (r Release) rwxNetwork(values settingValues) string {
	if r.endpointNetwork {
		return values[rwxEndpointNetwork]
	}
	if switchedOn(values[rwxOnStorage]) {
		return values[storageNetwork]
	}
	return ""
}

// rwxAnnotation is what server and client pods of RWX volumes ask Multus for.
func (r Release) rwxAnnotation(values settingValues) map[string]string {
	if r.endpointNetwork {
		return cniAnnotation(r.rwxNetwork(values), endpointInterface)
	}
	return cniAnnotation(r.rwxNetwork(values), storageInterface)
}

// published is the network whose address the endpoint controller publishes: from 1.11 that of RWX volumes, earlier
// storage-network even where RWX volumes do not use it (GetStorageIPFromPod in datastore/kubernetes.go).
func (r Release) published(values settingValues) string {
	if r.endpointNetwork {
		return values[rwxEndpointNetwork]
	}
	return values[storageNetwork]
}

// networksAnnotation asks Multus for networks.
const networksAnnotation = "k8s.v1.cni.cncf.io/networks"

// cniAnnotation follows CreateCniAnnotationFromSetting in types/types.go.
func cniAnnotation(network, iface string) map[string]string {
	namespace, name, found := strings.Cut(network, "/")
	if !found {
		return nil
	}
	return map[string]string{networksAnnotation: fmt.Sprintf(`[{"namespace": "%s", "name": "%s", "interface": "%s"}]`, namespace, name, iface)}
}

// withNetwork sets or removes the request for a network, as UpdateDaemonSetTemplateBasedOnStorageNetwork in types/deploy.go does.
func withNetwork(annotations, network map[string]string) map[string]string {
	annotations = maps.Clone(annotations)
	delete(annotations, networksAnnotation)
	if annotations == nil && len(network) > 0 {
		annotations = map[string]string{}
	}
	maps.Copy(annotations, network)
	return annotations
}

// seedRelease turns the settings of v1.7.2 into those of the stand-in's version.
func (l Longhorn) seedRelease(ctx context.Context) error {
	version := l.object("Setting", "current-longhorn-version")
	if err := l.client.Patch(ctx, version, client.RawPatch(types.MergePatchType, fmt.Appendf(nil, `{"value":%q}`, l.release.version))); err != nil {
		return fmt.Errorf("writing the version: %w", err)
	}
	for name, value := range l.release.settings {
		setting := l.object("Setting", name)
		setting.Object["value"] = value
		if err := l.create(ctx, setting); err != nil {
			return err
		}
	}
	for _, name := range l.release.without {
		if err := client.IgnoreNotFound(l.client.Delete(ctx, l.object("Setting", name))); err != nil {
			return fmt.Errorf("deleting setting %s: %w", name, err)
		}
	}
	return nil
}

// Upgrade brings the settings to those of the release, as its manager does when it starts (InitSettings in
// datastore/longhorn.go), then the CSI plugin. Controllers of the version before must have ended.
func (l Longhorn) Upgrade(ctx context.Context) error {
	if err := l.inheritNetwork(ctx); err != nil {
		return err
	}
	if err := l.seedRelease(ctx); err != nil {
		return err
	}
	return l.DeployPlugin(ctx)
}

// inheritNetwork follows syncSettingEndpointNetworkForRWXVolume in datastore/longhorn.go of v1.11.1.
func (l Longhorn) inheritNetwork(ctx context.Context) error {
	values, err := l.currentSettings(ctx)
	if err != nil {
		return err
	}
	if _, there := values[rwxEndpointNetwork]; there || !l.release.endpointNetwork || !switchedOn(values[rwxOnStorage]) {
		return nil
	}
	setting := l.object("Setting", rwxEndpointNetwork)
	setting.Object["value"] = values[storageNetwork]
	return l.create(ctx, setting)
}
