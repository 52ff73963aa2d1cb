package fence

import (
	"net/netip"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fairlead-io/fairlead/api/v1alpha1"
)

// A refused fence leaves the node lost and its volumes held.
func TestARequestIsRefused(t *testing.T) {
	const (
		k         = rbd + " of a: "
		overrides = "kubectl annotate --overwrite nodefence node-1 'fairlead.io/override-gate=attach: <why>'"
		unknown   = k + "no address of the node was recorded while it was healthy; fence it by hand and release its volumes: " + overrides
		ofAnother = k + "10.0.0.1 is also an address of node node-11, which is not lost"
		ofOldBoot = k + "its addresses were recorded before its last boot and may belong to others now"
		outside   = k + "10.0.0.1 is outside this cluster's clientRanges: it may be another cluster's"
		leftover  = k + "NetworkFence by-hand is Unfenced for 10.0.0.1: csi-addons would unblock the node; delete it"
	)
	addresses := func(texts ...string) (all []netip.Addr) {
		for _, text := range texts {
			all = append(all, addr(text))
		}
		return all
	}
	ranges := func(texts ...string) (all []netip.Prefix) {
		for _, text := range texts {
			all = append(all, netip.MustParsePrefix(text))
		}
		return all
	}
	first := func(how func(*v1alpha1.StorageIdentity)) func(*story) {
		return func(s *story) { how(&s.Status.Identities[0]) }
	}
	beside := func(how func(*Other)) func(*story) {
		return func(s *story) {
			s.Others = []Other{{Node: Node{Name: "node-11", Exists: true, Ready: true}}}
			how(&s.Others[0])
		}
	}
	policy := func(p StoragePolicy) func(*story) {
		if p.Mode == "" {
			p.Mode = ModeFence
		}
		return func(s *story) { s.Policy = with(s.Policy, p) }
	}
	inUse := func(volume string, shared bool, from ...string) VolumeClients {
		return VolumeClients{Volume: v1alpha1.HeldVolume{PersistentVolume: volume, Driver: rbd, ClusterID: "a", Shared: shared}, Addresses: addresses(from...)}
	}
	object := func(n NetworkFence) func(*story) {
		n.Name, n.Unfenced = "by-hand", true
		return func(s *story) { s.Fences = []NetworkFence{n} }
	}
	server := func(node string) func(*story) {
		return func(s *story) {
			s.Servers = []Server{{Name: "pod rook-ceph/mon-a", Node: node, Addresses: addresses("10.0.0.1")}}
		}
	}
	namesake := func(machine, address string, cidrs ...string) func(*story) {
		return func(s *story) {
			s.take(machine, address)
			s.Others[0].Status.Identities = []v1alpha1.StorageIdentity{identity(rbd, "a", cidrs...)}
		}
	}
	for name, test := range map[string]struct {
		change func(*story)
		reason string // "" is not refused
		want   string // of the message, after "not fenced: "
	}{
		"nothing was recorded":         {func(s *story) { s.Status.Identities = nil }, ReasonNoIdentity, unknown},
		"another storage was recorded": {first(func(i *v1alpha1.StorageIdentity) { i.ClusterID = "b" }), ReasonNoIdentity, unknown},
		"a problem was recorded":       {first(func(i *v1alpha1.StorageIdentity) { i.Problem = "the plugin is on no network" }), ReasonNoIdentity, k + "the plugin is on no network"},
		"an empty list":                {first(func(i *v1alpha1.StorageIdentity) { i.Addresses = nil }), ReasonBadAddress, k + "the list of addresses is empty"},
		"a wide mask":                  {first(func(i *v1alpha1.StorageIdentity) { i.Addresses[0].CIDR = "10.0.0.0/24" }), ReasonBadAddress, k + "10.0.0.0/24 is wider than one address"},
		"no address":                   {first(func(i *v1alpha1.StorageIdentity) { i.Addresses[0].CIDR = "node-1" }), ReasonBadAddress, k + `"node-1" is no address`},
		"a good one and a bad one": {first(func(i *v1alpha1.StorageIdentity) {
			i.Addresses = identity(rbd, "a", "10.0.0.1/32", "0.0.0.0/0").Addresses
		}),
			ReasonBadAddress, k + "0.0.0.0/0 is wider than one address"},
		"seen too long ago": {func(s *story) {
			s.Status.Identities[0].Addresses[0].LastSeen = metav1.NewTime(s.Status.LostSince.Add(-DefaultMaxAge - time.Second))
		}, ReasonStaleLedger, k + "its address 10.0.0.1/32 was last seen 15m1s before the node was lost (15m0s at most): its source, CSIAddonsNode, had fallen silent. Fence it by hand and release its volumes"},
		"of another boot":          {func(s *story) { s.Node.Machine.BootID = "boot-2" }, ReasonStaleLedger, ofOldBoot},
		"a boot that is not known": {func(s *story) { s.Node.Machine.BootID = "" }, ReasonStaleLedger, ofOldBoot},
		"neither class nor secret": {first(func(i *v1alpha1.StorageIdentity) { i.Class = "" }), ReasonNoCredentials,
			k + "there is neither a NetworkFenceClass nor a provisioner's secret to fence with: create a NetworkFenceClass for " + rbd},
		"a live node's address":  {beside(func(o *Other) { o.Node.Addresses = addresses("10.0.0.1") }), ReasonAddressInUse, ofAnother},
		"a live node's client's": {beside(func(o *Other) { o.ClientAddresses = addresses("10.0.0.1") }), ReasonAddressInUse, ofAnother},
		"one that a live node has recorded": {beside(func(o *Other) {
			o.Status.Identities = []v1alpha1.StorageIdentity{identity(other, "b", "10.0.0.1/32")}
		}), ReasonAddressInUse, ofAnother},
		"one of a node that is not Ready, and not given up": {beside(func(o *Other) { o.Node.Ready, o.Node.Addresses = false, addresses("10.0.0.1") }), ReasonAddressInUse, ofAnother},
		"one of a tainted node that is Ready":               {beside(func(o *Other) { o.Node.OutOfService, o.Node.Addresses = true, addresses("10.0.0.1") }), ReasonAddressInUse, ofAnother},
		"one of a node that is out of service": {beside(func(o *Other) {
			o.Node.Ready, o.Node.OutOfService, o.Node.Addresses = false, true, addresses("10.0.0.1")
		}), "", ""},
		"one of a node that is gone": {beside(func(o *Other) {
			o.Node, o.Status.Identities = Node{Name: "node-11"}, []v1alpha1.StorageIdentity{identity(rbd, "a", "10.0.0.1/32")}
		}), "", ""},
		"a server's": {server("node-3"), ReasonAddressInUse, k + "10.0.0.1 is also an address of pod rook-ceph/mon-a, which serves the storage"},
		"a server's that the storage reports": {func(s *story) { s.Report.Servers = []Server{{Name: "a manager", Addresses: addresses("10.0.0.1")}} },
			ReasonAddressInUse, k + "10.0.0.1 is also an address of a manager, which serves the storage"},
		"a server's on the lost node": {server("node-1"), "", ""},
		"outside our ranges":          {policy(StoragePolicy{ClientRanges: ranges("10.1.0.0/16", "fd00::/8")}), ReasonOutsideRange, outside},
		"within our ranges":           {policy(StoragePolicy{ClientRanges: ranges("10.1.0.0/16", "10.0.0.0/16")}), "", ""},
		"outside this storage cluster's ranges": {policy(StoragePolicy{ClientRanges: ranges("10.0.0.0/16"), ClusterRanges: map[string][]netip.Prefix{"a": ranges("10.1.0.0/16")}}),
			ReasonOutsideRange, outside},
		"within this storage cluster's ranges":     {policy(StoragePolicy{ClientRanges: ranges("10.1.0.0/16"), ClusterRanges: map[string][]netip.Prefix{"a": ranges("10.0.0.0/16")}}), "", ""},
		"outside another storage cluster's ranges": {policy(StoragePolicy{ClusterRanges: map[string][]netip.Prefix{"b": ranges("10.1.0.0/16")}}), "", ""},
		"seen elsewhere by the storage": {func(s *story) { s.Report.Clients = []VolumeClients{inUse("pv-1", false, "10.0.0.1", "10.0.0.2")} },
			ReasonContradicted, k + "volume pv-1 is in use from 10.0.0.2, which was not recorded as an address of the node"},
		"seen by the storage where it was": {func(s *story) {
			s.Report.Clients = []VolumeClients{inUse("pv-1", false, "::ffff:10.0.0.1"), {Volume: held("pv-2", other, "b"), Addresses: addresses("10.0.0.9")}}
		}, "", ""},
		"a shared volume's clients, and an unknown one among them": {func(s *story) {
			beside(func(o *Other) { o.Node.Addresses = addresses("10.0.0.11") })(s)
			s.Report.Clients = []VolumeClients{inUse("pv-2", true, "10.0.0.11", "10.0.0.2")}
		}, ReasonContradicted, k + "shared volume pv-2 is in use from 10.0.0.2, which is no known node's, and from no address that was recorded of the node"},
		"a shared volume's clients, the node among them": {func(s *story) { s.Report.Clients = []VolumeClients{inUse("pv-2", true, "10.0.0.1", "10.0.0.2")} }, "", ""},
		"a shared volume's clients, of other nodes alone": {func(s *story) { // the node's session has ended
			beside(func(o *Other) { o.ClientAddresses = addresses("10.0.0.11") })(s)
			s.Others = append(s.Others, Other{Node: Node{Name: "node-12"}, Status: v1alpha1.NodeFenceStatus{Identities: []v1alpha1.StorageIdentity{identity(rbd, "a", "10.0.0.12/32")}}})
			s.Report.Clients = []VolumeClients{inUse("pv-2", true, "10.0.0.11", "10.0.0.12")}
		}, "", ""},
		"another object would let it in": {object(NetworkFence{CIDRs: []string{"10.0.0.9/32", "10.0.0.1/32"}}), ReasonLeftoverUnfenced, leftover},
		"one that is on its way out too": {object(NetworkFence{Deleting: true, CIDRs: []string{"10.0.0.1"}}), ReasonLeftoverUnfenced, leftover},
		"one with a wide mask":           {object(NetworkFence{CIDRs: []string{"10.0.0.77/24"}}), ReasonLeftoverUnfenced, leftover},
		"objects about others": {func(s *story) {
			s.Fences = []NetworkFence{{Name: "x", Unfenced: true, CIDRs: []string{"10.0.0.11/32", "", "node-1", "10.0.0.1/x"}}, {Name: "y", CIDRs: []string{"10.0.0.1/32"}}}
		}, "", ""},
		"a namesake's address": {namesake("machine-2", "10.0.0.1"), ReasonAddressInUse, k + "10.0.0.1 is also an address of the machine that has the node's name now, which is not lost"},
		"a namesake's storage address": {namesake("machine-2", "192.168.1.2", "10.0.0.1/32"),
			ReasonAddressInUse, k + "10.0.0.1 is also an address of the machine that has the node's name now, which is not lost"},
		"a namesake with another address": {namesake("machine-2", "192.168.1.2"), "", ""},
		"a namesake without UUID": {namesake("", "192.168.1.2"), // it may be the same machine, which works
			ReasonAddressInUse, k + "10.0.0.1 may belong to the machine that has the node's name now: without a system UUID, both may be one machine, and the address by which the storage knows that machine is not on record"},
		"a namesake without UUID, known by another address": {namesake("", "192.168.1.2", "10.0.0.2/32"), "", ""},
		"the driver fences by itself": {func(s *story) {
			policy(StoragePolicy{Profile: "rook-ceph"})(s)
			s.SelfFencing = map[string]string{"rook-ceph": "csi-1"}
		}, ReasonDriverFences, k + "the CSI driver fences by itself (pod csi-1 has --enable-fencing), and unfences without a reboot. Set enableFencing: false on the Driver; or, if the driver is to fence, set fencing.profiles[rook-ceph].mode to off"},
		"guard only": {policy(StoragePolicy{Mode: ModeGuard}), ReasonGuardOnly, k + "Fairlead is configured to guard only: fence the node by hand, then: " + overrides},
	} {
		t.Run(name, func(t *testing.T) {
			s := recordedLoss(t)
			test.change(s)
			s.taint(true).look()
			if test.reason == "" {
				if s.Status.Reason != ReasonFencing || len(s.created) != 1 {
					t.Fatalf("refused: %s: %s", s.Status.Reason, s.Status.Message)
				}
				return
			}
			s.want(v1alpha1.NodeFencing, test.reason, "not fenced: "+test.want)
			if len(s.created) > 0 || len(s.Status.Fences) > 0 || !s.step.Warning || s.step.After != refusedAgain {
				t.Fatalf("refused, and yet %+v", s.step)
			}
			s.wantHeld(true)
		})
	}
}

