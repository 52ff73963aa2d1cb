package catalog

import (
	"errors"
	"maps"
	"testing"

	"github.com/fairlead-io/fairlead/internal/storage"
)

// The matrix of facts on Longhorn: storage-network, RWX network, what pods get.
// The RWX network can be asked for by either setting name; the older one can
// only say "the storage network too".
func TestNetworkMatrix(t *testing.T) {
	n1, n2 := storage.Network{Namespace: "kube-system", Name: "n1"}, storage.Network{Namespace: "kube-system", Name: "n2"}
	for name, test := range map[string]struct {
		values map[Name]string
		want   storage.Attachment
	}{
		"N1, N1 by the older name":          {map[Name]string{StorageNetwork: "kube-system/n1", StorageNetworkForRWX: "true"}, storage.Attachment{Network: n1, Interface: "lhnet1"}},
		"N1, N1 by the newer name":          {map[Name]string{StorageNetwork: "kube-system/n1", EndpointNetworkForRWX: "kube-system/n1"}, storage.Attachment{Network: n1, Interface: "lhnet2"}},
		"none, N1 by the newer name":        {map[Name]string{EndpointNetworkForRWX: "kube-system/n1"}, storage.Attachment{Network: n1, Interface: "lhnet2"}},
		"N1, N2":                            {map[Name]string{StorageNetwork: "kube-system/n1", EndpointNetworkForRWX: "kube-system/n2"}, storage.Attachment{Network: n2, Interface: "lhnet2"}},
		"none, N2":                          {map[Name]string{EndpointNetworkForRWX: "kube-system/n2"}, storage.Attachment{Network: n2, Interface: "lhnet2"}},
		"N1, N2, both names on":             {map[Name]string{StorageNetwork: "kube-system/n1", StorageNetworkForRWX: "true", EndpointNetworkForRWX: "kube-system/n2"}, storage.Attachment{Network: n2, Interface: "lhnet2"}},
		"N1, off":                           {map[Name]string{StorageNetwork: "kube-system/n1", StorageNetworkForRWX: "false"}, storage.Attachment{}},
		"N1, off by default":                {map[Name]string{StorageNetwork: "kube-system/n1"}, storage.Attachment{}},
		"none, off":                         {nil, storage.Attachment{}},
		"none, on without a network":        {map[Name]string{StorageNetworkForRWX: "true"}, storage.Attachment{}},
		"space of before Fairlead's checks": {map[Name]string{StorageNetwork: " kube-system/n1 ", StorageNetworkForRWX: " true "}, storage.Attachment{Network: n1, Interface: "lhnet1"}},
	} {
		for _, source := range []string{"fairlead", "longhorn"} {
			t.Run(name+", set in "+source, func(t *testing.T) {
				own, system := maps.Clone(test.values), test.values
				if source == "fairlead" {
					system = map[Name]string{StorageNetwork: own[StorageNetwork]}
				}
				delete(own, StorageNetwork)
				got, err := SharedVolumeNetwork(Resolve(own, system, "longhorn"), storage.Longhorn())
				if err != nil || got != test.want {
					t.Fatalf("got %q, %v; want %q", got, err, test.want)
				}
			})
		}
	}
}

func TestSharedVolumeNetworkNamesTheInvalidSetting(t *testing.T) {
	for name, test := range map[string]struct {
		values  map[Name]string
		problem string
	}{
		"endpoint network": {
			map[Name]string{EndpointNetworkForRWX: "ns/"},
			`invalid value of setting endpoint-network-for-rwx-volume: value "ns/" must be <namespace>/<NetworkAttachmentDefinition>: name "" is not a DNS name`,
		},
		"switch": {
			map[Name]string{StorageNetworkForRWX: "yes"},
			`invalid value of setting storage-network-for-rwx-volume-enabled: value "yes" must be "true" or "false"`,
		},
		"storage network": {
			map[Name]string{StorageNetwork: "nad", StorageNetworkForRWX: "true"},
			`invalid value of setting storage-network: value "nad" must be <namespace>/<NetworkAttachmentDefinition>`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := SharedVolumeNetwork(Resolve(nil, test.values, "longhorn"), storage.Longhorn())
			if !errors.Is(err, ErrInvalidValue) || err.Error() != test.problem || !got.IsZero() {
				t.Fatalf("got %q, %v; want %s", got, err, test.problem)
			}
		})
	}
}

func TestAnInvalidValueThatDecidesNothingDoesNoHarm(t *testing.T) {
	for name, values := range map[string]map[Name]string{
		"storage network while RWX is off":            {StorageNetwork: "nad"},
		"switch while the endpoint network wins":      {StorageNetworkForRWX: "yes", EndpointNetworkForRWX: "ns/nad"},
		"storage network while the endpoint one wins": {StorageNetwork: "nad", EndpointNetworkForRWX: "ns/nad"},
	} {
		if _, err := SharedVolumeNetwork(Resolve(nil, values, "longhorn"), storage.Longhorn()); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// Longhorn stores the spaces, and the network is then not found.
func TestSpellingsOfNetworks(t *testing.T) {
	const form = "must be <namespace>/<NetworkAttachmentDefinition>"
	for _, name := range []Name{StorageNetwork, EndpointNetworkForRWX} {
		checkSpellings(t, name, map[string]spelled{
			"the cluster network":     {value: ""},
			"blank":                   {value: " "},
			"a network":               {value: "ns/nad", normal: "ns/nad"},
			"space around":            {value: " ns/nad ", normal: "ns/nad"},
			"no name":                 {value: "ns/", problem: form + `: name "" is not a DNS name`},
			"no namespace":            {value: "/nad", problem: form + `: namespace "" is not a DNS label`},
			"what is no name at all":  {value: "A B/C!", problem: form + `: namespace "A B" is not a DNS label`},
			"what breaks annotations": {value: `ns/x"y`, problem: form + `: name "x\"y" is not a DNS name`},
		})
	}
}

func TestStorageNetworkOfComponents(t *testing.T) {
	checkWants(t, StorageNetwork, nil, map[string]asked{
		"instance managers":      {value: " ns/nad ", component: managerV1, want: "ns/nad@lhnet1"},
		"of v2 too":              {value: "ns/nad", component: managerV2, want: "ns/nad@lhnet1"},
		"backing-image managers": {value: "ns/nad", component: imageManager, want: "ns/nad@lhnet1"},
		"the cluster network":    {value: "", component: managerV1, want: ""},
		"not well formed":        {value: "ns/", component: managerV1, none: true},
		"share managers":         {value: "ns/nad", component: shareManager, none: true}, // Rollout's
		"the CSI plugin":         {value: "ns/nad", component: plugin, none: true},
		"a Deployment":           {value: "ns/nad", component: attacher, none: true},
	})
}
