package fence

import (
	"fmt"
	"net/netip"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fairlead-io/fairlead/api/v1alpha1"
)

func earlier(i v1alpha1.StorageIdentity, cidrs ...string) v1alpha1.StorageIdentity {
	for _, c := range cidrs {
		i.Addresses = append(i.Addresses, v1alpha1.ClientAddress{CIDR: c, Source: SourceCSIAddonsNode, LastSeen: metav1.NewTime(noon), Earlier: true})
	}
	return i
}

// While the node holds volumes of an identity, the addresses of before are kept.
func TestMergeKeepsEarlierAddresses(t *testing.T) {
	list := func(i ...v1alpha1.StorageIdentity) []v1alpha1.StorageIdentity { return i }
	one, two := identity(rbd, "a", "10.0.0.1/32"), identity(rbd, "a", "10.0.0.2/32")
	problem := v1alpha1.StorageIdentity{Driver: rbd, ClusterID: "a", Problem: "no address"}
	for name, test := range map[string]struct {
		before, now []v1alpha1.StorageIdentity
		want        string
	}{
		"another address":        {list(one), list(two), "10.0.0.2/32 CSIAddonsNode 12:01 10.0.0.1/32 CSIAddonsNode 12:00 earlier"},
		"and a third":            {list(earlier(two, "10.0.0.1/32")), list(identity(rbd, "a", "10.0.0.3/32")), "10.0.0.3/32 CSIAddonsNode 12:01 10.0.0.2/32 CSIAddonsNode 12:00 earlier 10.0.0.1/32 CSIAddonsNode 12:00 earlier"},
		"the first again":        {list(earlier(two, "10.0.0.1/32")), list(one), "10.0.0.1/32 CSIAddonsNode 12:01 10.0.0.2/32 CSIAddonsNode 12:00 earlier"},
		"one of two":             {list(identity(rbd, "a", "10.0.0.1/32", "fd00::1/128")), list(one), "10.0.0.1/32 CSIAddonsNode 12:01 fd00::1/128 CSIAddonsNode 12:00 earlier"},
		"seen again":             {list(earlier(two, "10.0.0.1/32")), list(two), "10.0.0.2/32 CSIAddonsNode 12:01 10.0.0.1/32 CSIAddonsNode 12:00 earlier"},
		"reported no more":       {list(earlier(two, "10.0.0.1/32")), nil, "10.0.0.2/32 CSIAddonsNode 12:00 10.0.0.1/32 CSIAddonsNode 12:00 earlier"},
		"a problem after it":     {list(earlier(two, "10.0.0.1/32")), list(problem), "10.0.0.2/32 CSIAddonsNode 12:00 10.0.0.1/32 CSIAddonsNode 12:00 earlier"},
		"another storage's":      {list(identity(other, "b", "10.0.0.1/32")), list(identity(other, "b", "10.0.0.2/32")), "10.0.0.2/32 CSIAddonsNode 12:01"},
		"another storage, of it": {list(earlier(identity(other, "b", "10.0.0.2/32"), "10.0.0.1/32")), nil, "10.0.0.2/32 CSIAddonsNode 12:00"},
	} {
		t.Run(name, func(t *testing.T) {
			merged := mergedAt(noon.Add(time.Minute), test.before, test.now, func(k key) bool { return k == key{rbd, "a"} })
			want := merged[0].Driver + "/" + merged[0].ClusterID + " " + test.want
			if got := textOfLedger(merged); got != want {
				t.Fatalf("got  %s\nwant %s", got, want)
			}
		})
	}
}

