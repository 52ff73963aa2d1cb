package assign

import (
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/fairlead-io/fairlead/internal/nfs"
)

// The counts that the GKE driver's end-to-end test expects over node annotations.
func TestDistributionOfGKEDriver(t *testing.T) {
	for _, c := range []struct{ servers, clients, different, least, most int }{
		{10, 10, 10, 1, 1},
		{5, 5, 5, 1, 1},
		{5, 10, 5, 2, 2},
		{5, 9, 5, 1, 2},
		{10, 100, 10, 10, 10},
	} {
		p := newPool(DefaultSlack, PerNodeTargets(members(c.servers)))
		for i := range c.clients {
			attach(t, p, node(i), "pv")
		}
		annotated, different, least, most := minMax(p)
		if annotated != c.clients || different != c.different || least != c.least || most != c.most {
			t.Errorf("%+v: %d nodes, %d addresses, %d to %d nodes each", c, annotated, different, least, most)
		}
		for i := range c.clients {
			p.Detach(node(i).Name, "pv")
		}
		if p.Len() != 0 || slices.Max(nodesOf(p)) != 0 {
			t.Errorf("%+v: %d nodes are left, %v", c, p.Len(), nodesOf(p))
		}
	}
}

func TestTwoDeploymentsThenOneIsRemoved(t *testing.T) {
	p := newPool(DefaultSlack, PerNodeTargets(members(5)))
	for i := range 10 {
		attach(t, p, node(i), fmt.Sprint("pv-", i/5))
	}
	if n, different, least, most := minMax(p); n != 10 || different != 5 || least != 2 || most != 2 {
		t.Errorf("both: %d nodes, %d addresses, %d to %d", n, different, least, most)
	}
	for i := range 5 {
		p.Detach(node(i).Name, "pv-0")
	}
	if n, different, least, most := minMax(p); n != 5 || different != 5 || least != 1 || most != 1 {
		t.Errorf("one: %d nodes, %d addresses, %d to %d", n, different, least, most)
	}
}

// The GKE driver's unit test: three servers with 1, 0 and 1 nodes; the second is chosen.
func TestLeastLoadedBackendIsChosen(t *testing.T) {
	p := newPool(DefaultSlack, PerNodeTargets(members(3)))
	p.Rebuild([]Attachment{{node(0), "pv", "10.0.0.1"}, {node(1), "pv", "10.0.0.3"}})
	if got := attach(t, p, node(2), "pv"); got != "10.0.0.2" {
		t.Errorf("got %s", got)
	}
}

// The GKE driver gives up the address with the first volume (lbcontroller.go: RemoveIPFromNode).
func TestNodeKeepsAddressUntilLastVolume(t *testing.T) {
	p := newPool(DefaultSlack, PerNodeTargets(members(3)))
	first := attach(t, p, node(0), "a")
	for i := range 20 {
		attach(t, p, node(i+1), "x")
	}
	before := nodesOf(p)
	for _, volume := range []string{"b", "c", "a"} {
		if got := attach(t, p, node(0), volume); got != first {
			t.Errorf("volume %s: %s, want %s", volume, got, first)
		}
	}
	p.Detach(node(0).Name, "a")
	p.Detach(node(0).Name, "b")
	p.Detach(node(0).Name, "b")
	p.Detach(node(0).Name, "never attached")
	if at, ok := p.Node(node(0).Name); !ok || at.Address != first || at.Volumes != 1 || !slices.Equal(nodesOf(p), before) {
		t.Errorf("with one volume left: %+v, %v, %v", at, ok, nodesOf(p))
	}
	p.Detach(node(0).Name, "c")
	if _, ok := p.Node(node(0).Name); ok || p.Len() != 20 {
		t.Error("the node is still there")
	}
}

// The GKE driver never gives back the count of a node that is deleted.
func TestDeletedNodesGiveTheirCountsBack(t *testing.T) {
	p := newPool(DefaultSlack, PerNodeTargets(members(10)))
	for i := range 100 {
		attach(t, p, node(i), "a")
		attach(t, p, node(i), "b")
	}
	for i := range 30 {
		p.DetachAll(node(i).Name)
	}
	p.DetachAll("never seen")
	for i := range 30 {
		attach(t, p, node(100+i), "a")
	}
	if loads := nodesOf(p); slices.Min(loads) != 10 || slices.Max(loads) != 10 {
		t.Errorf("after 30 nodes were deleted and 30 came: %v", loads)
	}
}

