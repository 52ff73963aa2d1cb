package assign

import (
	"cmp"
	"errors"
	"maps"
	"net/netip"
	"slices"

	"github.com/cespare/xxhash/v2"

	"github.com/fairlead-io/fairlead/internal/nfs"
)

// DefaultSlack is how many percent above the average a backend may be.
const DefaultSlack = 20

// ErrNoBackend is returned where no backend takes new nodes.
var ErrNoBackend = errors.New("the NFS service has no backend for a new node: all are down or draining, or there are none; add a backend, end a drain, or check the servers")

// Node is a Kubernetes node.
type Node struct {
	Name string
	// Zone is empty if unknown.
	Zone string
	// Prefers is an address that the node has mounted from before: the annotation of
	// the GKE driver. Its first volume gets that address while its backend is not down.
	Prefers string
}

// Attachment is a VolumeAttachment of the service: at most one per node and volume.
type Attachment struct {
	Node   Node
	Volume string
	// Address that the node was given for the volume.
	Address string
}

// Pool holds the nodes of one service. It is not safe for concurrent use.
type Pool struct {
	slack    int
	backends []backend      // sorted by address
	leads    map[string]int // addresses, each to the index of its backend
	nodes    map[string]*entry
	counts   map[string]int // nodes by address
}

type backend struct {
	nfs.Backend
	addresses []string
	nodes     int
	hash      uint64
}

// entry is one node. Its address is the one by which it counts.
type entry struct {
	zone, address string
	volumes       []held
}

type held struct {
	volume, address string
	// written: the API has the address; else the write is under way.
	written bool
}

// NewPool returns a pool without backends and nodes.
func NewPool() *Pool {
	return &Pool{leads: map[string]int{}, nodes: map[string]*entry{}, counts: map[string]int{}}
}

// SetBackends replaces the backends, the addresses that lead to them, and the slack in percent. The text of an address is what
// VolumeAttachments carry. Nodes keep their addresses: an address that leads to another backend now takes its nodes
// along, and nodes whose address leads nowhere are orphans until Plan moves them or the backend returns.
func (p *Pool) SetBackends(slack int, members []nfs.Backend, addresses map[string]netip.AddrPort) {
	p.slack = slack
	p.backends, p.leads, p.counts = make([]backend, len(members)), map[string]int{}, map[string]int{}
	index := map[netip.AddrPort]int{}
	for i, m := range slices.SortedFunc(slices.Values(members), func(a, b nfs.Backend) int { return a.Addr.Compare(b.Addr) }) {
		m.Weight = min(max(m.Weight, 1), nfs.MaxWeight)
		p.backends[i] = backend{Backend: m, hash: xxhash.Sum64String(m.Addr.String())}
		index[m.Addr] = i
	}
	for _, address := range slices.Sorted(maps.Keys(addresses)) {
		if i, ok := index[addresses[address]]; ok {
			p.leads[address] = i
			p.backends[i].addresses = append(p.backends[i].addresses, address)
		}
	}
	for _, n := range p.nodes {
		n.address = p.addressOf(n.volumes)
		p.count(n.address, 1)
	}
}

// Attach returns the address for a volume on a node, and records it. The node
// keeps the address that it has, also where its backend drains. It gets another
// where its backend is down or gone: volumes that it has attached keep theirs, as
// they are mounted.
func (p *Pool) Attach(n Node, volume string) (string, error) {
	at, known := p.nodes[n.Name]
	address := n.Prefers
	if known {
		if i := find(at.volumes, volume); i >= 0 {
			return at.volumes[i].address, nil
		}
		address = at.address
	}
	if !p.usable(address) {
		if address = p.choose(n.Name, n.Zone); address == "" {
			return "", ErrNoBackend
		}
	}
	p.put(n, held{volume, address, false})
	return address, nil
}

// Record takes over an attachment as the API has it, whatever Attach returned: another leader may have written it. It
// does nothing if the attachment has no address yet. It reports whether the pool did not have the address.
func (p *Pool) Record(a Attachment) bool {
	return a.Address != "" && p.put(a.Node, held{a.Volume, a.Address, true})
}

// Withdraw takes back what Attach returned, unless Record has seen it: the address could not be written.
func (p *Pool) Withdraw(nodeName, volume string) bool {
	return p.remove(nodeName, func(h held) bool { return h.volume == volume && !h.written })
}

// Detach removes a volume from a node. With its last volume the node leaves the pool. It reports whether the node had it.
func (p *Pool) Detach(nodeName, volume string) bool {
	return p.remove(nodeName, func(h held) bool { return h.volume == volume })
}

func (p *Pool) remove(nodeName string, gone func(held) bool) bool {
	n, ok := p.nodes[nodeName]
	if !ok || !slices.ContainsFunc(n.volumes, gone) {
		return false
	}
	n.volumes = slices.DeleteFunc(n.volumes, gone)
	p.settle(n)
	if len(n.volumes) == 0 {
		delete(p.nodes, nodeName)
	}
	return true
}

func (p *Pool) put(node Node, has held) (changed bool) {
	n := p.nodes[node.Name]
	if n == nil {
		n = &entry{}
		p.nodes[node.Name] = n
	}
	n.zone = node.Zone
	i := find(n.volumes, has.volume)
	if i < 0 {
		i, n.volumes = len(n.volumes), append(n.volumes, held{})
	}
	changed = n.volumes[i].address != has.address
	n.volumes[i] = has
	p.settle(n)
	return changed
}

// settle counts a node where its volumes are.
func (p *Pool) settle(n *entry) {
	p.count(n.address, -1)
	n.address = p.addressOf(n.volumes)
	p.count(n.address, 1)
}

// count adds nodes to an address and to its backend.
func (p *Pool) count(address string, delta int) {
	if address == "" {
		return
	}
	if p.counts[address] += delta; p.counts[address] == 0 {
		delete(p.counts, address)
	}
	if i, ok := p.leads[address]; ok {
		p.backends[i].nodes += delta
	}
}

// addressOf is the address by which a node counts. If its volumes name several, the address on a usable backend counts,
// then the one with the most volumes, then the lowest: whatever order the attachments came in.
func (p *Pool) addressOf(volumes []held) string {
	if !isSplit(volumes) {
		return first(volumes)
	}
	counts := map[string]int{}
	for _, h := range volumes {
		if counts[h.address]++; p.usable(h.address) {
			counts[h.address] += len(volumes)
		}
	}
	return slices.MinFunc(slices.Collect(maps.Keys(counts)), func(a, b string) int {
		return cmp.Or(cmp.Compare(counts[b], counts[a]), cmp.Compare(a, b))
	})
}

func isSplit(volumes []held) bool {
	return slices.ContainsFunc(volumes, func(h held) bool { return h.address != volumes[0].address })
}

func first(volumes []held) string {
	if len(volumes) == 0 {
		return ""
	}
	return volumes[0].address
}

func find(volumes []held, volume string) int {
	return slices.IndexFunc(volumes, func(h held) bool { return h.volume == volume })
}
