package assign

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"testing"

	"github.com/fairlead-io/fairlead/internal/nfs"
	"github.com/fairlead-io/fairlead/internal/testkit/must"
)

// The GKE driver's unit test: three servers with 1, 0 and 1 nodes; the second is chosen.
func TestLeastLoadedBackendIsChosen(t *testing.T) {
	p := newPool(DefaultSlack, members(3))
	rebuild(p, []Attachment{{node(0), "pv", "10.0.0.1"}, {node(1), "pv", "10.0.0.3"}})
	must.Equal(t, attach(t, p, node(2), "pv"), "10.0.0.2")
}

// The GKE driver never gives back the count of a node that is deleted.
func TestDeletedNodesGiveTheirCountsBack(t *testing.T) {
	p := newPool(DefaultSlack, members(10))
	for i := range 100 {
		attach(t, p, node(i), "a")
		attach(t, p, node(i), "b")
	}
	for i := range 30 {
		p.Detach(node(i).Name, "a")
		p.Detach(node(i).Name, "b")
	}
	p.Detach("never seen", "a")
	for i := range 30 {
		attach(t, p, node(100+i), "a")
	}
	loads := nodesOf(p)
	must.True(t, slices.Min(loads) == 10 && slices.Max(loads) == 10, "after 30 nodes were deleted and 30 came: %v", loads)
}

func TestAttachmentWithoutAddressIsNotCounted(t *testing.T) {
	p := NewPool()
	_, err := p.Attach(node(0), "pv")
	must.True(t, errors.Is(err, ErrNoBackend), "got %v", err)
	setMembers(p, members(2))
	rebuild(p, []Attachment{{node(0), "pv", ""}})
	must.True(t, p.Len() == 0 && attach(t, p, node(0), "pv") != "", "an attachment that has no address yet is counted")
}

// A node that the GKE driver annotated keeps the server that it has mounted.
func TestPreferredAddressIsKeptWhileItsBackendLives(t *testing.T) {
	list := members(3)
	p := newPool(DefaultSlack, list)
	for i := range 9 {
		n := node(i)
		n.Prefers = "10.0.0.2"
		got := attach(t, p, n, "pv")
		must.True(t, got == n.Prefers, "node %d is on %s", i, got)
	}
	list[1].Health = nfs.Down
	setMembers(p, list)
	for _, prefers := range []string{"10.0.0.2", "10.9.9.9"} {
		got := attach(t, p, Node{Name: "to " + prefers, Prefers: prefers}, "pv")
		must.True(t, got != prefers, "a new node is on %s", got)
	}
}

// The write of an address may fail, and its server may be down at the retry.
func TestUnwrittenAddressIsChosenAgainWhenItsBackendIsLost(t *testing.T) {
	for _, written := range []bool{false, true} {
		list := members(2)
		p := newPool(DefaultSlack, list)
		first := attach(t, p, node(0), "pv")
		must.Equal(t, attach(t, p, node(0), "pv"), first, "at once")
		if written {
			p.Record(Attachment{node(0), "pv", first})
		}
		lost := slices.IndexFunc(list, func(m nfs.Backend) bool { return m.Address() == first })
		list[lost].Drain = true
		setMembers(p, list)
		must.Equal(t, attach(t, p, node(0), "pv"), first, "while its backend drains")
		list[lost].Health = nfs.Down
		setMembers(p, list)
		must.Equal(t, p.Withdraw(node(0).Name, "pv"), !written, "withdrawn")
		must.Equal(t, attach(t, p, node(0), "pv") == first, written, "kept; written: %v", written)
		want := []int{1, 1}
		want[lost] = 0
		if written {
			want[lost], want[1-lost] = 1, 0
		}
		must.Equal(t, nodesOf(p), want, "written: %v", written)
	}
}

// Two leaders may attach volumes of one node at the same moment.
func TestSplitNodeCountsWhereMostVolumesAre(t *testing.T) {
	list := []Attachment{{node(0), "a", "10.0.0.1"}, {node(0), "b", "10.0.0.3"}, {node(0), "c", "10.0.0.3"}}
	for range 2 {
		p := newPool(DefaultSlack, members(3))
		rebuild(p, list)
		if at, _ := p.Node(node(0).Name); at.Address != "10.0.0.3" || !at.Split || !slices.Equal(nodesOf(p), []int{0, 0, 1}) {
			t.Errorf("got %+v, %v", at, nodesOf(p))
		}
		slices.Reverse(list)
	}
}

