package validators

import (
	"testing"

	"github.com/fairlead-io/fairlead/internal/settings/rollout"
	"github.com/fairlead-io/fairlead/internal/storage"
)

var teamNet = storage.VolumeAttachment(storage.Network{Namespace: "team-x", Name: "nfs"})

const (
	askNetwork = storage.VolumeNetworkAnnotation
	askAddress = storage.VolumeAddressesAnnotation
	askMAC     = storage.VolumeMACAnnotation
)

// asking is a ReadWriteMany claim with annotations, in a cluster whose volumes are on storageNet.
func asking(annotations map[string]string) (VolumeAsking, VolumeNetworkFacts) {
	var o VolumeAsking
	o.Metadata.Namespace, o.Metadata.Name, o.Metadata.Annotations = "default", "data", annotations
	o.Spec.AccessModes = []string{"ReadWriteMany"}
	return o, VolumeNetworkFacts{
		Claim:  storage.RequestSource{Kind: storage.ClaimKind, Namespace: "default", Name: "data", Annotations: annotations},
		Driver: "driver.longhorn.io", Drivers: []string{"driver.longhorn.io"},
		Networks: []storage.Network{storageNet.Network, teamNet.Network}, NetworksKnown: true, MissingPolicy: Warn,
		Rollout: rollout.Rollout{
			Record:    rollout.Record{Clients: storageNet, Servers: storageNet},
			DaemonSet: rollout.DaemonSet{Name: "csi", Found: true, Network: storageNet},
			Clients:   []storage.Client{{Pod: "csi-1", Node: "node-1", Network: storageNet}, {Pod: "csi-2", Node: "node-2", Network: storageNet}},
		},
	}
}