// What is asked for.
func TestRequestedFence(t *testing.T) {
	s := lostStory(t)
	s.Status.Identities = []v1alpha1.StorageIdentity{
		identity(rbd, "a", "fd00::1", "10.0.0.1/32", "10.0.0.1", "::ffff:10.0.0.1"),
		{Driver: other, Secret: &v1alpha1.SecretReference{Name: "s", Namespace: "n"}, Addresses: identity(other, "", "10.0.0.7").Addresses},
		identity(cephFS, "a", "10.0.0.1/32"), // nothing of it was on the node
	}
	s.Holding = []v1alpha1.HeldVolume{held("pv-1", rbd, "a"), held("pv-2", other, ""), held("pv-3", rbd, "a")}
	s.taint(true).look()
	s.wantObjects("Fenced [10.0.0.1/32 fd00::1/128] fence-"+rbd, "Fenced [10.0.0.7/32] ")
	if n := s.Fences[1]; n.Driver != other || *n.Secret != (v1alpha1.SecretReference{Name: "s", Namespace: "n"}) || n.Parameters != nil {
		t.Errorf("got %+v", n)
	}
	if n := s.Fences[0]; n.Driver != "" || n.Secret != nil || n.Labels[NodeLabel] != "node-1" || n.Labels[IncidentLabel] != s.Status.Incident || n.Labels[BootLabel] != "boot-1" {
		t.Errorf("got %+v", n)
	}
	secret := object("n", "b", v1alpha1.Fence{Driver: rbd, ClusterID: "a", Secret: &v1alpha1.SecretReference{Name: "s"}}, false)
	if secret.Parameters["clusterID"] != "a" {
		t.Errorf("got %+v", secret)
	}
}
