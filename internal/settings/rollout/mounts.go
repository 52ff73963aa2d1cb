package rollout

import (
	"github.com/fairlead-io/fairlead/internal/settings/catalog"
)

import "github.com/fairlead-io/fairlead/internal/storage"

// MountPlace is where the storage system's clients mount shared volumes now, by
// the values of its own settings, applied or not; "" if those can't be read.
//
// Source: longhorn-manager v1.7.0 to v1.12.0, csi/node_server.go:
// requireHostNamespaceMounter chooses the namespace, restageRequired whether each pod
// has a mount of its own, which is the case while storage-network has a value.
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

// MountsMiss tells whether new mounts do not reach the server of a headless
// Service: the server is on a network, and mounts are made from the node's network.
func MountsMiss(service *storage.Service, clients storage.Attachment, place storage.MountPlace) bool {
	return place == storage.InHost && !service.Network(clients).IsZero()
}