func TestVolumeNetwork(t *testing.T) {
	ready := func(f *VolumeNetworkFacts) {
		f.Rollout.Record.VolumeClients, f.Rollout.Record.VolumeServers = []storage.Attachment{teamNet}, []storage.Attachment{teamNet}
	}
	attached := storage.Volume{Name: "pvc-a", Shared: true, Attached: true, Nodes: []string{"node-2"}, Workloads: []string{"default/web-0"}}
	const joins = "accepted; 2 CSI plugin pods restart to join network team-x/nfs, each when no RWX volume is attached on its node"
	const onlyOne = "must be one IP address of each family at most, with or without a prefix length, separated by a comma"
	for name, test := range map[string]struct {
		kind               string
		annotations        map[string]string
		change             func(*VolumeAsking, *VolumeNetworkFacts)
		reason             string
		problems, warnings []string
	}{
		"well formed, and servers may be on it": {
			annotations: map[string]string{askNetwork: "team-x/nfs", askAddress: "10.0.0.9/24", askMAC: "02:00:00:00:00:01"},
			change:      func(_ *VolumeAsking, f *VolumeNetworkFacts) { ready(f) }, reason: ReasonValid,
		},
		"addresses on the network of all, without a prefix": {annotations: map[string]string{askAddress: "10.0.0.9"}, reason: ReasonValid},
		"all problems at once": {
			annotations: map[string]string{askNetwork: "nfs", askAddress: "x", askMAC: "01:00:00:00:00:01"}, reason: ReasonInvalidValue,
			problems: []string{
				`metadata.annotations[fairlead.io/volume-network]: Invalid value: "nfs": must be <namespace>/<NetworkAttachmentDefinition>, or "" for the network that all volumes are on`,
				`metadata.annotations[fairlead.io/volume-addresses]: Invalid value: "x": ` + onlyOne + `: "x" is not an IP address`,
				`metadata.annotations[fairlead.io/volume-mac]: Invalid value: "01:00:00:00:00:01": must be a unicast MAC address such as 02:00:00:00:00:01: 01:00:00:00:00:01 is for a group of receivers`,
			},
		},
		"a class has many volumes": {
			kind: storage.ClassKind, annotations: map[string]string{askNetwork: "team-x/nfs", askAddress: "10.0.0.9", askMAC: "02:00:00:00:00:01"}, reason: ReasonInvalidValue,
			problems: []string{
				"metadata.annotations[fairlead.io/volume-addresses]: Forbidden: many volumes share a StorageClass, and an address is one volume's: set it on the PersistentVolumeClaim or the PersistentVolume",
				"metadata.annotations[fairlead.io/volume-mac]: Forbidden: many volumes share a StorageClass, and an address is one volume's: set it on the PersistentVolumeClaim or the PersistentVolume",
			},
		},
		"no such network": {
			annotations: map[string]string{askNetwork: "team-y/nfs"}, reason: ReasonPending,
			warnings: []string{
				"there is no NetworkAttachmentDefinition team-y/nfs (in this cluster: kube-system/storage-net, team-x/nfs); volumes stay where they are, and no pod restarts for it, until you create it",
			},
		},
		"no such network, named by the class": {
			annotations: map[string]string{askAddress: "10.0.0.9"}, reason: ReasonPending,
			change: func(_ *VolumeAsking, f *VolumeNetworkFacts) {
				f.Class = storage.RequestSource{Kind: storage.ClassKind, Name: "fast", Annotations: map[string]string{askNetwork: "team-y/nfs"}}
				f.Concerned = []storage.Volume{attached}
			},
			warnings: []string{"there is no NetworkAttachmentDefinition team-y/nfs (in this cluster: kube-system/storage-net, team-x/nfs); volumes stay where they are, and no pod restarts for it, until you create it"},
		},
		"no such network, refused": {
			annotations: map[string]string{askNetwork: "team-y/nfs"}, change: func(_ *VolumeAsking, f *VolumeNetworkFacts) { f.MissingPolicy = Refuse }, reason: ReasonNoSuchNetwork,
			problems: []string{`metadata.annotations[fairlead.io/volume-network]: Invalid value: "team-y/nfs": there is no NetworkAttachmentDefinition team-y/nfs (in this cluster: kube-system/storage-net, team-x/nfs); volumes stay where they are, and no pod restarts for it, until you create it`},
		},
		"an address of another volume, on the network of all": {
			annotations: map[string]string{askAddress: "10.0.0.9/24"}, reason: ReasonAddressTaken,
			change: func(_ *VolumeAsking, f *VolumeNetworkFacts) {
				f.Holders = []IdentityHolder{
					{"volume pvc-x (Service pvc-x)", teamNet.Network, storage.Identity{Addresses: "10.0.0.9"}},
					{"volume pvc-b (PersistentVolume b)", storageNet.Network, storage.Identity{Addresses: "10.0.0.9"}},
					{"volume pvc-b (Service pvc-b)", storageNet.Network, storage.Identity{Addresses: "10.0.0.9"}},
				}
			},
			problems: []string{`metadata.annotations[fairlead.io/volume-addresses]: Invalid value: "10.0.0.9/24": address 10.0.0.9 on network kube-system/storage-net is of volume pvc-b (PersistentVolume b) already: choose another`},
		},
		"a MAC of another volume": {
			annotations: map[string]string{askNetwork: "team-x/nfs", askMAC: "02:00:00:00:00:01"}, reason: ReasonAddressTaken,
			change: func(_ *VolumeAsking, f *VolumeNetworkFacts) {
				f.Holders = []IdentityHolder{{"PersistentVolumeClaim default/b", teamNet.Network, storage.Identity{MAC: "02:00:00:00:00:01"}}}
			},
			problems: []string{`metadata.annotations[fairlead.io/volume-mac]: Invalid value: "02:00:00:00:00:01": MAC address 02:00:00:00:00:01 on network team-x/nfs is of PersistentVolumeClaim default/b already: choose another`},
		},
		"another driver's": {
			annotations: map[string]string{askNetwork: "team-x/nfs"}, change: func(_ *VolumeAsking, f *VolumeNetworkFacts) { f.Driver = "ebs.csi.aws.com" }, reason: ReasonNoEffect,
			warnings: []string{"has no effect: PersistentVolumeClaim default/data is of driver ebs.csi.aws.com, and Fairlead works for driver.longhorn.io"},
		},
		"not ReadWriteMany": {
			annotations: map[string]string{askNetwork: "team-x/nfs"}, change: func(o *VolumeAsking, _ *VolumeNetworkFacts) { o.Spec.AccessModes = []string{"ReadWriteOnce"} }, reason: ReasonNoEffect,
			warnings: []string{"has no effect: PersistentVolumeClaim default/data is not ReadWriteMany, so no server pod serves it over NFS"},
		},
		"migratable": {
			annotations: map[string]string{askNetwork: "team-x/nfs"}, change: func(_ *VolumeAsking, f *VolumeNetworkFacts) { f.Concerned = []storage.Volume{{Name: "pvc-a"}} }, reason: ReasonNoEffect,
			warnings: []string{"has no effect: the volume is migratable, so no server pod serves it over NFS"},
		},
		"overruled by the claim": {
			kind: storage.VolumeKind, annotations: map[string]string{askNetwork: "team-x/nfs"}, reason: ReasonNoEffect,
			change: func(_ *VolumeAsking, f *VolumeNetworkFacts) {
				f.Volume, f.Claim.Annotations = f.Claim, map[string]string{askNetwork: "kube-system/storage-net"}
			},
			warnings: []string{`has no effect: PersistentVolumeClaim default/data names "kube-system/storage-net", and wins`},
		},
		"addresses on the cluster network": {
			annotations: map[string]string{askAddress: "10.0.0.9"}, change: func(_ *VolumeAsking, f *VolumeNetworkFacts) { f.Rollout.Record = rollout.Record{} }, reason: ReasonNoEffect,
			warnings: []string{"has no effect: RWX volumes are on the cluster network, where nothing can be fixed; name a network in fairlead.io/volume-network"},
		},
		"clients are yet to join": {annotations: map[string]string{askNetwork: "team-x/nfs"}, reason: ReasonPending, warnings: []string{joins}},
		"clients are yet to join, and one can't now": {
			annotations: map[string]string{askNetwork: "team-x/nfs"}, reason: ReasonPending,
			change:   func(_ *VolumeAsking, f *VolumeNetworkFacts) { f.Rollout.Volumes = []storage.Volume{attached} },
			warnings: []string{joins + "; waiting now: node-2 (pvc-a)"},
		},
		"clients can't join": {
			annotations: map[string]string{askNetwork: "team-x/nfs"}, reason: ReasonPending,
			change:   func(_ *VolumeAsking, f *VolumeNetworkFacts) { f.Rollout.DaemonSet.HostNetwork = true },
			warnings: []string{"accepted; network team-x/nfs can't be joined yet: DaemonSet csi is on the host network, where Multus adds no interface: set hostNetwork to false"},
		},
		"clients mount from the host": {
			annotations: map[string]string{askNetwork: "team-x/nfs"}, reason: ReasonPending,
			change:   func(_ *VolumeAsking, f *VolumeNetworkFacts) { f.Rollout.MountsFromHost = true },
			warnings: []string{"accepted; network team-x/nfs can't be joined yet: the settings choose no network for RWX volumes, so CSI plugin pods mount from the host's network, where no other is reached: choose one first"},
		},
		"the volume is attached": {
			annotations: map[string]string{askNetwork: "team-x/nfs"}, reason: ReasonPending,
			change: func(_ *VolumeAsking, f *VolumeNetworkFacts) {
				ready(f)
				f.Concerned = []storage.Volume{attached}
			},
			warnings: []string{"takes effect when the volume is detached: pvc-a (node-2, pod default/web-0)"},
		},
		"the volume is attached, and where it asks to be": {
			annotations: map[string]string{askNetwork: "team-x/nfs"}, reason: ReasonValid,
			change: func(_ *VolumeAsking, f *VolumeNetworkFacts) {
				ready(f)
				f.Concerned = []storage.Volume{attached}
				f.Services = []storage.Service{{Volume: "pvc-a", ClusterIP: "None", Recorded: teamNet}}
			},
		},
		"nothing is asked any more, while it is attached": {
			reason: ReasonPending,
			change: func(_ *VolumeAsking, f *VolumeNetworkFacts) {
				f.Concerned = []storage.Volume{attached}
				f.Services = []storage.Service{{Volume: "pvc-a", ClusterIP: "None", Recorded: teamNet}}
			},
			warnings: []string{"takes effect when the volume is detached: pvc-a (node-2, pod default/web-0)"},
		},
		"of which driver is open": {
			annotations: map[string]string{askNetwork: "kube-system/storage-net"}, change: func(_ *VolumeAsking, f *VolumeNetworkFacts) { f.Driver = "" }, reason: ReasonValid,
		},
	} {
		t.Run(name, func(t *testing.T) {
			o, facts := asking(test.annotations)
			if test.kind == "" {
				test.kind = storage.ClaimKind
			}
			if test.change != nil {
				test.change(&o, &facts)
			}
			checkVerdict(t, ValidateVolumeNetwork(test.kind, o, facts), test.reason, test.problems, test.warnings)
		})
	}
}

func TestNetworkOfSingleVolumesIsInUseToo(t *testing.T) {
	facts := NetworkFacts{
		Profile: storage.Longhorn(), Policy: Warn,
		Clients:  []storage.Client{{VolumeNetworks: []storage.Attachment{teamNet}}, {}},
		Servers:  []storage.Server{{Volume: "pvc-a", Network: teamNet}},
		Requests: map[string]storage.Request{"pvc-b": {Network: teamNet.Network}, "pvc-c": {}},
		Classes:  map[string]storage.Network{"fast": teamNet.Network, "slow": storageNet.Network},
	}
	checkVerdict(t, ValidateNetwork(teamNet.Network, false, []NetworkFacts{facts}), ReasonInUse, nil, []string{
		"network team-x/nfs is in use by longhorn: 1 CSI plugin pod, StorageClass fast, 2 RWX volumes (pvc-a, pvc-b); pods keep the old configuration until they restart",
	})
}
