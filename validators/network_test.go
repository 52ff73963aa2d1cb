package validators

import (
	"testing"

	"github.com/fairlead-io/fairlead/internal/settings/catalog"
	"github.com/fairlead-io/fairlead/internal/settings/rollout"
	"github.com/fairlead-io/fairlead/internal/storage"
)

func TestNetworkInUse(t *testing.T) {
	inUse := func(f *NetworkFacts) {
		f.Values = catalog.Resolve(values{catalog.EndpointNetworkForRWX: "kube-system/storage-net"}, values{catalog.StorageNetwork: "kube-system/storage-net"}, "longhorn")
		f.Record = rollout.Record{Clients: storageNet, Servers: storageNet}
		f.Clients = []storage.Client{{Network: storageNet}, {Network: backupNet, Networks: []storage.Attachment{backupNet, storageNet}}, {Network: backupNet}, {}}
		f.Services = []storage.Service{
			{Volume: "pvc-c", ClusterIP: "None", Recorded: storageNet}, {Volume: "pvc-b", ClusterIP: "None"},
			{Volume: "pvc-x", ClusterIP: "10.0.0.1", Recorded: storageNet}, {Volume: "pvc-y", ClusterIP: "None", Recorded: backupNet},
		}
		f.Servers = []storage.Server{{Volume: "pvc-c", Network: storageNet}, {Volume: "pvc-a", Network: backupNet, Networks: []storage.Attachment{backupNet, storageNet}}, {Volume: "pvc-z", Network: backupNet}}
	}
	const users = "network kube-system/storage-net is in use by longhorn: setting storage-network, setting endpoint-network-for-rwx-volume, 2 CSI plugin pods, 3 RWX volumes (pvc-a, pvc-b, pvc-c); "
	for name, test := range map[string]struct {
		facts    func(*NetworkFacts)
		deleted  bool
		reason   string
		problems []string
		warnings []string
	}{
		"nobody uses it": {facts: func(*NetworkFacts) {}, reason: ReasonValid},
		"another is used": {
			facts: func(f *NetworkFacts) {
				f.Values = catalog.Resolve(values{catalog.StorageNetwork: "kube-system/backup-net"}, nil, "longhorn")
				f.Clients = []storage.Client{{Network: backupNet}}
			},
			reason: ReasonValid,
		},
		"changed": {
			facts: inUse, reason: ReasonInUse,
			warnings: []string{users + "pods keep the old configuration until they restart"},
		},
		"deleted": {
			facts: inUse, deleted: true, reason: ReasonInUse,
			warnings: []string{users + "pods that ask for it do not start again until it is back"},
		},
		"refused": {
			facts:  func(f *NetworkFacts) { inUse(f); f.Policy = Refuse },
			reason: ReasonInUse, deleted: true,
			problems: []string{"spec.config: Forbidden: " + users + "pods that ask for it do not start again until it is back. Choose another network first"},
		},
		"only named by a setting": {
			facts: func(f *NetworkFacts) {
				f.Values = catalog.Resolve(nil, values{catalog.StorageNetwork: " kube-system/storage-net"}, "longhorn")
			},
			reason:   ReasonInUse,
			warnings: []string{"network kube-system/storage-net is in use by longhorn: setting storage-network; pods keep the old configuration until they restart"},
		},
		"one pod, many volumes": {
			facts: func(f *NetworkFacts) {
				f.Clients = []storage.Client{{Network: storageNet}}
				for _, v := range []string{"e", "d", "c", "b", "a"} {
					f.Servers = append(f.Servers, storage.Server{Volume: v, Network: storageNet})
				}
			},
			reason:   ReasonInUse,
			warnings: []string{"network kube-system/storage-net is in use by longhorn: 1 CSI plugin pod, 5 RWX volumes (a, b, c, and 2 more); pods keep the old configuration until they restart"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			facts := NetworkFacts{Profile: storage.Longhorn(), Policy: Warn}
			test.facts(&facts)
			checkVerdict(t, ValidateNetwork(storageNet.Network, test.deleted, []NetworkFacts{facts}), test.reason, test.problems, test.warnings)
		})
	}
}

func TestNetworkInUseByEveryProfileIsToldAtOnce(t *testing.T) {
	used := NetworkFacts{Profile: storage.Longhorn(), Policy: Refuse, Clients: []storage.Client{{Network: storageNet}}}
	other := used
	other.Profile.Name = "rook-ceph"
	free := NetworkFacts{Profile: storage.Longhorn(), Policy: Refuse}
	const why = "1 CSI plugin pod; pods keep the old configuration until they restart. Choose another network first"
	checkVerdict(t, ValidateNetwork(storageNet.Network, false, []NetworkFacts{used, free, other}), ReasonInUse, []string{
		"spec.config: Forbidden: network kube-system/storage-net is in use by longhorn: " + why,
		"spec.config: Forbidden: network kube-system/storage-net is in use by rook-ceph: " + why,
	}, nil)
}
