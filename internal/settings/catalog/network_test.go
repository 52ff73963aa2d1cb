package catalog

import (
	"errors"
	"maps"
	"testing"

	"github.com/fairlead-io/fairlead/internal/longhorn"
	"github.com/fairlead-io/fairlead/internal/multus"
	"github.com/fairlead-io/fairlead/internal/testkit/must"
)

// storage-network and the network of RWX volumes, by the two settings that choose the latter.
// storage-network-for-rwx-volume-enabled can only choose the storage network.
func TestNetworkMatrix(t *testing.T) {
	storageNetwork := func(name string) multus.Attachment {
		return multus.Attachment{Network: multus.Network{Namespace: "kube-system", Name: name}, Interface: "lhnet1"}
	}
	endpointNetwork := func(name string) multus.Attachment {
		return multus.Attachment{Network: multus.Network{Namespace: "kube-system", Name: name}, Interface: "lhnet2"}
	}
	for name, test := range map[string]struct {
		values map[Name]string
		want   multus.Attachment
	}{
		"storage network for both":       {map[Name]string{StorageNetwork: "kube-system/n1", StorageNetworkForRWX: "true"}, storageNetwork("n1")},
		"same network as endpoint":       {map[Name]string{StorageNetwork: "kube-system/n1", EndpointNetworkForRWX: "kube-system/n1"}, endpointNetwork("n1")},
		"endpoint network only":          {map[Name]string{EndpointNetworkForRWX: "kube-system/n1"}, endpointNetwork("n1")},
		"two networks":                   {map[Name]string{StorageNetwork: "kube-system/n1", EndpointNetworkForRWX: "kube-system/n2"}, endpointNetwork("n2")},
		"endpoint wins over switch":      {map[Name]string{StorageNetwork: "kube-system/n1", StorageNetworkForRWX: "true", EndpointNetworkForRWX: "kube-system/n2"}, endpointNetwork("n2")},
		"switch off":                     {map[Name]string{StorageNetwork: "kube-system/n1", StorageNetworkForRWX: "false"}, multus.Attachment{}},
		"switch off by default":          {map[Name]string{StorageNetwork: "kube-system/n1"}, multus.Attachment{}},
		"no settings":                    {nil, multus.Attachment{}},
		"switch on without network":      {map[Name]string{StorageNetworkForRWX: "true"}, multus.Attachment{}},
		"spaces":                         {map[Name]string{StorageNetwork: " kube-system/n1 ", StorageNetworkForRWX: " true "}, storageNetwork("n1")},
		"invalid storage network unused": {map[Name]string{StorageNetwork: "nad"}, multus.Attachment{}},
		"invalid switch unused":          {map[Name]string{StorageNetworkForRWX: "yes", EndpointNetworkForRWX: "kube-system/n1"}, endpointNetwork("n1")},
		"both invalid and unused":        {map[Name]string{StorageNetwork: "nad", StorageNetworkForRWX: "yes", EndpointNetworkForRWX: "kube-system/n1"}, endpointNetwork("n1")},
	} {
		for _, source := range []string{"fairlead", "longhorn"} {
			own, system := maps.Clone(test.values), test.values
			if source == "fairlead" {
				system = map[Name]string{StorageNetwork: own[StorageNetwork]}
			}
			delete(own, StorageNetwork)
			got, err := SharedVolumeNetwork(Resolve(own, system), longhorn.DefaultNames())
			must.Check(t, err == nil && got == test.want, "%s, set in %s: got %q, %v; want %q", name, source, got, err, test.want)
		}
	}
}

func TestSharedVolumeNetworkNamesTheInvalidSetting(t *testing.T) {
	for want, values := range map[string]map[Name]string{
		`endpoint-network-for-rwx-volume: value "ns/" must be <namespace>/<NetworkAttachmentDefinition>: name "" is not a DNS name`: {EndpointNetworkForRWX: "ns/"},
		`storage-network-for-rwx-volume-enabled: value "yes" must be "true" or "false"`:                                             {StorageNetworkForRWX: "yes"},
		`storage-network: value "nad" must be <namespace>/<NetworkAttachmentDefinition>`:                                            {StorageNetwork: "nad", StorageNetworkForRWX: "true"},
	} {
		got, err := SharedVolumeNetwork(Resolve(nil, values), longhorn.DefaultNames())
		must.Check(t, errors.Is(err, ErrInvalidValue) && err.Error() == "invalid value of setting "+want && got.IsZero(), "got %q, %v; want %s", got, err, want)
	}
}

// Longhorn stores the spaces, and then does not find the network.
func TestNetworkValues(t *testing.T) {
	for _, name := range []Name{StorageNetwork, EndpointNetworkForRWX} {
		checkValues(t, name, "must be <namespace>/<NetworkAttachmentDefinition>", accepted{
			"": "", " ": "", "ns/nad": "ns/nad", " ns/nad ": "ns/nad",
		}, refused{
			"kube-system": "",
			"ns/":         `name "" is not a DNS name`,
			"/nad":        `namespace "" is not a DNS label`,
			"A B/C!":      `namespace "A B" is not a DNS label`,
			`ns/x"y`:      `name "x\"y" is not a DNS name`,
		})
	}
}

func TestStorageNetworkOfComponents(t *testing.T) {
	checkWants(t, StorageNetwork, nil, []wanted{
		{" ns/nad ", managerV1, "ns/nad@lhnet1"}, {"ns/nad", managerV2, "ns/nad@lhnet1"}, {"ns/nad", imageManager, "ns/nad@lhnet1"},
		{"", managerV1, ""}, {"ns/", managerV1, nothing},
		{"ns/nad", shareManager, nothing}, {"ns/nad", plugin, nothing}, {"ns/nad", attacher, nothing}, // moved by the rollout
	})
}
