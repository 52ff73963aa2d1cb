package fence

import (
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/fairlead-io/fairlead/api/v1alpha1"
)

// What became of Rook's design (rook#14832, #12923 and its code): each fault, and
// that it is not repeated. Those that can only be made where objects are read or
// written have their tests there: controllers/fencing, cluster, internal/cephclients.

func TestAHealthyNodeIsNotFenced(t *testing.T) {
	s := healthy(t)
	s.Node.OutOfService = true
	s.look()
	s.want(v1alpha1.NodeHealthy, ReasonTaintedButReady, "the node has the taint node.kubernetes.io/out-of-service but is Ready: a healthy node is not fenced, and its volumes are attached nowhere else; take the taint away, or shut the node down")
	s.wantObjects()
}

// By then the volume may be mounted elsewhere, and the address is that of another.
func TestTheAddressIsNotLookedUpAfterTheTaint(t *testing.T) {
	s := lostStory(t)
	s.Node.OutOfService = true
	s.Node.Addresses = []netip.Addr{addr("192.168.1.77")}
	s.Ledger = []v1alpha1.StorageIdentity{identity(rbd, "a", "10.0.0.77/32")}
	s.look()
	s.wantObjects(fencedOf1)
}

// The volume was let go of before the fence stood, and whether or not it ever did.
func TestNothingIsLetGoBeforeTheFenceStands(t *testing.T) {
	s := lostStory(t)
	s.wantHeld(true)
	s.look()
	s.wantHeld(true)
	s.Node.OutOfService = true
	s.wantHeld(true)
	s.look()
	s.wantHeld(true)
	s.csiFails("no")
	s.look()
	s.wantHeld(true)
	s.csi()
	s.wantHeld(true) // confirmed, and not recorded
	s.look()
	s.wantHeld(false)
}

func TestAFailureIsRetried(t *testing.T) {
	s := askedOnly(t)
	for try := 1; try <= 5; try++ {
		s.csiFails("not now")
		s.look()
		if s.step.After <= 0 || s.step.After > 2*time.Minute {
			t.Fatalf("after %d failures it is looked at again in %s", try, s.step.After)
		}
		s.pass(s.step.After)
		s.look()
		s.csiFails("")
		s.look()
		if len(s.created) != 1 {
			t.Fatalf("not asked again after %d failures: %+v", try, s.Status)
		}
	}
	s.answer()
	s.wantHeld(false)
}

// Two Ceph clusters, one driver: only the first was ever fenced.
func TestEachStorageClusterIsFenced(t *testing.T) {
	s := healthy(t)
	s.loseWith(rbd, "b", "10.9.0.1/32")
	s.wantObjects(fencedOf1, "Fenced [10.9.0.1/32] fence-"+rbd)
	if s.Fences[0].Name == s.Fences[1].Name {
		t.Fatal("one name for two")
	}
}

// AlreadyExists was taken for success, so what an old incident had left over
// stood for the fence, Unfenced.
func TestALeftoverUnfencedObjectIsNoFence(t *testing.T) {
	s := lostStory(t)
	s.look()
	leftover := object("node-1", "boot-0", v1alpha1.Fence{Name: "node-1-rbd-a", Class: "fence-" + rbd, CIDRs: []string{"10.0.0.1/32"}}, true)
	leftover.Result, leftover.Message = resultSucceeded, unfencedMessage
	s.Fences = []NetworkFence{leftover}
	s.Node.OutOfService = true
	s.look()
	s.want(v1alpha1.NodeFencing, ReasonLeftoverUnfenced, "not fenced: "+rbd+" of a: NetworkFence node-1-rbd-a is Unfenced for 10.0.0.1: csi-addons would let the node in again; delete it")
	s.wantHeld(true)
	s.Fences = nil
	s.look()
	s.wantObjects(fencedOf1)

	// Of the very name: whoever made it, it is not what was asked for.
	s.change(s.Fences[0].Name, func(n *NetworkFence) { n.Unfenced, n.Result, n.Message = true, resultSucceeded, unfencedMessage })
	s.look()
	s.wantHeld(true)
	s.wantObjects(deletingOf1)
}

