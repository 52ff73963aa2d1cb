package fence

import (
	"net/netip"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fairlead-io/fairlead/api/v1alpha1"
)

// What speaks against a fence: the node stays lost, and its volumes are held.
func TestARequestIsRefused(t *testing.T) {
	const k = rbd + " of a: "
	live := func(name string) Other { return Other{Node: Node{Name: name, Exists: true, Ready: true}} }
	for name, test := range map[string]struct {
		but    func(*story)
		reason string
		want   string // of the message, after "not fenced: "
	}{
		"nothing was recorded": {func(s *story) { s.Status.Identities = nil }, ReasonNoIdentity,
			k + `no address of the node was recorded while it was healthy; fence it by hand and let its volumes go: kubectl annotate --overwrite nodefence node-1 'fairlead.io/override-gate=attach: <why>'`},
		"another storage was recorded": {func(s *story) { s.Status.Identities[0].ClusterID = "b" }, ReasonNoIdentity,
			k + `no address of the node was recorded while it was healthy; fence it by hand and let its volumes go: kubectl annotate --overwrite nodefence node-1 'fairlead.io/override-gate=attach: <why>'`},
		"a problem was recorded": {func(s *story) { s.Status.Identities[0].Problem = "the plugin is on no network" }, ReasonNoIdentity,
			k + "the plugin is on no network"},
		"an empty list": {func(s *story) { s.Status.Identities[0].Addresses = nil }, ReasonBadAddress,
			k + "the list of addresses is empty"},
		"a wide mask": {func(s *story) { s.Status.Identities[0].Addresses[0].CIDR = "10.0.0.0/24" }, ReasonBadAddress,
			k + "10.0.0.0/24 is wider than one address"},
		"no address": {func(s *story) { s.Status.Identities[0].Addresses[0].CIDR = "node-1" }, ReasonBadAddress,
			k + `"node-1" is no address`},
		"a good one and a bad one": {func(s *story) {
			s.Status.Identities[0].Addresses = append(s.Status.Identities[0].Addresses, v1alpha1.ClientAddress{CIDR: "0.0.0.0/0", Source: SourceCSIAddonsNode, LastSeen: metav1.NewTime(noon)})
		}, ReasonBadAddress, k + "0.0.0.0/0 is wider than one address"},
		"seen too long ago": {func(s *story) {
			s.Status.Identities[0].Addresses[0].LastSeen = metav1.NewTime(s.Status.LostSince.Add(-DefaultMaxAge - time.Second))
		}, ReasonStaleLedger, k + "its address 10.0.0.1/32 was last seen 15m1s before the node was lost (15m0s at most): its source, CSIAddonsNode, had fallen silent. Fence it by hand, and let its volumes go"},
		"of another boot": {func(s *story) { s.Node.Machine.BootID = "boot-2" }, ReasonStaleLedger,
			k + "its addresses were recorded before it last booted, and may be others' now"},
		"a boot that is not known": {func(s *story) { s.Node.Machine.BootID = "" }, ReasonStaleLedger,
			k + "its addresses were recorded before it last booted, and may be others' now"},
		"neither class nor secret": {func(s *story) { s.Status.Identities[0].Class = "" }, ReasonNoCredentials,
			k + "there is neither a NetworkFenceClass nor a provisioner's secret to fence with: create a NetworkFenceClass for " + rbd},
		"a live node's address": {func(s *story) {
			o := live("node-11")
			o.Node.Addresses = []netip.Addr{addr("10.0.0.1")}
			s.Others = []Other{o}
		}, ReasonAddressInUse, k + "10.0.0.1 is also an address of node node-11, which is not lost"},
		"a live node's client's": {func(s *story) {
			o := live("node-11")
			o.ClientAddresses = []netip.Addr{addr("10.0.0.1")}
			s.Others = []Other{o}
		}, ReasonAddressInUse, k + "10.0.0.1 is also an address of node node-11, which is not lost"},
		"one that a live node has recorded": {func(s *story) {
			o := live("node-11")
			o.Status.Identities = []v1alpha1.StorageIdentity{identity(other, "b", "10.0.0.1/32")}
			s.Others = []Other{o}
		}, ReasonAddressInUse, k + "10.0.0.1 is also an address of node node-11, which is not lost"},
		"one of a node that is not Ready, and not given up": {func(s *story) {
			o := live("node-11")
			o.Node.Ready, o.Node.Addresses = false, []netip.Addr{addr("10.0.0.1")}
			s.Others = []Other{o}
		}, ReasonAddressInUse, k + "10.0.0.1 is also an address of node node-11, which is not lost"},
		"one of a tainted node that is Ready": {func(s *story) {
			o := live("node-11")
			o.Node.OutOfService, o.Node.Addresses = true, []netip.Addr{addr("10.0.0.1")}
			s.Others = []Other{o}
		}, ReasonAddressInUse, k + "10.0.0.1 is also an address of node node-11, which is not lost"},
		"one of a node that is out of service": {func(s *story) {
			o := live("node-11")
			o.Node.Ready, o.Node.OutOfService, o.Node.Addresses = false, true, []netip.Addr{addr("10.0.0.1")}
			s.Others = []Other{o}
		}, "", ""},
		"one of a node that is gone": {func(s *story) {
			s.Others = []Other{{Node: Node{Name: "node-11"}, Status: v1alpha1.NodeFenceStatus{Identities: []v1alpha1.StorageIdentity{identity(rbd, "a", "10.0.0.1/32")}}}}
		}, "", ""},
		"a server's": {func(s *story) {
			s.Servers = []Server{{Name: "pod rook-ceph/mon-a", Node: "node-3", Addresses: []netip.Addr{addr("10.0.0.1")}}}
		}, ReasonAddressInUse, k + "10.0.0.1 is also an address of pod rook-ceph/mon-a, which serves the storage"},
		"a server's that the storage reports": {func(s *story) {
			s.Report.Servers = []Server{{Name: "a manager", Addresses: []netip.Addr{addr("10.0.0.1")}}}
		}, ReasonAddressInUse, k + "10.0.0.1 is also an address of a manager, which serves the storage"},
		"a server's on the lost node": {func(s *story) {
			s.Servers = []Server{{Name: "pod rook-ceph/mon-a", Node: "node-1", Addresses: []netip.Addr{addr("10.0.0.1")}}}
		}, "", ""},
		"outside our ranges": {func(s *story) {
			s.Policy = with(s.Policy, StoragePolicy{Mode: ModeFence, ClientRanges: []netip.Prefix{netip.MustParsePrefix("10.1.0.0/16"), netip.MustParsePrefix("fd00::/8")}})
		}, ReasonOutsideRange, k + "10.0.0.1 is outside this cluster's clientRanges: it may be another cluster's"},
		"within our ranges": {func(s *story) {
			s.Policy = with(s.Policy, StoragePolicy{Mode: ModeFence, ClientRanges: []netip.Prefix{netip.MustParsePrefix("10.1.0.0/16"), netip.MustParsePrefix("10.0.0.0/16")}})
		}, "", ""},
		"outside this storage cluster's ranges": {func(s *story) {
			s.Policy = with(s.Policy, StoragePolicy{Mode: ModeFence, ClientRanges: []netip.Prefix{netip.MustParsePrefix("10.0.0.0/16")},
				ClusterRanges: map[string][]netip.Prefix{"a": {netip.MustParsePrefix("10.1.0.0/16")}}})
		}, ReasonOutsideRange, k + "10.0.0.1 is outside this cluster's clientRanges: it may be another cluster's"},
		"within this storage cluster's ranges": {func(s *story) {
			s.Policy = with(s.Policy, StoragePolicy{Mode: ModeFence, ClientRanges: []netip.Prefix{netip.MustParsePrefix("10.1.0.0/16")},
				ClusterRanges: map[string][]netip.Prefix{"a": {netip.MustParsePrefix("10.0.0.0/16")}}})
		}, "", ""},
		"outside another storage cluster's ranges": {func(s *story) {
			s.Policy = with(s.Policy, StoragePolicy{Mode: ModeFence, ClusterRanges: map[string][]netip.Prefix{"b": {netip.MustParsePrefix("10.1.0.0/16")}}})
		}, "", ""},
		"seen elsewhere by the storage": {func(s *story) {
			s.Report.Clients = []VolumeClients{{Volume: held("pv-1", rbd, "a"), Addresses: []netip.Addr{addr("10.0.0.1"), addr("10.0.0.2")}}}
		}, ReasonContradicted, k + "volume pv-1 is in use from 10.0.0.2, which was not recorded as an address of the node"},
		"seen by the storage where it was": {func(s *story) {
			s.Report.Clients = []VolumeClients{{Volume: held("pv-1", rbd, "a"), Addresses: []netip.Addr{addr("::ffff:10.0.0.1")}}, {Volume: held("pv-2", other, "b"), Addresses: []netip.Addr{addr("10.0.0.9")}}}
		}, "", ""},
		"a shared volume's clients, and who of them is nobody's": {func(s *story) {
			s.Others = []Other{live("node-11")}
			s.Others[0].Node.Addresses = []netip.Addr{addr("10.0.0.11")}
			s.Report.Clients = []VolumeClients{{Volume: v1alpha1.HeldVolume{PersistentVolume: "pv-2", Driver: rbd, ClusterID: "a", Shared: true}, Addresses: []netip.Addr{addr("10.0.0.11"), addr("10.0.0.2")}}}
		}, ReasonContradicted, k + "shared volume pv-2 is in use from 10.0.0.2, which is no known node's, and from no address that was recorded of the node"},
		"a shared volume's clients, the node among them": {func(s *story) {
			s.Report.Clients = []VolumeClients{{Volume: v1alpha1.HeldVolume{PersistentVolume: "pv-2", Driver: rbd, ClusterID: "a", Shared: true}, Addresses: []netip.Addr{addr("10.0.0.1"), addr("10.0.0.2")}}}
		}, "", ""},
		"a shared volume's clients, of other nodes alone": {func(s *story) { // the node's session has ended
			s.Others = []Other{live("node-11"), {Node: Node{Name: "node-12"}, Status: v1alpha1.NodeFenceStatus{Identities: []v1alpha1.StorageIdentity{identity(rbd, "a", "10.0.0.12/32")}}}}
			s.Others[0].ClientAddresses = []netip.Addr{addr("10.0.0.11")}
			s.Report.Clients = []VolumeClients{{Volume: v1alpha1.HeldVolume{PersistentVolume: "pv-2", Driver: rbd, ClusterID: "a", Shared: true}, Addresses: []netip.Addr{addr("10.0.0.11"), addr("10.0.0.12")}}}
		}, "", ""},
		"another object would let it in": {func(s *story) {
			s.Fences = []NetworkFence{{Name: "by-hand", Unfenced: true, CIDRs: []string{"10.0.0.9/32", "10.0.0.1/32"}}}
		}, ReasonLeftoverUnfenced, k + "NetworkFence by-hand is Unfenced for 10.0.0.1: csi-addons would let the node in again; delete it"},
		"one that is on its way out too": {func(s *story) {
			s.Fences = []NetworkFence{{Name: "by-hand", Unfenced: true, Deleting: true, CIDRs: []string{"10.0.0.1"}}}
		}, ReasonLeftoverUnfenced, k + "NetworkFence by-hand is Unfenced for 10.0.0.1: csi-addons would let the node in again; delete it"},
		"one with a wide mask": {func(s *story) {
			s.Fences = []NetworkFence{{Name: "by-hand", Unfenced: true, CIDRs: []string{"10.0.0.77/24"}}}
		}, ReasonLeftoverUnfenced, k + "NetworkFence by-hand is Unfenced for 10.0.0.1: csi-addons would let the node in again; delete it"},
		"objects about others": {func(s *story) {
			s.Fences = []NetworkFence{{Name: "x", Unfenced: true, CIDRs: []string{"10.0.0.11/32", "", "node-1", "10.0.0.1/x"}}, {Name: "y", CIDRs: []string{"10.0.0.1/32"}}}
		}, "", ""},
		"a namesake's address": {func(s *story) {
			s.take("machine-2", "10.0.0.1")
		}, ReasonAddressInUse, k + "10.0.0.1 is also an address of the machine that has the node's name now, which is not lost"},
		"a namesake's storage address": {func(s *story) {
			s.take("machine-2", "192.168.1.2")
			s.Others[0].Status.Identities = []v1alpha1.StorageIdentity{identity(rbd, "a", "10.0.0.1/32")}
		}, ReasonAddressInUse, k + "10.0.0.1 is also an address of the machine that has the node's name now, which is not lost"},
		"a namesake with another address": {func(s *story) {
			s.take("machine-2", "192.168.1.2")
		}, "", ""},
		"a namesake without UUID": {func(s *story) { // it may be the same machine, which works
			s.take("", "192.168.1.2")
		}, ReasonAddressInUse, k + "10.0.0.1 may belong to the machine that has the node's name now: that may be the same one, since there is no system UUID to tell by, and it is not known by which address the storage knows it"},
		"a namesake without UUID, known by another address": {func(s *story) {
			s.take("", "192.168.1.2")
			s.Others[0].Status.Identities = []v1alpha1.StorageIdentity{identity(rbd, "a", "10.0.0.2/32")}
		}, "", ""},
		"the driver fences by itself": {func(s *story) {
			s.Policy, s.SelfFencing = with(s.Policy, StoragePolicy{Mode: ModeFence, Profile: "rook-ceph"}), map[string]string{"rook-ceph": "csi-1"}
		}, ReasonDriverFences, k + "the CSI driver fences by itself (pod csi-1 has --enable-fencing), and unfences without a reboot. Set enableFencing: false on the Driver; or, if the driver is to fence, set fencing.profiles[rook-ceph].mode to off"},
		"guard only": {func(s *story) { s.Policy = with(s.Policy, StoragePolicy{Mode: ModeGuard}) }, ReasonGuardOnly,
			k + "Fairlead is configured to guard only: fence the node by hand, then: kubectl annotate --overwrite nodefence node-1 'fairlead.io/override-gate=attach: <why>'"},
	} {
		t.Run(name, func(t *testing.T) {
			s := recordedLoss(t)
			test.but(s)
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
func TestWhatIsAskedFor(t *testing.T) {
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
