package assign

import (
	"errors"
	"slices"

	"github.com/cespare/xxhash/v2"

	"github.com/fairlead-io/fairlead/internal/nfs"
)

// DefaultSlack is how many percent above the average a backend may be.
const DefaultSlack = 20

// ErrNoBackend is returned where no backend takes new nodes.
var ErrNoBackend = errors.New("the NFS service has no backend for a new node: all are down or draining, or there are none; add a backend, end a drain, or check the servers")

// Target is a backend with the addresses that lead to it: its own (PerNode), the
// ClusterIPs of its slots (PerNodeStable), or the service's one ClusterIP (Stable).
// The text of an address is what VolumeAttachments carry; no two targets share one.
type Target struct {
	nfs.Member
	Addresses []string
}

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
	slack     int64
	backends  []backend // sorted by address
	addresses addressTable
	zones     map[string]int32
	nodes     map[string]entry
	// split are nodes whose volumes have different addresses.
	split map[string]struct{}
}

// backend begins with what choose reads of each.
type backend struct {
	nodes, weight int64
	hash          uint64
	zone          int32 // -1: none
	rank          int32 // for new nodes: the lowest takes them; never takes none
	addresses     []int32
	nfs.Member
}

// entry is one node. It is kept by value in a map: 32 bytes, and 24 for each volume.
type entry struct {
	volumes []held
	address int32
	zone    int32
}

type held struct {
	volume  string
	address int32
	// written: the API has the address; else the write may have failed.
	written bool
}

// NewPool returns a pool without targets and nodes. slack is in percent; see DefaultSlack.
func NewPool(slack int) *Pool {
	return &Pool{
		slack: int64(max(slack, 0)), zones: map[string]int32{}, nodes: map[string]entry{}, split: map[string]struct{}{},
		addresses: addressTable{index: map[string]int32{}},
	}
}

// SetSlack changes the slack, in percent. It counts for the next node.
func (p *Pool) SetSlack(slack int) { p.slack = int64(max(slack, 0)) }

// SetTargets replaces the targets. Nodes keep their addresses: an address that
// leads to another backend now takes its nodes along, and nodes whose address
// leads nowhere are orphans until Plan moves them or the backend returns.
// It takes time proportional to the number of targets.
func (p *Pool) SetTargets(targets []Target) {
	targets = slices.SortedFunc(slices.Values(targets), func(a, b Target) int { return a.Addr.Compare(b.Addr) })
	p.backends = make([]backend, len(targets))
	p.addresses.unlink()
	for i, t := range targets {
		b := &p.backends[i]
		b.Member = t.Member
		b.Weight = min(max(b.Weight, 1), nfs.MaxWeight)
		b.hash = xxhash.Sum64String(t.Addr.String())
		b.zone = p.zoneIndex(t.Zone)
		for _, text := range t.Addresses {
			a := p.addresses.of(text)
			if p.addresses.list[a].backend >= 0 {
				continue
			}
			p.addresses.list[a].backend = int32(i)
			b.addresses = append(b.addresses, a)
			b.nodes += int64(p.addresses.list[a].nodes)
		}
		b.weight, b.rank = int64(b.Weight), never
		if b.Open() && len(b.addresses) > 0 {
			b.rank = rank(b.Health)
		}
	}
	p.addresses.sweep()
	for name := range p.split {
		p.settle(name, p.nodes[name])
	}
}

// Attach returns the address for a volume on a node, and records it. The node
// keeps the address that it has, also where its backend drains. It gets another
// where its backend is down or gone: volumes that it has attached keep theirs, as
// they are mounted. A volume that is attached already keeps its address, once Record
// has seen it: an address that was not written is mounted nowhere.
func (p *Pool) Attach(n Node, volume string) (string, error) {
	at, ok := p.nodes[n.Name]
	if i := find(at.volumes, volume); i >= 0 && (at.volumes[i].written || p.usable(at.volumes[i].address)) {
		return p.addresses.list[at.volumes[i].address].text, nil
	}
	address := at.address
	if !ok || !p.usable(address) {
		if address = p.first(n); address < 0 {
			return "", ErrNoBackend
		}
	}
	if !ok {
		at.address = -1
	}
	p.put(n, at, held{volume, address, false})
	return p.addresses.list[address].text, nil
}

// first is the address for a node that has none, -1 if no backend takes it.
func (p *Pool) first(n Node) int32 {
	if a, ok := p.addresses.index[n.Prefers]; ok && n.Prefers != "" && p.usable(a) {
		return a
	}
	return p.choose(xxhash.Sum64String(n.Name), p.zoneIndex(n.Zone))
}

// Record takes over an attachment as the API has it, whatever Attach returned.
// Another leader may have written it. It does nothing if the pool has it already,
// or if the attachment has no address yet.
func (p *Pool) Record(a Attachment) {
	if a.Address == "" {
		return
	}
	at, ok := p.nodes[a.Node.Name]
	if !ok {
		at.address = -1
	}
	p.put(a.Node, at, held{a.Volume, p.addresses.of(a.Address), true})
}

// Rebuild replaces all nodes by those of the attachments, whose order does not matter.
func (p *Pool) Rebuild(attachments []Attachment) {
	p.nodes, p.split = make(map[string]entry, len(attachments)), map[string]struct{}{}
	p.addresses.clear()
	for i := range p.backends {
		p.backends[i].nodes = 0
	}
	for _, a := range attachments {
		p.Record(a)
	}
	p.addresses.sweep()
}

// Detach removes a volume from a node. With its last volume the node leaves the pool.
func (p *Pool) Detach(nodeName, volume string) {
	n, ok := p.nodes[nodeName]
	i := find(n.volumes, volume)
	if !ok || i < 0 {
		return
	}
	p.addresses.list[n.volumes[i].address].held--
	n.volumes = slices.Delete(n.volumes, i, i+1)
	p.settle(nodeName, n)
}

// DetachAll removes a node with all its volumes.
func (p *Pool) DetachAll(nodeName string) {
	n, ok := p.nodes[nodeName]
	if !ok {
		return
	}
	for _, h := range n.volumes {
		p.addresses.list[h.address].held--
	}
	n.volumes = nil
	p.settle(nodeName, n)
}

func (p *Pool) put(n Node, at entry, has held) {
	at.zone = p.zoneIndex(n.Zone)
	p.addresses.list[has.address].held++
	if i := find(at.volumes, has.volume); i >= 0 {
		p.addresses.list[at.volumes[i].address].held--
		at.volumes[i] = has
	} else {
		at.volumes = append(at.volumes, has)
	}
	p.settle(n.Name, at)
}