func TestAFenceOfAnotherIncidentIsNotThisOne(t *testing.T) {
	s := fenced(t)
	first := s.Fences[0]
	s = healthy(t)
	s.boot("boot-2")
	s.look()
	s.lose()
	s.Fences = []NetworkFence{first} // it says that it blocks
	s.Node.OutOfService = true
	s.look()
	s.wantHeld(true)
	if len(s.created) != 1 || s.created[0] == first.Name {
		t.Fatalf("asked for %v", s.created)
	}
}

// Who else watches an image, a mirror daemon or somebody's shell, is not the node.
func TestAWatcherIsNotTakenForTheNode(t *testing.T) {
	s := lostStory(t)
	s.Node.OutOfService = true
	s.Report.Clients = []VolumeClients{{Volume: held("pv-1", rbd, "a"), Addresses: []netip.Addr{addr("10.0.0.200")}}}
	s.look()
	s.want(v1alpha1.NodeFencing, ReasonContradicted, "not fenced: "+rbd+" of a: volume pv-1 is in use from 10.0.0.200, which was not recorded as an address of the node")
	s.wantObjects()
}

func TestIPv6IsOneAddressAndNotCut(t *testing.T) {
	for _, text := range []string{"fd00::1", "fd00::1/128", "2001:db8::a:0", "2001:db8:0:0:1:0:0:0"} {
		s := healthy(t)
		s.Status.Identities = nil
		s.Ledger = []v1alpha1.StorageIdentity{identity(rbd, "a", text)}
		s.look()
		s.loseTainted()
		bare, _, _ := strings.Cut(text, "/")
		if want := []string{addr(bare).String() + "/128"}; len(s.Fences) != 1 || !slices.Equal(s.Fences[0].CIDRs, want) {
			t.Errorf("%s: %+v", text, s.Fences)
		}
	}
}

func TestNode1IsNotNode11(t *testing.T) {
	lost := fenced(t)
	node11 := readyNamed("node-11", "boot-1")
	v := pv("pv-1", rbd, "h-1", "a", "ReadWriteOnce")
	// The fence of the one is none of the other, though all else is alike.
	node11.Ready = false
	if Attach(v, "node-2", []Holder{{Node: node11}}, lost.Policy) == nil {
		t.Error("the fence of node-1 is taken for one of node-11")
	}
	node11.Ready = true
	if held := Attach(v, "node-2", []Holder{{Node: node11}}, lost.Policy); held != nil {
		t.Errorf("the loss of node-1 holds what node-11 has: %s", held.Message)
	}
	if Attach(v, "node-11", []Holder{{Node: Node{Name: "node-1"}}}, lost.Policy) == nil {
		t.Error("node-11 is taken for node-1")
	}
	// Nor is what one has an address of the other.
	s := lostStory(t)
	s.Node.OutOfService = true
	s.Others = []Other{{Node: node11, Status: v1alpha1.NodeFenceStatus{Identities: []v1alpha1.StorageIdentity{identity(rbd, "a", "10.0.0.11/32")}}}}
	s.look()
	s.wantObjects(fencedOf1)
	// Nor a volume whose handle begins like another's.
	got := Holding(Use{InUse: []string{UniqueName(rbd, "img-11")}}, []Volume{pv("pv-1", rbd, "img-1", "a"), pv("pv-11", rbd, "img-11", "a")}, func(string) bool { return true })
	if names(got) != "pv-11" {
		t.Errorf("got %s", names(got))
	}
}

// It stopped at the first identity that it could fence, or that failed.
func TestAllIdentitiesAreFenced(t *testing.T) {
	s := healthy(t)
	s.Ledger = []v1alpha1.StorageIdentity{identity(rbd, "a", "10.0.0.1/32"), identity(cephFS, "a", "10.0.0.2/32"), identity(other, "b", "10.0.0.3/32")}
	s.Holding = []v1alpha1.HeldVolume{held("pv-0", other, "unknown"), held("pv-1", rbd, "a"), held("pv-2", cephFS, "a"), held("pv-3", other, "b")}
	s.look()
	s.loseTainted()
	s.wantObjects("Fenced [10.0.0.1/32] fence-"+rbd, "Fenced [10.0.0.2/32] fence-"+cephFS, "Fenced [10.0.0.3/32] fence-"+other)
	if s.Status.Reason != ReasonNoIdentity {
		t.Errorf("what can't be fenced is not said: %s", s.Status.Message)
	}
	s.answer()
	s.wantHeld(false)
	if Attach(pv("pv-0", other, "h", "unknown", "ReadWriteOnce"), "node-2", []Holder{{Node: s.Node, Status: s.Status}}, s.Policy) == nil {
		t.Error("what was not fenced is let go of")
	}
}