func TestSplitNodeCountsOnABackendThatLives(t *testing.T) {
	list := members(3)
	p := newPool(DefaultSlack, list)
	rebuild(p, []Attachment{{node(0), "a", "10.0.0.1"}, {node(0), "b", "10.0.0.3"}, {node(0), "c", "10.0.0.3"}})
	list[2].Health = nfs.Down
	setMembers(p, list)
	must.Equal(t, nodesOf(p), []int{1, 0, 0}, "its other backend is down")
	slots := make([]Slot, 3)
	p.Slots(slots, []string{"10.0.0.1", "10.0.0.2", "10.0.0.3"})
	must.Equal(t, slots, []Slot{{Nodes: 1, Mounted: true}, {}, {Mounted: true}})
	list[2].Health = nfs.Healthy
	setMembers(p, list)
	must.Equal(t, nodesOf(p), []int{0, 0, 1}, "its other backend is back")
}

func TestZoneIsPreferredWithinSlack(t *testing.T) {
	list := members(4)
	for i, zone := range []string{"a", "a", "b", ""} {
		list[i].Zone = zone
	}
	p := newPool(DefaultSlack, list)
	inZone := 0
	for i := range 100 {
		n := node(i)
		n.Zone = "b"
		if attach(t, p, n, "pv") == "10.0.0.3" {
			inZone++
		}
	}
	if inZone != 30 { // ⌈100 / 4 × 1.2⌉
		t.Errorf("%d nodes of zone b are on its backend: %v", inZone, nodesOf(p))
	}
	must.Equal(t, attach(t, newPool(DefaultSlack, list), Node{Name: "n", Zone: "b"}, "pv"), "10.0.0.3", "first node")
	both := newPool(1000, list)
	for i := range 40 {
		attach(t, both, Node{Name: fmt.Sprint("n", i), Zone: "a"}, "pv")
	}
	must.Equal(t, nodesOf(both), []int{20, 20, 0, 0}, "backends of one zone")
	list[2].Health = nfs.Unknown
	setMembers(p, list)
	got := attach(t, p, Node{Name: "new", Zone: "b"}, "pv")
	must.True(t, got != "10.0.0.3", "the zone comes before health")
	attach(t, p, Node{Name: "elsewhere", Zone: "no backend"}, "pv")
}

func TestSlotsOfOneBackendShareItsNodes(t *testing.T) {
	list := members(3)
	addresses := map[string]netip.AddrPort{}
	for i := range 12 {
		addresses[fmt.Sprintf("10.96.0.%d", i)] = list[i/4].Addr
	}
	p := NewPool()
	p.SetBackends(DefaultSlack, list, addresses)
	for i := range 24 {
		attach(t, p, node(i), "pv")
	}
	for i := range 12 {
		must.Equal(t, p.AddressNodes(fmt.Sprintf("10.96.0.%d", i)), 2, "nodes of slot %d", i)
	}
	// Repointing a slot takes its nodes along.
	for i := range 4 {
		addresses[fmt.Sprintf("10.96.0.%d", i)] = list[1].Addr
	}
	p.SetBackends(DefaultSlack, list, addresses)
	got := nodesOf(p)
	must.True(t, slices.Equal(got, []int{0, 16, 8}) && len(p.Plan().Moves) == 0, "got %v", got)
	if got := attach(t, p, node(99), "pv"); p.AddressNodes(got) != 3 || nodesOf(p)[2] != 9 {
		t.Errorf("a backend without slots takes nodes: %s, %v", got, nodesOf(p))
	}
}

func TestTiesSpreadAndDependOnTheNodeAlone(t *testing.T) {
	counts := map[string]int{}
	for i := range 1000 {
		first := attach(t, newPool(DefaultSlack, members(7)), node(i), "pv")
		shuffled := members(7)
		slices.Reverse(shuffled)
		if again := attach(t, newPool(DefaultSlack, shuffled), node(i), "other"); again != first {
			t.Fatalf("%s is on %s, then on %s", node(i).Name, first, again)
		}
		counts[first]++
	}
	for address, n := range counts {
		must.True(t, n >= 100 && n <= 190, "%s wins %d of 1000 ties among 7", address, n)
	}
	must.Equal(t, len(counts), 7, "addresses")
}

func TestAddressesAreForgottenWithTheirNodes(t *testing.T) {
	p := NewPool()
	for i := range 100 {
		setMembers(p, []nfs.Backend{member(i)})
		attach(t, p, node(0), "pv")
		p.Detach(node(0).Name, "pv")
	}
	n := len(p.leads) + len(p.counts)
	must.True(t, n <= 3, "%d addresses are kept of backends that are gone", n)
}
