package fence

import (
	"cmp"
	"net/netip"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fairlead-io/fairlead/api/v1alpha1"
	"github.com/fairlead-io/fairlead/internal/testkit/must"
)

// A refused fence leaves the node lost and its volumes held.
func TestRequestIsRefused(t *testing.T) {
	const k = rbd + " of a: "
	var (
		overrides = OverrideCommand(record1, GateAttach)
		unknown   = k + "no address of the node was recorded while it was healthy; fence it by hand and release its volumes: " + overrides
		ofNode11  = k + "10.0.0.1 is also an address of node node-11, which is not lost"
		ofNext    = k + "10.0.0.1 is also an address of the machine that has the node's name now, which is not lost"
		maybeSame = k + "10.0.0.1 may belong to the machine that has the node's name now: without a system UUID, both may be one machine, and the address by which the storage knows that machine is not on record"
		tooOld    = k + "its address 10.0.0.1/32 was last seen 15m1s before the node was lost (15m0s at most): its source, CSIAddonsNode, had fallen silent. Fence it by hand and release its volumes"
		inFuture  = k + "its address 10.0.0.1/32 was last seen at 2026-01-01T12:02:01Z, after the node was lost: a clock was wrong, and the age of the address is unknown. Fence it by hand and release its volumes"
		outside   = k + "10.0.0.1 is outside this cluster's clientRanges: it may be another cluster's"
		leftover  = k + "NetworkFence by-hand is Unfenced for 10.0.0.1: csi-addons would unblock the node; delete it"
		noSecret  = k + "there is neither a NetworkFenceClass nor a provisioner's secret to fence with: create a NetworkFenceClass for " + rbd
		byDriver  = k + "the CSI driver fences by itself (pod csi-1 has --enable-fencing), and unfences without a reboot. Set enableFencing: false on the Driver; or, if the driver is to fence, set fencing.profiles[rook-ceph].mode to off"
		guessed   = k + "its address 10.0.0.1/32 was recorded from Node, and the configuration believes CSIAddonsNode only. Find out by which address the storage knows the node, fence it by hand and release its volumes: " + overrides
		stranger  = k + "shared volume pv-2 is in use from 10.0.0.2, which is no known node's, and from no address that was recorded of the node"
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
	clusterA := func(texts ...string) map[string][]netip.Prefix {
		return map[string][]netip.Prefix{"a": ranges(texts...)}
	}
	first := func(how func(*v1alpha1.StorageIdentity)) func(*story) {
		return func(s *story) { how(&s.Spec.Identities[0]) }
	}
	cidrs := func(all ...string) func(*story) {
		return first(func(i *v1alpha1.StorageIdentity) { i.Addresses = identity(rbd, "a", all...).Addresses })
	}
	lastSeen := func(d time.Duration) func(*story) {
		return func(s *story) {
			s.Spec.Identities[0].Addresses[0].LastSeen = metav1.NewTime(s.Spec.LostSince.Add(-d))
		}
	}
	// beside node-11, which has the address and is Ready.
	beside := func(how func(*Other)) func(*story) {
		return func(s *story) {
			s.beside(Other{Node: Node{Name: "node-11", Exists: true, Ready: true, Addresses: addresses("10.0.0.1")}})
			how(&s.neighbours[0])
		}
	}
	recorded := func(driver, clusterID string) func(*Other) {
		return func(o *Other) {
			o.Node.Addresses, o.Spec.Identities = nil, list(identity(driver, clusterID, "10.0.0.1/32"))
		}
	}
	policy := func(p StoragePolicy) func(*story) {
		p.Mode = cmp.Or(p.Mode, ModeFence)
		return func(s *story) { s.store(p) }
	}
	// used reports clients of a volume, beside node-2 at 10.0.0.11 and the former node-3 at 10.0.0.12.
	used := func(volume string, shared bool, from ...string) func(*story) {
		clients := VolumeClients{Volume: v1alpha1.HeldVolume{PersistentVolume: volume, Driver: rbd, ClusterID: "a", Shared: shared}, Addresses: addresses(from...)}
		return func(s *story) {
			former := v1alpha1.NodeFenceSpec{Identities: list(identity(rbd, "a", "10.0.0.12/32"))}
			s.beside(Other{Node: readyNode("node-2", "machine-2", "boot-2", "192.168.1.2"), ClientAddresses: addresses("10.0.0.11")}, Other{Node: Node{Name: "node-3"}, Spec: former})
			s.Report.Clients = []VolumeClients{clients, {Volume: held("pv-9", other, "b"), Addresses: addresses("10.0.0.9")}}
		}
	}
	object := func(cidrs ...string) func(*story) {
		return func(s *story) { s.objects(NetworkFence{Name: "by-hand", Unfenced: true, CIDRs: cidrs}) }
	}
	server := func(node string) func(*story) {
		return func(s *story) {
			s.Servers = []Server{{Name: "pod rook-ceph/mon-a", Node: node, Addresses: addresses("10.0.0.1")}}
		}
	}
	// replaced by a machine with an address of its Node and addresses of its storage clients.
	replaced := func(machine, address string, cidrs ...string) func(*story) {
		return func(s *story) { s.replace(machine, address, cidrs...) }
	}
	for name, test := range map[string]struct {
		change func(*story)
		reason string // "" is not refused
		want   string // of the message, after "not fenced: "
	}{
		"nothing was recorded":                     {func(s *story) { s.Spec.Identities = nil }, ReasonNoIdentity, unknown},
		"another cluster was recorded":             {first(func(i *v1alpha1.StorageIdentity) { i.ClusterID = "b" }), ReasonNoIdentity, unknown},
		"a problem was recorded":                   {first(func(i *v1alpha1.StorageIdentity) { i.Problem = "the plugin is on no network" }), ReasonNoIdentity, k + "the plugin is on no network"},
		"a guess of an older version was recorded": {first(func(i *v1alpha1.StorageIdentity) { *i = from(SourceNode, *i) }), ReasonNoIdentity, guessed},
		"an earlier address is a live node's": {func(s *story) {
			beside(func(*Other) {})(s)
			first(func(i *v1alpha1.StorageIdentity) { *i = earlier(identity(rbd, "a", "10.0.0.2/32"), "10.0.0.1/32") })(s)
		}, ReasonAddressInUse, ofNode11},
		"a live node's earlier address": {beside(func(o *Other) {
			o.Node.Addresses, o.Spec.Identities = nil, list(earlier(identity(rbd, "a", "10.0.0.3/32"), "10.0.0.1/32"))
		}), ReasonAddressInUse, ofNode11},
		"no credentials":                   {first(func(i *v1alpha1.StorageIdentity) { i.Class = "" }), ReasonNoCredentials, noSecret},
		"no addresses":                     {cidrs(), ReasonBadAddress, k + "the list of addresses is empty"},
		"not an address":                   {cidrs("node-1"), ReasonBadAddress, k + `"node-1" is no address`},
		"a good address and a bad one":     {cidrs("10.0.0.1/32", "0.0.0.0/0"), ReasonBadAddress, k + "0.0.0.0/0 is wider than one address"},
		"seen too long ago":                {lastSeen(DefaultMaxAge + time.Second), ReasonStaleLedger, tooOld},
		"seen in time":                     {lastSeen(DefaultMaxAge), "", ""},
		"seen after the loss":              {lastSeen(-clocksDiffer - time.Second), ReasonStaleLedger, inFuture},
		"seen by a clock a little ahead":   {lastSeen(-clocksDiffer), "", ""},
		"a live node's":                    {beside(func(*Other) {}), ReasonAddressInUse, ofNode11},
		"a live node's client":             {beside(func(o *Other) { o.Node.Addresses, o.ClientAddresses = nil, addresses("10.0.0.1") }), ReasonAddressInUse, ofNode11},
		"recorded of a live node":          {beside(recorded(other, "b")), ReasonAddressInUse, ofNode11},
		"an untainted lost node's":         {beside(func(o *Other) { o.Node.Ready = false }), ReasonAddressInUse, ofNode11},
		"a tainted Ready node's":           {beside(func(o *Other) { o.Node.OutOfService = true }), ReasonAddressInUse, ofNode11},
		"a tainted lost node's":            {beside(func(o *Other) { o.Node.Ready, o.Node.OutOfService = false, true }), "", ""},
		"a deleted node's":                 {func(s *story) { beside(recorded(rbd, "a"))(s); s.neighbours[0].Node.Exists = false }, "", ""},
		"a server's":                       {server("node-3"), ReasonAddressInUse, k + "10.0.0.1 is also an address of pod rook-ceph/mon-a, which serves the storage"},
		"a reported server's":              {func(s *story) { s.Report.Servers = []Server{{Name: "a manager", Addresses: addresses("10.0.0.1")}} }, ReasonAddressInUse, k + "10.0.0.1 is also an address of a manager, which serves the storage"},
		"a server's on the lost node":      {server("node-1"), "", ""},
		"outside the ranges":               {policy(StoragePolicy{ClientRanges: ranges("10.1.0.0/16", "fd00::/8")}), ReasonOutsideRange, outside},
		"within a range":                   {policy(StoragePolicy{ClientRanges: ranges("10.1.0.0/16", "10.0.0.0/16")}), "", ""},
		"outside the cluster's ranges":     {policy(StoragePolicy{ClientRanges: ranges("10.0.0.0/16"), ClusterRanges: clusterA("10.1.0.0/16")}), ReasonOutsideRange, outside},
		"within the cluster's ranges":      {policy(StoragePolicy{ClientRanges: ranges("10.1.0.0/16"), ClusterRanges: clusterA("10.0.0.0/16")}), "", ""},
		"outside another cluster's ranges": {policy(StoragePolicy{ClusterRanges: map[string][]netip.Prefix{"b": ranges("10.1.0.0/16")}}), "", ""},
		"used from elsewhere":              {used("pv-1", false, "10.0.0.1", "10.0.0.2"), ReasonContradicted, k + "volume pv-1 is in use from 10.0.0.2, which was not recorded as an address of the node"},
		"used from the node":               {used("pv-1", false, "::ffff:10.0.0.1"), "", ""},
		"shared, and an unknown client":    {used("pv-2", true, "10.0.0.11", "10.0.0.2"), ReasonContradicted, stranger},
		"shared, and used from the node":   {used("pv-2", true, "10.0.0.1", "10.0.0.2"), "", ""},
		"shared, used by other nodes":      {used("pv-2", true, "10.0.0.11", "10.0.0.12"), "", ""}, // the node's session has ended
		"an object that unfences it":       {object("10.0.0.9/32", "10.0.0.1/32"), ReasonLeftoverUnfenced, leftover},
		"a deleted one":                    {func(s *story) { object("10.0.0.1")(s); s.Fences[0].Deleting = true }, ReasonLeftoverUnfenced, leftover},
		"one with a wide mask":             {object("10.0.0.77/24"), ReasonLeftoverUnfenced, leftover},
		"one with a port":                  {object("10.0.0.1:0/32"), ReasonLeftoverUnfenced, leftover},
		"one with a nonce, of IPv6":        {object("[fd00::7]:0/12"), "", ""},
		"one that can't be read":           {object("10.0.0.11/32", "10.0.0.1-10.0.0.9"), ReasonLeftoverUnfenced, k + "NetworkFence by-hand is Unfenced, and what it unblocks is not understood (\"10.0.0.1-10.0.0.9\"): csi-addons could unblock the node; delete it"},
		"one for other addresses":          {object("10.0.0.11/32"), "", ""},
		"one of another vendor's storage":  {func(s *story) { object("10.0.0.1/32", "?")(s); s.Fences[0].Driver = "block.csi.ibm.com" }, "", ""},
		"one of its class": {func(s *story) {
			object("10.0.0.1/32")(s)
			s.Fences[0].Driver, s.Fences[0].Class, s.Classes = "", "ibm", append(s.Classes, Class{"ibm", "block.csi.ibm.com", ""})
		}, "", ""},
		"one of another Ceph driver": {func(s *story) { object("10.0.0.1/32")(s); s.Fences[0].Driver = "ext.rbd.csi.ceph.com" }, ReasonLeftoverUnfenced, leftover},
		"one of a class that is gone": {func(s *story) {
			object("10.0.0.1/32")(s)
			s.Fences[0].Driver, s.Fences[0].Class = "", "gone"
		}, ReasonLeftoverUnfenced, leftover},
		"a Fenced one":                    {func(s *story) { object("10.0.0.1/32")(s); s.Fences[0].Unfenced = false }, "", ""},
		"the next machine's":              {replaced("machine-2", "10.0.0.1"), ReasonAddressInUse, ofNext},
		"the next machine's client":       {replaced("machine-2", "192.168.1.2", "10.0.0.1/32"), ReasonAddressInUse, ofNext},
		"another than the next machine's": {replaced("machine-2", "192.168.1.2"), "", ""},
		"an unknown next machine":         {replaced("", "192.168.1.2"), ReasonAddressInUse, maybeSame},
		"the next machine, known":         {replaced("", "192.168.1.2", "10.0.0.2/32"), "", ""},
		"the driver fences by itself": {func(s *story) {
			s.store(StoragePolicy{Mode: ModeFence, Profile: "rook-ceph"}).SelfFencing = map[string]string{"rook-ceph": "csi-1"}
		}, ReasonDriverFences, byDriver},
		"guard only": {policy(StoragePolicy{Mode: ModeGuard}), ReasonGuardOnly, k + "Fairlead is configured to guard only: fence the node by hand, then: " + overrides},
	} {
		t.Run(name, func(t *testing.T) {
			s := recordedLoss(t).taint(true).do(test.change).look()
			if test.reason == "" {
				s.wantReason(ReasonFencing).wantThat(len(s.created) == 1, "a NetworkFence is created")
				return
			}
			s.want(v1alpha1.NodeFencing, test.reason, "not fenced: "+test.want).wantWarning().wantAfter(refusedAgain).wantHeld(true)
			s.wantThat(len(s.created) == 0 && len(s.Spec.Fences) == 0, "nothing is created or recorded")
		})
	}
}

func TestRequestedFence(t *testing.T) {
	s := lost(t)
	s.Spec.Identities = list(identity(rbd, "a", "fd00::1", "10.0.0.1/32", "10.0.0.1", "::ffff:10.0.0.1"),
		v1alpha1.StorageIdentity{Driver: other, Secret: &v1alpha1.SecretReference{Name: "s", Namespace: "n"}, Addresses: identity(other, "", "10.0.0.7").Addresses},
		identity(cephFS, "a", "10.0.0.1/32")) // without a volume on the node
	s.hold(held("pv-1", rbd, "a"), held("pv-2", other, ""), held("pv-3", rbd, "a")).taint(true).look()
	s.wantObjects("Fenced [10.0.0.1/32 fd00::1/128] fence-"+rbd, "Fenced [10.0.0.7/32] ")
	n := s.Fences[1]
	s.wantThat(n.Driver == other && *n.Secret == v1alpha1.SecretReference{Name: "s", Namespace: "n"} && n.Parameters == nil, "the second fence has a secret")
	n = s.Fences[0]
	s.wantThat(n.Driver == "" && n.Secret == nil, "the first fence has a class")
	must.Equal(t, n.Labels, map[string]string{NodeLabel: "node-1", MachineLabel: "machine-1", BootLabel: "boot-1", RecordLabel: s.RecordUID})
	n = s.newObject(v1alpha1.Fence{Driver: rbd, ClusterID: "a", Secret: &v1alpha1.SecretReference{Name: "s"}}, false)
	must.Equal(t, n.Parameters["clusterID"], "a")
}
