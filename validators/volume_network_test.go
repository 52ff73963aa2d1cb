package validators

import (
	"cmp"
	"net/netip"
	"slices"
	"testing"

	"github.com/fairlead-io/fairlead/internal/longhorn"
	"github.com/fairlead-io/fairlead/internal/multus"
	"github.com/fairlead-io/fairlead/internal/rwx"
	"github.com/fairlead-io/fairlead/internal/settings"
	"github.com/fairlead-io/fairlead/internal/settings/rollout"
)

func TestVolumeNetwork(t *testing.T) {
	const (
		network, address, mac = rwx.VolumeNetworkAnnotation, rwx.VolumeAddressesAnnotation, rwx.VolumeMACAnnotation

		missing   = "there is no NetworkAttachmentDefinition team-y/nfs (in this cluster: kube-system/storage-net, team-x/nfs); volumes keep their network, and no pod restarts, until you create the network"
		joins     = "accepted; 2 CSI plugin pods restart to join network team-x/nfs, each when no RWX volume is attached on its node"
		noJoin    = "accepted; network team-x/nfs can't be joined yet: "
		detach    = "the change takes effect when the volume is detached: pvc-a (node-2, pod default/web-0)"
		noEffect  = "has no effect: "
		forbidden = "Forbidden: a StorageClass is for many volumes, and an address is for one: set the annotation on the PersistentVolumeClaim or the PersistentVolume"
		onNetwork = "metadata.annotations[fairlead.io/volume-network]: "
		onAddress = "metadata.annotations[fairlead.io/volume-addresses]: "
		onMAC     = "metadata.annotations[fairlead.io/volume-mac]: "
	)
	type annotations = map[string]string
	type facts = VolumeNetworkFacts
	teamNet := multus.VolumeAttachment(multus.Network{Namespace: "team-x", Name: "nfs"})
	team := annotations{network: "team-x/nfs"}
	all := annotations{network: "team-x/nfs", address: "10.0.0.9/24", mac: "02:00:00:00:00:01"}
	inUse := rwx.Volume{Name: "pvc-a", Shared: true, Attached: true, Nodes: []string{"node-2"}, Workloads: []string{"default/web-0"}}
	attached := func(f *facts) { f.Concerned = []rwx.Volume{inUse} }
	ready := func(f *facts) {
		f.Rollout.Record.VolumeClients, f.Rollout.Record.VolumeServers = []multus.Attachment{teamNet}, []multus.Attachment{teamNet}
	}
	served := func(f *facts) {
		attached(f)
		f.Rollout.Services = []rwx.Service{{Volume: "pvc-a", ClusterIP: "None", Recorded: teamNet}}
	}
	readyAnd := func(change func(*facts)) func(*facts) {
		return func(f *facts) {
			ready(f)
			change(f)
		}
	}
	held := func(holders ...rwx.Claimant) func(*facts) { return func(f *facts) { f.Holders = holders } }
	var grants []rwx.AddressGrant
	for _, n := range []multus.Network{{}, storageNet.Network, teamNet.Network, {Namespace: "team-y", Name: "nfs"}} {
		grants = append(grants, rwx.AddressGrant{
			Network: n, Namespaces: []string{"default"}, Ranges: []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8"), netip.MustParsePrefix("fd00::/8"), netip.MustParsePrefix("192.168.0.0/16")}, MACPrefixes: []string{"02"},
		})
	}
	holder := func(on multus.Attachment, addresses, mac string) rwx.Claimant {
		return rwx.Claimant{Network: on.Network, Identity: multus.Identity{Addresses: addresses, MAC: mac}}
	}
	strictly := func(f *facts) { f.MissingPolicy = settings.Refuse }
	concerned := func(volume rwx.Volume) func(*facts) {
		return func(f *facts) { f.Concerned = []rwx.Volume{volume} }
	}
	otherServed := func(f *facts) {
		served(f)
		f.Rollout.Services[0].Volume = "pvc-b"
	}
	servedByDefault := func(f *facts) {
		served(f)
		f.Rollout.Services[0].Recorded = storageNet
	}
	claimHeld := func(f *facts) {
		f.Claim.Annotations, f.Holders = annotations{address: "10.0.0.9"}, []rwx.Claimant{holder(storageNet, "10.0.0.9", "")}
	}
	type texts = []string
	for name, test := range map[string]struct {
		kind, mode  string // default: a ReadWriteMany claim
		annotations annotations
		change      func(*facts)
		reason      string
		problems    texts
		warnings    texts
	}{
		"servers may be on the network":    {annotations: all, change: ready, reason: ReasonValid},
		"addresses on the default network": {annotations: annotations{address: "10.0.0.9"}, reason: ReasonValid},
		"network of a class":               {kind: rwx.ClassKind, annotations: team, change: ready, reason: ReasonValid},
		"network is there, strict":         {annotations: team, change: readyAnd(strictly), reason: ReasonValid},
		"networks unknown":                 {annotations: team, change: readyAnd(func(f *facts) { f.Rollout.Networks = nil }), reason: ReasonValid},
		"effect omitted":                   {annotations: team, change: func(f *facts) { f.OmitEffect = true }, reason: ReasonValid},
		"default network, by name":         {annotations: annotations{network: ""}, change: func(f *facts) { f.Rollout.Record = rollout.Record{} }, reason: ReasonValid},
		"no request":                       {mode: "ReadWriteOnce", reason: ReasonValid},
		"no request, address taken":        {change: claimHeld, reason: ReasonValid},
		"class of another volume":          {kind: rwx.ClassKind, annotations: team, change: readyAnd(concerned(rwx.Volume{Name: "pvc-a", Attached: true})), reason: ReasonValid},
		"detached":                         {annotations: team, change: readyAnd(concerned(rwx.Volume{Name: "pvc-a", Shared: true})), reason: ReasonValid},
		"driver unknown":                   {annotations: annotations{network: "kube-system/storage-net"}, change: func(f *facts) { f.Driver = "" }, reason: ReasonValid},
		"attached where it is to be":       {annotations: team, change: readyAnd(served), reason: ReasonValid},
		"attached":                         {annotations: team, change: readyAnd(attached), reason: ReasonPending, warnings: texts{detach}},
		"another volume is on it":          {annotations: team, change: readyAnd(otherServed), reason: ReasonPending, warnings: texts{detach}},
		"attached, clients have to join":   {annotations: team, change: servedByDefault, reason: ReasonPending, warnings: texts{joins, detach}},
		"request removed while attached":   {change: served, reason: ReasonPending, warnings: texts{detach}},
		"clients have to join":             {annotations: team, reason: ReasonPending, warnings: texts{joins}},
		"network missing":                  {annotations: annotations{network: "team-y/nfs"}, reason: ReasonPending, warnings: texts{missing}},
		"network missing, from the class": {annotations: annotations{address: "10.0.0.9"}, reason: ReasonPending, warnings: texts{missing},
			change: func(f *facts) {
				attached(f)
				f.Class = rwx.RequestSource{Asker: rwx.Asker{Kind: rwx.ClassKind, Name: "fast"}, Annotations: annotations{network: "team-y/nfs"}}
			}},
		"network not permitted": {annotations: annotations{network: "kube-system/secret"}, reason: ReasonNetworkNotPermitted,
			problems: texts{onNetwork + "Forbidden: kube-system/secret: " + rwx.NotPermitted}},
		"network not permitted, driver unknown": {annotations: annotations{network: "kube-system/secret"}, change: func(f *facts) { f.Driver = "" }, reason: ReasonNetworkNotPermitted,
			problems: texts{onNetwork + "Forbidden: kube-system/secret: " + rwx.NotPermitted}},
		"network not permitted, and missing": {annotations: annotations{network: "team-z/nfs"}, change: func(f *facts) { f.MissingPolicy = settings.Refuse }, reason: ReasonNetworkNotPermitted,
			problems: texts{onNetwork + "Forbidden: team-z/nfs: " + rwx.NotPermitted}},
		"network of the class not permitted": {annotations: annotations{address: "10.0.0.9"}, reason: ReasonNoEffect,
			change: func(f *facts) {
				f.Class = rwx.RequestSource{Asker: rwx.Asker{Kind: rwx.ClassKind, Name: "fast"}, Annotations: annotations{network: "kube-system/secret"}}
			}, warnings: texts{noEffect + "annotation fairlead.io/volume-network of StorageClass fast names kube-system/secret: " + rwx.NotPermitted}},
		"address not given to the namespace": {annotations: annotations{network: "team-x/nfs", address: "172.16.0.1"}, reason: ReasonAddressNotGranted,
			problems: texts{onAddress + "Forbidden: claims of namespace default may not ask for address 172.16.0.1: an administrator lists addresses for the namespace in longhorn.networks.fixedAddresses of Fairlead's configuration, or sets the annotation on the PersistentVolume instead"}},
		"address not given, of the claim of a volume": {kind: rwx.VolumeKind, annotations: annotations{}, reason: ReasonValid,
			change: func(f *facts) { f.Claim.Annotations = annotations{address: "172.16.0.1"} }},
		"network missing, refused": {annotations: annotations{network: "team-y/nfs"}, change: func(f *facts) { f.MissingPolicy = settings.Refuse }, reason: ReasonNoSuchNetwork,
			problems: texts{onNetwork + `Invalid value: "team-y/nfs": ` + missing}},
		"clients have to join, one can't now": {annotations: team, change: func(f *facts) { f.Rollout.Volumes = []rwx.Volume{inUse} }, reason: ReasonPending,
			warnings: texts{joins + "; waiting now: node-2 (pvc-a)"}},
		"clients that can't join now are sorted by node": {annotations: team, change: func(f *facts) {
			f.Rollout.Volumes = []rwx.Volume{{Name: "pvc-a", Shared: true, Attached: true, Nodes: []string{"node-2", "node-1"}}}
			slices.Reverse(f.Rollout.Clients)
		}, reason: ReasonPending, warnings: texts{joins + "; waiting now: node-1 (pvc-a), node-2 (pvc-a)"}},
		"clients can't join": {annotations: team, change: func(f *facts) { f.Rollout.DaemonSet.HostNetwork = true }, reason: ReasonPending,
			warnings: texts{noJoin + "DaemonSet csi is on the host network, where Multus adds no interface: set hostNetwork to false"}},
		"clients mount from the host": {annotations: team, change: func(f *facts) { f.Rollout.MountsFromHost = true }, reason: ReasonPending,
			warnings: texts{noJoin + "the settings choose no network for RWX volumes, so CSI plugin pods mount from the host's network and reach no other: choose a network first"}},

		"malformed": {annotations: annotations{network: "nfs", address: "x", mac: "01:00:00:00:00:01"}, reason: ReasonInvalidValue,
			problems: texts{onNetwork + `Invalid value: "nfs": must be <namespace>/<NetworkAttachmentDefinition>, or "" for the default network of RWX volumes`, onAddress + `Invalid value: "x": must be one IP address of each family at most, with or without a prefix length, separated by a comma: "x" is not an IP address`, onMAC + `Invalid value: "01:00:00:00:00:01": must be a unicast MAC address such as 02:00:00:00:00:01: 01:00:00:00:00:01 is for a group of receivers`}},
		"addresses on a class": {kind: rwx.ClassKind, annotations: all, reason: ReasonInvalidValue, problems: texts{onAddress + forbidden, onMAC + forbidden}},
		"address of another volume": {annotations: annotations{address: "10.0.0.9/24"}, reason: ReasonAddressTaken,
			change:   held(holder(teamNet, "10.0.0.9", ""), holder(storageNet, "10.0.0.9", ""), holder(storageNet, "10.0.0.9", "")),
			problems: texts{onAddress + `Invalid value: "10.0.0.9/24": address 10.0.0.9 on network kube-system/storage-net is of another volume already: choose another`}},
		"address of another volume, of a new object": {annotations: annotations{address: "10.0.0.9/24"}, reason: ReasonValid,
			change: func(f *facts) {
				held(holder(storageNet, "10.0.0.9", ""))(f)
				f.Created = true
			},
			warnings: texts{"address 10.0.0.9 on network kube-system/storage-net is of another volume already: the volume comes up without it, with what the network assigns; choose another"}},
		"for readers": {annotations: team, mode: "ReadOnlyMany", reason: ReasonPending, warnings: texts{joins}},
		"address of a pod": {annotations: annotations{address: "10.0.0.9/24"}, reason: ReasonAddressTaken,
			change: func(f *facts) {
				f.Rollout.Clients[1].Interfaces = []multus.Reported{{Network: storageNet.Network.String(), IPs: []string{"10.0.0.9"}}}
			},
			problems: texts{onAddress + `Invalid value: "10.0.0.9/24": address 10.0.0.9 on network kube-system/storage-net is of a pod that runs: choose another`}},
		"address of a server of its own": {annotations: annotations{address: "10.0.0.9/24"}, reason: ReasonPending,
			change: func(f *facts) {
				f.Concerned = []rwx.Volume{inUse}
				f.Rollout.Servers = []rwx.Server{{Pod: "share-manager-pvc-a", Volume: "pvc-a", Reported: []multus.Reported{{Network: storageNet.Network.String(), IPs: []string{"10.0.0.9"}}}}}
			}, warnings: texts{detach}},
		"the gateway": {annotations: annotations{address: "10.0.0.1"}, reason: ReasonAddressTaken,
			change: func(f *facts) {
				f.Rollout.Configs = map[multus.Network]string{storageNet.Network: `{"ipam":{"type":"whereabouts","range":"10.0.0.0/24","gateway":"10.0.0.1"}}`}
			},
			problems: texts{onAddress + `Invalid value: "10.0.0.1": address 10.0.0.1 on network kube-system/storage-net is the network's gateway: choose another`}},
		"MAC of another volume": {annotations: annotations{network: "team-x/nfs", mac: "02:00:00:00:00:01"}, reason: ReasonAddressTaken,
			change:   held(holder(teamNet, "", "02:00:00:00:00:01")),
			problems: texts{onMAC + `Invalid value: "02:00:00:00:00:01": MAC address 02:00:00:00:00:01 on network team-x/nfs is of another volume already: choose another`}},

		"another driver": {annotations: team, change: func(f *facts) { f.Driver = "ebs.csi.aws.com" }, reason: ReasonNoEffect,
			warnings: texts{noEffect + "PersistentVolumeClaim default/data belongs to driver ebs.csi.aws.com, and Fairlead serves only driver.longhorn.io"}},
		"another driver, network not permitted": {annotations: annotations{network: "kube-system/secret"}, change: func(f *facts) { f.Driver = "ebs.csi.aws.com" }, reason: ReasonNoEffect,
			warnings: texts{noEffect + "PersistentVolumeClaim default/data belongs to driver ebs.csi.aws.com, and Fairlead serves only driver.longhorn.io"}},
		"not ReadWriteMany": {annotations: team, mode: "ReadWriteOnce", reason: ReasonNoEffect,
			warnings: texts{noEffect + "PersistentVolumeClaim default/data is neither ReadWriteMany nor ReadOnlyMany, so no server pod serves it over NFS"}},
		"migratable": {annotations: team, change: func(f *facts) { f.Concerned = []rwx.Volume{{Name: "pvc-a"}} }, reason: ReasonNoEffect,
			warnings: texts{noEffect + "the volume is migratable, so no server pod serves it over NFS"}},
		"overruled by the claim": {kind: rwx.VolumeKind, annotations: team, reason: ReasonNoEffect,
			change: func(f *facts) {
				f.Volume, f.Claim.Annotations = f.Claim, annotations{network: "kube-system/storage-net"}
			},
			warnings: texts{noEffect + `PersistentVolumeClaim default/data names "kube-system/storage-net", and takes precedence`}},
		"addresses on the cluster network": {annotations: annotations{address: "10.0.0.9"}, reason: ReasonNoEffect,
			change: func(f *facts) {
				f.Rollout.Record, f.Holders = rollout.Record{}, []rwx.Claimant{holder(multus.Attachment{}, "10.0.0.9", "")}
			},
			warnings: texts{noEffect + "RWX volumes are on the cluster network, where addresses can't be fixed; name a network in fairlead.io/volume-network"}},
	} {
		t.Run(name, func(t *testing.T) {
			var o VolumeObject
			o.Metadata.Namespace, o.Metadata.Name, o.Metadata.Annotations = "default", "data", test.annotations
			kind := cmp.Or(test.kind, rwx.ClaimKind)
			if kind != rwx.ClassKind {
				o.Spec.AccessModes = []string{cmp.Or(test.mode, "ReadWriteMany")}
			}
			f := facts{
				Claim:  rwx.RequestSource{Asker: rwx.Asker{Kind: rwx.ClaimKind, Namespace: "default", Name: "data"}, Annotations: test.annotations},
				Driver: "driver.longhorn.io", Names: longhorn.DefaultNames(),
				MissingPolicy: settings.Warn,
				Permitted:     rwx.Permitted{Networks: []multus.Network{storageNet.Network, teamNet.Network, {Namespace: "team-y", Name: "nfs"}}, Addresses: grants},
				Rollout: rollout.Rollout{
					Networks:  map[multus.Network]bool{storageNet.Network: true, teamNet.Network: true},
					Record:    rollout.Record{Clients: storageNet, Servers: storageNet},
					DaemonSet: rollout.DaemonSet{Name: "csi", Found: true, Network: storageNet},
					Clients:   []rwx.Client{{Pod: "csi-1", Node: "node-1", Network: storageNet}, {Pod: "csi-2", Node: "node-2", Network: storageNet}},
				},
			}
			if test.change != nil {
				test.change(&f)
			}
			checkVerdict(t, ValidateVolumeNetwork(kind, o, f), test.reason, test.problems, test.warnings)
		})
	}
}