func TestWeightsShareNodes(t *testing.T) {
	list := members(3)
	list[0].Weight, list[1].Weight, list[2].Weight = 1, 2, 5
	p := newPool(DefaultSlack, PerNodeTargets(list))
	for i := range 80 {
		attach(t, p, node(i), "pv")
	}
	if got := nodesOf(p); !slices.Equal(got, []int{10, 20, 50}) {
		t.Errorf("got %v", got)
	}
}

func TestHealthOrdersBackendsForNewNodes(t *testing.T) {
	list := members(5)
	list[0].Health, list[1].Health, list[2].Health, list[4].Drain = nfs.Down, nfs.Failing, nfs.Unknown, true
	for _, want := range []string{"10.0.0.4", "10.0.0.3", "10.0.0.2"} {
		p := newPool(DefaultSlack, PerNodeTargets(list))
		for i := range 10 {
			if got := attach(t, p, node(i), "pv"); got != want {
				t.Fatalf("node %d is on %s, want %s", i, got, want)
			}
		}
		i := slices.IndexFunc(list, func(m nfs.Member) bool { return m.Addr.Addr().String() == want })
		list[i].Health = nfs.Down
	}
	p := newPool(DefaultSlack, PerNodeTargets(list))
	if _, err := p.Attach(node(0), "pv"); !errors.Is(err, ErrNoBackend) {
		t.Errorf("got %v", err)
	}
	if p.Len() != 0 {
		t.Error("a node that was refused is counted")
	}
}

func TestNewVolumeAvoidsBackendThatIsDown(t *testing.T) {
	list := members(2)
	p := newPool(DefaultSlack, PerNodeTargets(list))
	old := attach(t, p, node(0), "a")
	i := slices.IndexFunc(list, func(m nfs.Member) bool { return m.Addr.Addr().String() == old })

	list[i].Drain = true
	p.SetTargets(PerNodeTargets(list))
	if got := attach(t, p, node(0), "b"); got != old {
		t.Errorf("a backend that drains keeps its nodes: %s, want %s", got, old)
	}
	list[i].Health = nfs.Down
	p.SetTargets(PerNodeTargets(list))
	if got := attach(t, p, node(0), "c"); got == old {
		t.Error("a new volume is mounted from a backend that is down")
	}
	if got := attach(t, p, node(0), "a"); got != old {
		t.Errorf("the address of an attached volume changed to %s", got)
	}
	at, _ := p.Node(node(0).Name)
	if at.Address == old || !at.Split || at.Volumes != 3 || p.Len() != 1 {
		t.Errorf("got %+v", at)
	}
	p.Detach(node(0).Name, "a")
	p.Detach(node(0).Name, "b")
	if at, _ := p.Node(node(0).Name); at.Split {
		t.Errorf("got %+v", at)
	}
}

func TestAttachmentWithoutAddressIsNotCounted(t *testing.T) {
	p := newPool(DefaultSlack, PerNodeTargets(members(2)))
	p.Rebuild([]Attachment{{node(0), "pv", ""}})
	if p.Len() != 0 || attach(t, p, node(0), "pv") == "" {
		t.Error("an attachment that has no address yet is counted")
	}
}

// A node that the GKE driver annotated keeps the server that it has mounted.
func TestPreferredAddressIsKeptWhileItsBackendLives(t *testing.T) {
	list := members(3)
	p := newPool(DefaultSlack, PerNodeTargets(list))
	for i := range 9 {
		n := node(i)
		n.Prefers = "10.0.0.2"
		if got := attach(t, p, n, "pv"); got != n.Prefers {
			t.Fatalf("node %d is on %s", i, got)
		}
	}
	list[1].Health = nfs.Down
	p.SetTargets(PerNodeTargets(list))
	for _, prefers := range []string{"10.0.0.2", "10.9.9.9"} {
		if got := attach(t, p, Node{Name: "to " + prefers, Prefers: prefers}, "pv"); got == prefers {
			t.Errorf("a new node is on %s", got)
		}
	}
}

