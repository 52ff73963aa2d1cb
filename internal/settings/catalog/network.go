package catalog

import (
	"errors"
	"fmt"

	"github.com/fairlead-io/fairlead/internal/storage"
)

// The settings that choose the network of shared volumes. Source: Longhorn's
// proposal "Storage Network For RWX Volume"; the third replaces the second
// from Longhorn 1.11.
const (
	StorageNetwork           Name = "storage-network"
	StorageNetworkForRWX     Name = "storage-network-for-rwx-volume-enabled"
	EndpointNetworkForRWX    Name = "endpoint-network-for-rwx-volume"
	affectsSharedVolumesOnly      = "CSI plugin DaemonSet, share-manager pods and Services"
)

func networkFamily() []Definition {
	return []Definition{
		{
			Name: StorageNetwork, Normalize: normalizeNetwork, NamesNetwork: true, Since: "1.3", DangerZone: true, Gate: AllVolumesDetached,
			Trait: StorageAttachment, Wants: wants(onStorageNetwork, storageAttachment),
			Affects: "instance-manager and backing-image-manager pods; with " + string(StorageNetworkForRWX) + ", also " + affectsSharedVolumesOnly,
		},
		{
			Name: StorageNetworkForRWX, Default: "false", Normalize: normalizeBool, Since: "1.7", Until: "1.11", ReplacedBy: EndpointNetworkForRWX,
			ByFairlead: true, DangerZone: true, Gate: SharedVolumesDetached,
			Affects: affectsSharedVolumesOnly,
		},
		{
			Name: EndpointNetworkForRWX, Normalize: normalizeNetwork, NamesNetwork: true, Since: "1.11",
			ByFairlead: true, DangerZone: true, Gate: SharedVolumesDetached,
			Affects: affectsSharedVolumesOnly,
		},
	}
}

// ChooseSharedNetwork are the settings whose gate is that of RWX volumes.
func ChooseSharedNetwork() []Definition {
	var chosen []Definition
	for _, d := range networkFamily() {
		if d.Gate == SharedVolumesDetached {
			chosen = append(chosen, d)
		}
	}
	return chosen
}

func normalizeNetwork(value string) (string, error) {
	network, err := storage.ParseNetwork(value)
	return network.String(), err
}

// storageAttachment is how instance managers and backing-image managers are put
// on the network, as Attachment.String writes it.
func storageAttachment(value string) (string, error) {
	network, err := storage.ParseNetwork(value)
	return attachment(network, storage.Longhorn().StorageInterface).String(), err
}

// ErrInvalidValue is returned where a value in force is not well formed.
var ErrInvalidValue = errors.New("invalid value")

// SharedVolumeNetwork is the network that the values ask for shared volumes:
// endpoint-network-for-rwx-volume where it is set, else storage-network when
// storage-network-for-rwx-volume-enabled is on, else the cluster network.
//
// An error is ErrInvalidValue and names the setting whose value in force is not
// well formed. That happens to values written before Fairlead's webhooks were there.
func SharedVolumeNetwork(values Values, p storage.Profile) (storage.Attachment, error) {
	named := func(name Name) (text string, network storage.Network, err error) {
		d, _ := Lookup(string(name))
		if text, err = values.Normal(d); err != nil {
			return "", network, fmt.Errorf("%w of setting %s: %w", ErrInvalidValue, name, err)
		}
		if d.NamesNetwork {
			network, err = storage.ParseNetwork(text)
		}
		return text, network, err
	}
	_, endpoint, err := named(EndpointNetworkForRWX)
	if err != nil || !endpoint.IsZero() {
		return attachment(endpoint, p.EndpointInterface), err
	}
	enabled, _, err := named(StorageNetworkForRWX)
	if err != nil || enabled != "true" {
		return storage.Attachment{}, err
	}
	_, network, err := named(StorageNetwork)
	return attachment(network, p.StorageInterface), err
}

// attachment to a network; the zero one to none.
func attachment(n storage.Network, networkInterface string) storage.Attachment {
	if n.IsZero() {
		return storage.Attachment{}
	}
	return storage.Attachment{Network: n, Interface: networkInterface}
}