// The client's pod restarts, and gets another address; what the kernel has mounted
// stays mounted by the old one. Fencing only the new one would leave two writers.
func TestEarlierAddressOfSameBootIsFenced(t *testing.T) {
	moved := func(t *testing.T) *story {
		s := healthy(t)
		s.pass(time.Minute)
		s.Ledger = []v1alpha1.StorageIdentity{identity(rbd, "a", "10.0.0.2/32")}
		s.look()
		return s
	}
	lost := func(s *story, want string) {
		s.Helper()
		s.loseTainted()
		s.wantObjects("Fenced " + want + " fence-" + rbd)
	}
	t.Run("while it holds a volume", func(t *testing.T) { lost(moved(t), "[10.0.0.1/32 10.0.0.2/32]") })
	t.Run("not when it has released all", func(t *testing.T) {
		s := moved(t)
		volumes := s.Holding
		s.Holding = nil
		s.look()
		s.Holding = volumes
		s.look()
		lost(s, "[10.0.0.2/32]")
	})
	t.Run("not when it had none then", func(t *testing.T) {
		s := healthy(t)
		volumes := s.Holding
		s.Holding = nil
		s.look()
		s.Ledger = []v1alpha1.StorageIdentity{identity(rbd, "a", "10.0.0.2/32")}
		s.look()
		s.Holding = volumes
		s.look()
		lost(s, "[10.0.0.2/32]")
	})
	t.Run("not after a boot", func(t *testing.T) {
		s := moved(t)
		s.boot("boot-2").look()
		lost(s, "[10.0.0.1/32]")
	})
	t.Run("also when its object was deleted and is there again", func(t *testing.T) {
		s := moved(t)
		s.Node.Machine.UID = "uid-2"
		s.look()
		if s.Status.Node.UID != "uid-2" {
			t.Fatalf("recorded of %+v", s.Status.Node)
		}
		lost(s, "[10.0.0.1/32 10.0.0.2/32]")
	})
	t.Run("also when what it had was detached by force", func(t *testing.T) {
		s := healthy(t)
		s.lose().look()
		s.Holding = nil
		s.Node.Ready, s.Ledger = true, []v1alpha1.StorageIdentity{identity(rbd, "a", "10.0.0.2/32")}
		s.look()
		s.pass(time.Minute).look()
		lost(s, "[10.0.0.1/32 10.0.0.2/32]")
	})
}

// How old the ledger is says the address that was seen last.
func TestEarlierAddressDoesNotExpire(t *testing.T) {
	s := healthy(t)
	s.Ledger = []v1alpha1.StorageIdentity{identity(rbd, "a", "10.0.0.2/32")}
	for range 20 {
		s.pass(RefreshEvery).look()
	}
	s.loseTainted()
	s.wantObjects("Fenced [10.0.0.1/32 10.0.0.2/32] fence-" + rbd)
}

// An address that is given to another while it may still be in use is not fenced.
func TestEarlierAddressOfLiveNodeIsRefused(t *testing.T) {
	const k = rbd + " of a: "
	for name, test := range map[string]struct {
		theirs v1alpha1.StorageIdentity
		want   string
	}{
		"now":     {identity(rbd, "a", "10.0.0.1/32"), "10.0.0.1 is also an address of node node-2, which is not lost"},
		"earlier": {earlier(identity(rbd, "a", "10.0.0.3/32"), "10.0.0.2/32"), "10.0.0.2 is also an address of node node-2, which is not lost"},
	} {
		t.Run(name, func(t *testing.T) {
			s := healthy(t)
			s.Ledger = []v1alpha1.StorageIdentity{identity(rbd, "a", "10.0.0.2/32")}
			s.look()
			o := Other{Node: readyNamed("node-2", "boot-2"), Status: v1alpha1.NodeFenceStatus{Identities: []v1alpha1.StorageIdentity{test.theirs}}}
			o.Node.Addresses = []netip.Addr{addr("192.168.1.2")}
			s.Others = []Other{o}
			s.loseTainted()
			s.want(v1alpha1.NodeFencing, ReasonAddressInUse, "not fenced: "+k+test.want)
			s.wantHeld(true)
		})
	}
}

// The record does not grow for ever, and does not forget in silence.
func TestTooManyEarlierAddressesAreAProblem(t *testing.T) {
	s := healthy(t)
	for i := range maxEarlier + 5 {
		s.Ledger = []v1alpha1.StorageIdentity{identity(rbd, "a", fmt.Sprintf("10.0.1.%d/32", i))}
		s.look()
		s.look()
		if got, want := s.Status.Identities[0].Problem != "", i+1 >= maxEarlier; got != want {
			t.Fatalf("after %d addresses the problem is %q", i+2, s.Status.Identities[0].Problem)
		}
	}
	if n := len(s.Status.Identities[0].Addresses); n != maxEarlier+1 {
		t.Fatalf("%d addresses are on record", n)
	}
	volumes := s.Holding
	s.loseTainted()
	s.want(v1alpha1.NodeFencing, ReasonNoIdentity, "not fenced: "+rbd+" of a: "+tooMany)
	s.Node.OutOfService, s.Node.Ready, s.Holding = false, true, nil
	s.Ledger = []v1alpha1.StorageIdentity{identity(rbd, "a", "10.0.2.1/32")}
	for range 2 {
		s.look()
		s.pass(endsWithin)
	}
	s.look()
	s.Holding = volumes
	s.look()
	if i := s.Status.Identities[0]; i.Problem != "" || len(i.Addresses) != 1 {
		t.Fatalf("with nothing mounted, there is still %+v", i)
	}
}
