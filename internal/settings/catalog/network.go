package catalog

import (
	"errors"
	"fmt"

	"github.com/fairlead-io/fairlead/internal/longhorn"
	"github.com/fairlead-io/fairlead/internal/multus"
)

// The settings that choose the network of shared volumes. Source: Longhorn's proposal
// "Storage Network For RWX Volume". From Longhorn 1.11, the third replaces the second.
const (
	StorageNetwork           Name = "storage-network"
	StorageNetworkForRWX     Name = "storage-network-for-rwx-volume-enabled"
	EndpointNetworkForRWX    Name = "endpoint-network-for-rwx-volume"
	affectsSharedVolumesOnly      = "CSI plugin DaemonSet, share-manager pods and Services"
)

// OrClusterNetwork follows the form of a network: without a name, it is the cluster network.
const OrClusterNetwork = `, or "" for the cluster network`

// Allowed says in full which values the setting may have.
func (d Definition) Allowed() string {
	if d.NamesNetwork {
		return d.Form + OrClusterNetwork
	}
	return d.Form
}

func networkFamily() []Definition {
	return []Definition{
		{
			Name: StorageNetwork, Normalize: normalizeNetwork, Form: multus.ErrNotANetwork.Error(), NamesNetwork: true, Since: "1.3", DangerZone: true, Gate: AllVolumesDetached,
			Trait: StorageAttachment, Wants: wants(onStorageNetwork, storageAttachment),
			Affects: "instance-manager and backing-image-manager pods; with " + string(StorageNetworkForRWX) + ", also " + affectsSharedVolumesOnly,
		},
		{
			Name: StorageNetworkForRWX, Default: "false", Normalize: normalizeBool, Form: boolForm, Since: "1.7", Until: "1.11", ReplacedBy: EndpointNetworkForRWX,
			ByFairlead: true, DangerZone: true, Gate: SharedVolumesDetached,
			Affects: affectsSharedVolumesOnly,
		},
		{
			Name: EndpointNetworkForRWX, Normalize: normalizeNetwork, Form: multus.ErrNotANetwork.Error(), NamesNetwork: true, Since: "1.11",
			ByFairlead: true, DangerZone: true, Gate: SharedVolumesDetached,
			Affects: affectsSharedVolumesOnly,
		},
	}
}

// ChooseSharedNetwork returns the settings with the gate of RWX volumes.
func ChooseSharedNetwork() []Definition {
	var chosen []Definition
	for _, d := range networkFamily() {
		if d.Gate == SharedVolumesDetached {
			chosen = append(chosen, d)
		}
	}
	return chosen
}

// NetworkProblem says why pods on the network that the setting names do not start; "" if nothing is known against it.
func (d Definition) NetworkProblem(value string, networks map[multus.Network]bool) string {
	n, err := multus.ParseNetwork(value)
	if !d.NamesNetwork || err != nil {
		return ""
	}
	return NetworkProblem(n, networks)
}

// NetworkProblem says why pods on a network do not start; "" if nothing is known against it. The networks that exist are true,
// or false if CNI can't read their config; nil is unknown.
func NetworkProblem(n multus.Network, networks map[multus.Network]bool) string {
	usable, there := networks[n]
	switch {
	case networks == nil || n.IsZero() || usable:
		return ""
	case there:
		return fmt.Sprintf("the config of NetworkAttachmentDefinition %s is no CNI configuration, and pods on it do not start: correct it", n)
	}
	return fmt.Sprintf("there is no NetworkAttachmentDefinition %s, and pods on it do not start: create it", n)
}

// NoNetwork blocks what needs pods on a network with a problem.
func NoNetwork(n multus.Network, networks map[multus.Network]bool) Blocker {
	return Blocker{Kind: BlockedByNetwork, Name: n.String(), Message: NetworkProblem(n, networks) + ", or choose another network"}
}

func normalizeNetwork(value string) (string, error) {
	network, err := multus.ParseNetwork(value)
	return network.String(), err
}

// storageAttachment is the trait of instance managers and backing-image managers, see Attachment.String.
func storageAttachment(value string) (string, error) {
	network, err := multus.ParseNetwork(value)
	return attachment(network, longhorn.DefaultNames().StorageInterface).String(), err
}

// ErrInvalidValue is returned if a value in effect is malformed.
var ErrInvalidValue = errors.New("invalid value")

// SharedVolumeNetwork is the network of shared volumes: endpoint-network-for-rwx-volume if set,
// else storage-network if storage-network-for-rwx-volume-enabled is on, else the cluster network.
//
// The error is ErrInvalidValue with the name of the setting. Values from before Fairlead's webhooks may be malformed.
func SharedVolumeNetwork(values Values, p longhorn.Names) (multus.Attachment, error) {
	named := func(name Name) (text string, network multus.Network, err error) {
		d, _ := Lookup(string(name))
		if text, err = values.Normal(d); err != nil {
			return "", network, fmt.Errorf("%w of setting %s: %w", ErrInvalidValue, name, err)
		}
		if d.NamesNetwork {
			network, err = multus.ParseNetwork(text)
		}
		return text, network, err
	}
	_, endpoint, err := named(EndpointNetworkForRWX)
	if err != nil || !endpoint.IsZero() {
		return attachment(endpoint, p.EndpointInterface), err
	}
	enabled, _, err := named(StorageNetworkForRWX)
	if err != nil || enabled != "true" {
		return multus.Attachment{}, err
	}
	_, network, err := named(StorageNetwork)
	return attachment(network, p.StorageInterface), err
}

// attachment is zero for the cluster network.
func attachment(n multus.Network, networkInterface string) multus.Attachment {
	if n.IsZero() {
		return multus.Attachment{}
	}
	return multus.Attachment{Network: n, Interface: networkInterface}
}
