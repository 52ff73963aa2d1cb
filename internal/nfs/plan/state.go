package plan

import (
	"net/netip"
	"slices"
	"strings"

	"github.com/fairlead-io/fairlead/api/v1alpha1"
	"github.com/fairlead-io/fairlead/internal/nfs"
	"github.com/fairlead-io/fairlead/internal/nfs/assign"
	"github.com/fairlead-io/fairlead/internal/nfs/spec"
)

// State is an NFS service with its nodes, as the API has them.
type State struct {
	Service  spec.Service
	object   *v1alpha1.NFSService
	nodes    []assign.Attachment
	members  []nfs.Member
	slots    []assign.Slot
	pool     *assign.Pool
	zoneOf   map[string]string
	slotOf   map[string]int // by address
	problems nfs.Problems
}

// Read builds the state of a service from its object and its attachments.
// Attachments without an address are not attached yet and are not counted.
func Read(s *v1alpha1.NFSService, attachments []assign.Attachment) *State {
	service, problems := spec.Read(s)
	state := &State{
		Service: service, object: s, nodes: attachments, members: spec.Members(&s.Status), slots: spec.Slots(&s.Status),
		pool: assign.NewPool(service.Slack), zoneOf: map[string]string{}, slotOf: map[string]int{}, problems: problems,
	}
	for _, a := range attachments {
		state.zoneOf[a.Node.Name] = a.Node.Zone
	}
	for i, address := range spec.SlotAddresses(&s.Status, service.Port) {
		if address != "" {
			state.slotOf[address] = i
		}
	}
	state.pool.SetTargets(state.targets(state.members, state.slots, s.Status.Backend))
	state.pool.Rebuild(attachments)
	state.pool.Slots(state.slots, spec.SlotAddresses(&s.Status, service.Port))
	return state
}

// targets of members, slots and the backend that a Stable address points to.
func (s *State) targets(members []nfs.Member, slots []assign.Slot, stable string) []assign.Target {
	status := s.object.Status
	status.Backend = stable
	return spec.Targets(s.Service.Exposure, &status, members, slots, s.Service.Port)
}

// Loads are the backends with the number of their nodes, sorted by address.
func (s *State) Loads() []assign.Load { return s.pool.Loads() }

// Nodes is the number of nodes with an attached volume of the service.
func (s *State) Nodes() int { return s.pool.Len() }

// Slots with the number of their nodes, by index.
func (s *State) Slots() []assign.Slot { return s.slots }

// Node is one node of the service.
type Node struct {
	Name, Zone string
	// Address that the node has mounted.
	Address string
	// Slot of that address; -1: none.
	Slot int
	// Backend that the address leads to; not valid: none.
	Backend netip.AddrPort
	Volumes int
	// Leaves is why the node should leave the backend; empty: it stays.
	Leaves assign.Reason
	// Split: volumes of the node have different addresses.
	Split bool
	// Why the node is there, in words.
	Why string
}

// Explain returns the nodes of the service, sorted by name.
func (s *State) Explain() []Node {
	var nodes []Node
	for name, at := range s.pool.Nodes() {
		n := Node{Name: name, Zone: s.zoneOf[name], Address: at.Address, Slot: s.slot(at.Address), Backend: at.Backend, Volumes: at.Volumes, Split: at.Split}
		n.Leaves = leaves(s.members, at.Backend)
		n.Why = s.why(n)
		nodes = append(nodes, n)
	}
	slices.SortFunc(nodes, func(a, b Node) int { return strings.Compare(a.Name, b.Name) })
	return nodes
}

func (s *State) slot(address string) int {
	if i, ok := s.slotOf[address]; ok {
		return i
	}
	return -1
}

// leaves is why a node or a slot should leave a backend; empty: it stays.
func leaves(members []nfs.Member, backend netip.AddrPort) assign.Reason {
	i := slices.IndexFunc(members, func(m nfs.Member) bool { return m.Addr == backend })
	switch {
	case i < 0:
		return assign.Gone
	case members[i].Health == nfs.Down:
		return assign.Down
	case members[i].Drain:
		return assign.Draining
	}
	return ""
}
