package rollout

import (
	"fmt"

	"github.com/fairlead-io/fairlead/internal/longhorn"
	"github.com/fairlead-io/fairlead/internal/multus"
	"github.com/fairlead-io/fairlead/internal/rwx"
	"github.com/fairlead-io/fairlead/internal/settings/catalog"
)

// MountPlace returns where the storage system's clients mount RWX volumes now, by its own settings,
// applied or not; "" if a setting is malformed.
//
// Source: longhorn-manager v1.7.0 to v1.12.0, csi/node_server.go:
// requireHostNamespaceMounter chooses the namespace. By restageRequired, each pod has its own mount
// while storage-network has a value.
func MountPlace(system map[catalog.Name]string, p longhorn.Names) rwx.MountPlace {
	if !p.MountsFromHost {
		return rwx.InClient
	}
	storageNetwork := system[catalog.StorageNetwork] != ""
	inClient, known := false, false
	if endpoint, newer := system[catalog.EndpointNetworkForRWX]; newer {
		inClient, known = endpoint != "", true
	} else {
		enabled, err := catalog.BoolValue(system[catalog.StorageNetworkForRWX])
		inClient, known = enabled && storageNetwork, err == nil || system[catalog.StorageNetworkForRWX] == ""
	}
	switch {
	case !known:
		return ""
	case !inClient:
		return rwx.InHost
	case !storageNetwork:
		return rwx.InEither
	}
	return rwx.InClient
}

// MountsMiss reports whether new mounts cannot reach the server of a headless Service: the server is
// on a network, and mounts use the node's network.
func MountsMiss(service *rwx.Service, clients multus.Attachment, place rwx.MountPlace) bool {
	return place == rwx.InHost && !service.Network(clients).IsZero()
}

// HoldsApplied says why the storage system's setting of the network for RWX volumes must not be
// reported as applied, or "". value is the network by the storage system's own settings.
//
// If the settings are applied, Longhorn deletes a Service of the wrong kind when it recreates the
// server pod. Workloads would lose the cluster IP that they have mounted.
//
// Source: longhorn-manager v1.7.2 and v1.12.0 controller/share_manager_controller.go,
// canCleanupService.
func HoldsApplied(value multus.Attachment, record Record, services []rwx.Service, volumes []rwx.Volume) string {
	if value.IsZero() || record.Unknown {
		return ""
	}
	attached := map[string]bool{}
	for _, v := range volumes {
		attached[v.Name] = v.Shared && v.Attached
	}
	for _, s := range services {
		if attached[s.Volume] && !s.Headless() && !s.OptOut {
			return fmt.Sprintf("volume %s is attached and has a cluster IP", s.Volume)
		}
	}
	if record.Servers.IsZero() {
		return "Services of new volumes have a cluster IP until every CSI plugin pod is on the network"
	}
	return ""
}
