package plan

import (
	"net/netip"
	"slices"
	"strings"

	"github.com/fairlead-io/fairlead/api/v1alpha1"
	"github.com/fairlead-io/fairlead/internal/nfs"
	"github.com/fairlead-io/fairlead/internal/nfs/assign"
	"github.com/fairlead-io/fairlead/internal/nfs/definition"
)

// State is an NFS service with its nodes, as the API has them.
type State struct {
	Service definition.Service
	// Problems of the service's spec, as admission would report them.
	Problems nfs.Problems
	// Slots with the number of their nodes, by index.
	Slots []assign.Slot

	object      *v1alpha1.NFSService
	attachments []assign.Attachment
	members     []nfs.Backend
	pool        *assign.Pool
	slotOf      map[string]int // by address
}

// Read builds the state of a service from its object and its attachments.
// Attachments without an address are not attached yet and are not counted.
func Read(s *v1alpha1.NFSService, attachments []assign.Attachment) *State {
	service, problems := definition.Read(s)
	state := &State{
		Service: service, Problems: problems, Slots: definition.Slots(&s.Status),
		object: s, attachments: attachments, members: definition.Members(&s.Status), slotOf: map[string]int{},
	}
	addresses := definition.SlotAddresses(&s.Status, service.Port)
	for i, address := range addresses {
		if address != "" {
			state.slotOf[address] = i
		}
	}
	state.pool = state.poolOf(state.members, state.Slots, s.Status.Backend)
	state.pool.Slots(state.Slots, addresses)
	return state
}

// poolOf has the nodes, if the service had these backends and slots, and this backend behind a Stable address.
func (s *State) poolOf(members []nfs.Backend, slots []assign.Slot, stable string) *assign.Pool {
	status := s.object.Status
	status.Backend = stable
	pool := assign.NewPool()
	pool.SetBackends(s.Service.Slack, members, definition.Addresses(s.Service.Exposure, &status, members, slots, s.Service.Port))
	for _, a := range s.attachments {
		pool.Record(a)
	}
	return pool
}

// Loads are the backends with the number of their nodes, sorted by address.
func (s *State) Loads() []assign.Load { return s.pool.Loads() }

// Node is one node of the service.
type Node struct {
	Node string `json:"node"`
	Zone string `json:"zone"`
	// Address that the node has mounted, and its slot.
	Address string `json:"address"`
	Slot    *int   `json:"slot,omitempty"`
	// Backend that the address leads to; empty: none.
	Backend string `json:"backend"`
	Volumes int    `json:"volumes"`
	// Leaves is why the node should leave the backend: Gone, Down or Draining; empty: it stays.
	Leaves assign.Reason `json:"leaves"`
	// Split: volumes of the node have different addresses.
	Split bool `json:"split"`
	// Why the node is there, in words.
	Why string `json:"why"`
}

// Explain returns the nodes of the service, sorted by name.
func (s *State) Explain() []Node {
	zones := map[string]string{}
	for _, a := range s.attachments {
		zones[a.Node.Name] = a.Node.Zone
	}
	nodes := []Node{}
	for name, at := range s.pool.Nodes() {
		n := Node{
			Node: name, Zone: zones[name], Address: at.Address, Backend: addrText(at.Backend), Volumes: at.Volumes,
			Leaves: assign.Leaves(s.members, at.Backend), Split: at.Split,
		}
		if i, ok := s.slotOf[at.Address]; ok {
			n.Slot = &i
		}
		n.Why = s.why(n, at.Backend)
		nodes = append(nodes, n)
	}
	slices.SortFunc(nodes, func(a, b Node) int { return strings.Compare(a.Node, b.Node) })
	return nodes
}

func addrText(a netip.AddrPort) string {
	if !a.IsValid() {
		return ""
	}
	return a.String()
}