// A volume that was made by hand has no attributes of a provisioner.
func TestStaticVolumesAreFencedToo(t *testing.T) {
	static := Volume{Name: "pv-1", Driver: rbd, Handle: "by-hand", ClusterID: "a"}
	s := healthy(t)
	s.Holding = Holding(Use{InUse: []string{UniqueName(rbd, "by-hand")}}, []Volume{static}, func(string) bool { return true })
	s.look()
	s.loseTainted()
	s.wantObjects(fencedOf1)
	if Attach(static, "node-2", []Holder{{Node: s.Node, Status: s.Status}}, s.Policy) == nil {
		t.Error("let go of")
	}
}

func TestSharedVolumesAreFencedToo(t *testing.T) {
	shared := pv("pv-1", rbd, "h-1", "a", "ReadWriteMany")
	s := healthy(t)
	s.Holding = []v1alpha1.HeldVolume{shared.Held()}
	s.look()
	s.lose()
	s.look()
	if held := Attach(shared, "node-2", []Holder{{Node: s.Node, Status: s.Status}}, s.Policy); held != nil {
		t.Errorf("it may have many writers: %s", held.Message)
	}
	s.Node.OutOfService = true
	s.look()
	s.wantObjects(fencedOf1)
	if Attach(shared, "node-2", []Holder{{Node: s.Node, Status: s.Status}}, s.Policy) == nil {
		t.Error("let go of")
	}
}

func TestReadOnlyVolumesAreNotFencedFor(t *testing.T) {
	read := pv("pv-1", rbd, "h-1", "a", "ReadOnlyMany")
	s := healthy(t)
	s.Holding = Holding(Use{Attached: []string{"pv-1"}}, []Volume{read}, func(string) bool { return true })
	s.look()
	s.loseTainted()
	s.want(v1alpha1.NodeLost, ReasonNothingHeld, "the node is not Ready; no protected volume is on it")
}

func TestNonCSIVolumesDoNoHarm(t *testing.T) {
	volumes := []Volume{{Name: "nfs"}, {Name: "hostpath", AccessModes: []string{"ReadWriteOnce"}}, pv("pv-1", rbd, "h-1", "a")}
	use := Use{Attached: []string{"nfs", "hostpath", "pv-1"}, InUse: []string{"kubernetes.io/host-path/x", "kubernetes.io/csi/^", "^"}}
	if got := names(Holding(use, volumes, func(string) bool { return true })); got != "pv-1" {
		t.Fatalf("got %s", got)
	}
	if held := Attach(volumes[0], "node-2", []Holder{{Node: Node{Name: "node-1"}}}, allFenced()); held != nil {
		t.Fatalf("held: %+v", held)
	}
}

func TestAFenceStandsUntilTheNodeHasBooted(t *testing.T) {
	s := fenced(t)
	s.Node.OutOfService = false // the nodes gate can be down
	s.look()
	s.Now = s.Now.Add(time.Minute)
	s.Node.Ready, s.Node.ReadyChanged = true, s.Now
	s.Ledger = []v1alpha1.StorageIdentity{identity(rbd, "a", "10.0.0.1/32")}
	for range 3 {
		s.pass(time.Hour)
		s.look()
		s.csi()
	}
	s.want(v1alpha1.NodeFenced, ReasonNotRebooted, "the node is Ready again but has not booted since it was lost: it still has the mounts of before; reboot it")
	s.wantObjects(fencedOf1)
	s.boot("boot-2")
	s.pass(time.Minute)
	s.look()
	s.wantObjects(unfencedOf1)
}

// A NetworkFence that is deleted leaves the address on the block list.
func TestNothingIsDeletedBeforeItIsUnfenced(t *testing.T) {
	s := fenced(t)
	s.bootUntainted("boot-2")
	s.wantObjects(unfencedOf1)
	s.look()
	s.wantObjects(unfencedOf1) // not confirmed: the message is of before
	s.change(s.Fences[0].Name, func(n *NetworkFence) { n.Message = unfencedMessage })
	s.look()
	s.wantObjects(deletingOf1)
}