// Two leaders may attach volumes of one node at the same moment.
func TestSplitNodeCountsWhereMostVolumesAre(t *testing.T) {
	list := []Attachment{{node(0), "a", "10.0.0.1"}, {node(0), "b", "10.0.0.3"}, {node(0), "c", "10.0.0.3"}}
	for range 2 {
		p := newPool(DefaultSlack, PerNodeTargets(members(3)))
		p.Rebuild(list)
		if at, _ := p.Node(node(0).Name); at.Address != "10.0.0.3" || !at.Split || !slices.Equal(nodesOf(p), []int{0, 0, 1}) {
			t.Errorf("got %+v, %v", at, nodesOf(p))
		}
		slices.Reverse(list)
	}
}

func TestZoneIsPreferredWithinSlack(t *testing.T) {
	list := members(4)
	for i, zone := range []string{"a", "a", "b", ""} {
		list[i].Zone = zone
	}
	p := newPool(DefaultSlack, PerNodeTargets(list))
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
	if got := attach(t, newPool(DefaultSlack, PerNodeTargets(list)), Node{Name: "n", Zone: "b"}, "pv"); got != "10.0.0.3" {
		t.Errorf("the first node of all is on %s", got)
	}
	both := newPool(1000, PerNodeTargets(list))
	for i := range 40 {
		attach(t, both, Node{Name: fmt.Sprint("n", i), Zone: "a"}, "pv")
	}
	if got := nodesOf(both); got[0]-got[1] > 1 || got[1]-got[0] > 1 || got[0] < 10 {
		t.Errorf("backends of one zone: %v", got)
	}
	list[2].Health = nfs.Unknown
	p.SetTargets(PerNodeTargets(list))
	if got := attach(t, p, Node{Name: "new", Zone: "b"}, "pv"); got == "10.0.0.3" {
		t.Error("the zone comes before health")
	}
	attach(t, p, Node{Name: "elsewhere", Zone: "no backend"}, "pv")
}

func TestSlotsOfOneBackendShareItsNodes(t *testing.T) {
	list := members(3)
	slots, clusterIPs := make([]Slot, 13), make([]string, 12) // the last slot has no address yet
	for i := range slots {
		slots[i].Backend = list[i/4%3].Addr
	}
	for i := range clusterIPs {
		clusterIPs[i] = fmt.Sprintf("10.96.0.%d", i)
	}
	targets := SlotTargets(list, slots, clusterIPs)
	p := newPool(DefaultSlack, targets)
	for i := range 24 {
		attach(t, p, node(i), "pv")
	}
	for i := range 12 {
		if n := p.AddressNodes(fmt.Sprintf("10.96.0.%d", i)); n != 2 {
			t.Errorf("slot %d has %d nodes", i, n)
		}
	}
	// Repointing a slot takes its nodes along.
	targets[1].Addresses = append(targets[1].Addresses, targets[0].Addresses...)
	targets[0].Addresses = nil
	p.SetTargets(targets)
	if got := nodesOf(p); !slices.Equal(got, []int{0, 16, 8}) || len(p.Plan(false).Moves) != 0 {
		t.Errorf("got %v", got)
	}
	if got := attach(t, p, node(99), "pv"); p.AddressNodes(got) != 3 || nodesOf(p)[2] != 9 {
		t.Errorf("a backend without slots takes nodes: %s, %v", got, nodesOf(p))
	}
}

func TestTiesSpreadAndDependOnTheNodeAlone(t *testing.T) {
	counts := map[string]int{}
	for i := range 1000 {
		first := attach(t, newPool(DefaultSlack, PerNodeTargets(members(7))), node(i), "pv")
		shuffled := members(7)
		slices.Reverse(shuffled)
		if again := attach(t, newPool(DefaultSlack, PerNodeTargets(shuffled)), node(i), "other"); again != first {
			t.Fatalf("%s is on %s, then on %s", node(i).Name, first, again)
		}
		counts[first]++
	}
	for address, n := range counts {
		if n < 100 || n > 190 {
			t.Errorf("%s wins %d of 1000 ties among 7", address, n)
		}
	}
	if len(counts) != 7 {
		t.Errorf("got %v", counts)
	}
}

func TestAddressesAreForgottenWithTheirNodes(t *testing.T) {
	p := NewPool(DefaultSlack)
	for i := range 100 {
		p.SetTargets(PerNodeTargets([]nfs.Member{member(i)}))
		attach(t, p, node(0), "pv")
		p.Detach(node(0).Name, "pv")
	}
	if n := len(p.addresses.list); n > 3 {
		t.Errorf("%d addresses are kept of backends that are gone", n)
	}
}
