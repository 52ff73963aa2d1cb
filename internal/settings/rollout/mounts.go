package rollout

import (
	"github.com/fairlead-io/fairlead/internal/settings/catalog"
	"github.com/fairlead-io/fairlead/internal/storage"
)

// MountPlace returns where the storage system's clients mount RWX volumes now, by its own settings,
// applied or not; "" if a setting is malformed.
//
// Source: longhorn-manager v1.7.0 to v1.12.0, csi/node_server.go:
// requireHostNamespaceMounter chooses the namespace. By restageRequired, each pod has its own mount
// while storage-network has a value.
func MountPlace(system map[catalog.Name]string, p storage.Profile) storage.MountPlace {
	if !p.MountsFromHost {
		return storage.InClient
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
		return storage.InHost
	case !storageNetwork:
		return storage.InEither
	}
	return storage.InClient
}

// MountsMiss reports whether new mounts cannot reach the server of a headless Service: the server is
// on a network, and mounts use the node's network.
func MountsMiss(service *storage.Service, clients storage.Attachment, place storage.MountPlace) bool {
	return place == storage.InHost && !service.Network(clients).IsZero()
}