func TestModeOffFencesNothing(t *testing.T) {
	s := lostStory(t)
	s.Policy = with(s.Policy, StoragePolicy{Mode: ModeOff})
	s.Node.OutOfService = true
	s.look()
	s.wantObjects()
	s.wantHeld(false)
}

// Several clusters on one storage, with the same addresses.
func TestTheAddressOfAnotherClusterIsNotFenced(t *testing.T) {
	s := lostStory(t)
	s.Policy = with(s.Policy, StoragePolicy{Mode: ModeFence, ClientRanges: []netip.Prefix{netip.MustParsePrefix("10.1.0.0/16")}})
	s.Node.OutOfService = true
	s.look()
	s.want(v1alpha1.NodeFencing, ReasonOutsideRange, "not fenced: "+rbd+" of a: 10.0.0.1 is outside this cluster's clientRanges: it may be another cluster's")
	s.wantObjects()
}

// What the property test of invariant 10 found.

// A node that was not heard of for six minutes loses its attachments by force, and
// comes back Ready, with the mount.
func TestAVolumeIsHeldWhileAHealthyNodeHasItMounted(t *testing.T) {
	s := lostStory(t)
	s.look()
	s.Node.Ready = true
	s.look()
	s.wantHealthy()
	v := pv("pv-1", rbd, "h-1", "a", "ReadWriteOnce")
	held := Attach(v, "node-2", []Holder{{Node: s.Node, Status: s.Status, InUse: true}}, s.Policy)
	if held == nil || held.Reason != ReasonStillMounted {
		t.Fatalf("got %+v", held)
	}
}

// Its record said Healthy, so the new machine was recorded and what the old one
// had was forgotten; nor was it held from the namesake itself.
func TestAMachineThatIsReplacedUnnoticedIsLost(t *testing.T) {
	s := healthy(t)
	s.take("machine-2", "192.168.1.2")
	v := pv("pv-1", rbd, "h-1", "a", "ReadWriteOnce")
	if Attach(v, "node-1", []Holder{{Node: s.Node, Replaced: true, Status: s.Status}}, s.Policy) == nil {
		t.Fatal("the namesake gets it")
	}
	s.look()
	if s.Status.Phase != v1alpha1.NodeFencing || s.Status.VolumeCount != 1 || s.Status.Node.SystemUUID != "machine-1" {
		t.Fatalf("got %+v", s.Status)
	}
	s.wantHeld(true)
}

// A fence that does not stand yet shuts out whoever has the address when it does.
func TestAFenceIsNotMadeOfAnAddressThatIsTakenMeanwhile(t *testing.T) {
	s := askedOnly(t)
	taker := Other{Node: Node{Name: "node-2", Exists: true, Ready: true, Addresses: []netip.Addr{addr("10.0.0.1")}}}
	s.Others = []Other{taker}
	s.look()
	s.want(v1alpha1.NodeFencing, ReasonAddressInUse, "not fenced: "+rbd+" of a: 10.0.0.1 is also an address of node node-2, which is not lost")
	s.wantObjects(deletingOf1)
	s.Fences = nil
	s.look()
	s.wantObjects()
	s.wantHeld(true)
	// Once it stands, whoever takes the address is shut out already.
	s = fenced(t)
	s.Others = []Other{taker}
	s.look()
	s.wantDrained()
}

// Somebody else's object, or that of another identity, lets the address in again.
func TestAFenceIsDoubtedWhileAnotherObjectLetsItsAddressIn(t *testing.T) {
	s := fenced(t)
	s.Fences = append(s.Fences, NetworkFence{Name: "by-hand", Unfenced: true, CIDRs: []string{"10.0.0.1/32"}})
	s.look()
	s.want(v1alpha1.NodeFencing, ReasonLeftoverUnfenced, "not fenced: "+rbd+" of a: NetworkFence by-hand is Unfenced for 10.0.0.1: csi-addons would let the node in again; delete it")
	s.wantHeld(true)
	s.Fences = nil
	s.look()
	s.wantObjects(fencedOf1) // made anew: whether the old one stands, nobody knows
	s.wantHeld(true)

	s = healthy(t)
	s.loseWith(cephFS, "a", "10.0.0.1/32")
	s.answer()
	s.change(s.Fences[1].Name, func(n *NetworkFence) { n.Unfenced = true })
	s.look()
	s.wantHeld(true) // also of the identity whose own object is as it was
}
