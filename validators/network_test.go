package validators

import (
	"testing"

	"github.com/fairlead-io/fairlead/internal/multus"
	"github.com/fairlead-io/fairlead/internal/rwx"
	"github.com/fairlead-io/fairlead/internal/settings"
	"github.com/fairlead-io/fairlead/internal/settings/catalog"
	"github.com/fairlead-io/fairlead/internal/settings/rollout"
)

var both = []multus.Attachment{backupNet, storageNet}

func TestNetworkInUse(t *testing.T) {
	const (
		prefix  = "network kube-system/storage-net is in use by Longhorn: "
		users   = prefix + "setting storage-network, setting endpoint-network-for-rwx-volume, 2 CSI plugin pods, 4 RWX volumes (pvc-a, pvc-b, pvc-c, and 1 more); "
		changed = "pods keep the old configuration until they restart"
		noCNI   = "the config is no CNI configuration, so pods that request the network do not start until it is corrected"
		deleted = "pods that request the network do not start until it is created again"
	)
	inUse := NetworkFacts{
		Values: catalog.Resolve(values{catalog.EndpointNetworkForRWX: "kube-system/storage-net"}, values{catalog.StorageNetwork: "kube-system/storage-net"}),
		Rollout: rollout.Rollout{
			Record:  rollout.Record{Clients: storageNet, Servers: storageNet},
			Clients: []rwx.Client{{Network: storageNet}, {Network: backupNet, Networks: both}, {Network: backupNet}, {}},
			Services: []rwx.Service{
				{Volume: "pvc-c", ClusterIP: "None", Recorded: storageNet}, {Volume: "pvc-b", ClusterIP: "None"},
				{Volume: "pvc-x", ClusterIP: "10.0.0.1", Recorded: storageNet}, {Volume: "pvc-y", ClusterIP: "None", Recorded: backupNet},
			},
			Servers: []rwx.Server{{Volume: "pvc-d", Network: storageNet}, {Volume: "pvc-a", Network: backupNet, Networks: both}, {Volume: "pvc-z", Network: backupNet}},
		},
	}
	strictInUse := inUse
	strictInUse.Policy = settings.Refuse
	otherUsed := NetworkFacts{
		Values:  catalog.Resolve(values{catalog.StorageNetwork: "kube-system/backup-net"}, nil),
		Rollout: rollout.Rollout{Clients: []rwx.Client{{Network: backupNet}}},
	}
	named := NetworkFacts{Values: catalog.Resolve(nil, values{catalog.StorageNetwork: " kube-system/storage-net"})}
	perVolume := NetworkFacts{
		Rollout:  rollout.Rollout{Clients: []rwx.Client{{VolumeNetworks: []multus.Attachment{storageNet}}, {}}},
		Requests: map[string]rwx.Request{"pvc-b": {Network: storageNet.Network}, "pvc-c": {}},
		Classes:  map[string]multus.Network{"fast": storageNet.Network, "slow": backupNet.Network},
	}
	for name, test := range map[string]struct {
		facts              NetworkFacts
		config             string
		deleted            bool
		problems, warnings []string
	}{
		"unused":                   {facts: NetworkFacts{}},
		"another network is used":  {facts: otherUsed},
		"changed":                  {facts: inUse, warnings: []string{users + changed}},
		"deleted":                  {facts: inUse, deleted: true, warnings: []string{users + deleted}},
		"changed to no JSON":       {facts: inUse, config: "{not json", warnings: []string{users + noCNI}},
		"changed to no CNI":        {facts: inUse, config: `{"name":"storage-net"}`, warnings: []string{users + noCNI}},
		"changed to empty plugins": {facts: inUse, config: `{"plugins":[{}]}`, warnings: []string{users + noCNI}},
		"changed to a list":        {facts: inUse, config: `{"plugins":[{"type":"macvlan","ipam":{"type":"dhcp"}}]}`, warnings: []string{users + changed}},
		"changed to no addresses":  {facts: inUse, config: `{"type":"macvlan"}`, warnings: []string{users + changed + ". NetworkAttachmentDefinition kube-system/storage-net: its config has no ipam, and plugin macvlan assigns no addresses: pods on it get none; add an ipam such as whereabouts"}},
		"refused":                  {facts: strictInUse, deleted: true, problems: []string{"spec.config: Forbidden: " + users + deleted + ". Choose another network first"}},
		"named by a setting":       {facts: named, warnings: []string{prefix + "setting storage-network; " + changed}},
		"per-volume network":       {facts: perVolume, warnings: []string{prefix + "1 CSI plugin pod, StorageClass fast, 1 RWX volume (pvc-b); " + changed}},
	} {
		t.Run(name, func(t *testing.T) {
			reason := ReasonInUse
			if len(test.problems)+len(test.warnings) == 0 {
				reason = ReasonValid
			}
			config := &test.config
			if test.deleted {
				config = nil
			}
			checkVerdict(t, ValidateNetwork(storageNet.Network, config, test.facts), reason, test.problems, test.warnings)
		})
	}
}
