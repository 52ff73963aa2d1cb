package assign

import "github.com/fairlead-io/fairlead/internal/nfs"

// choose returns the address for a new node, -1 if no backend takes one: the best
// backend of its zone while that stays within the limit, else the best of all;
// of the backend's addresses the one with the fewest nodes.
func (p *Pool) choose(hash uint64, zone int32) int32 {
	var best, local candidate
	nodes, weights := int64(1), int64(0) // of the backends that take nodes, with the new node
	for i := range p.backends {
		b := &p.backends[i]
		if b.rank == never {
			continue
		}
		nodes, weights = nodes+b.nodes, weights+b.weight
		c := candidate{b, mix(hash ^ b.hash)}
		if c.beats(best) {
			best = c
		}
		if zone >= 0 && b.zone == zone && c.beats(local) {
			local = c
		}
	}
	if best.backend == nil {
		return -1
	}
	if local.backend != nil && local.rank == best.rank && local.nodes < limit(nodes, weights, local.weight, p.slack) {
		best = local
	}
	return p.emptiest(best.addresses, hash)
}

// candidate for a new node. Its tie is a rendezvous hash: the same node finds the same backend in any process.
type candidate struct {
	*backend
	tie uint64
}

// beats reports whether a backend is better than another: healthy ones first, then those not probed yet, then those
// that fail and are kept in use; then by nodes for the weight, the new one included; then by their ties.
func (c candidate) beats(other candidate) bool {
	if other.backend == nil {
		return true
	}
	if c.rank != other.rank {
		return c.rank < other.rank
	}
	if x, y := (c.nodes+1)*other.weight, (other.nodes+1)*c.weight; x != y {
		return x < y
	}
	return c.tie > other.tie
}

// emptiest is the address with the fewest nodes.
func (p *Pool) emptiest(addresses []int32, hash uint64) int32 {
	best := addresses[0]
	for _, i := range addresses[1:] {
		a, b := &p.addresses.list[i], &p.addresses.list[best]
		if a.nodes < b.nodes || a.nodes == b.nodes && mix(hash^a.hash) > mix(hash^b.hash) {
			best = i
		}
	}
	return best
}

// limit is ⌈average × (1 + slack)⌉ for a backend of a weight.
func limit(nodes, weights, weight, slack int64) int64 {
	if weights == 0 {
		return 0
	}
	whole := 100 * weights
	return (nodes*weight*(100+slack) + whole - 1) / whole
}

// usable reports whether a node can stay with the address: its backend is there and not down.
func (p *Pool) usable(address int32) bool {
	if address < 0 {
		return false
	}
	b := p.addresses.list[address].backend
	return b >= 0 && p.backends[b].Health != nfs.Down
}

// count adds nodes to an address and to its backend.
func (p *Pool) count(address, delta int32) {
	if address < 0 {
		return
	}
	a := &p.addresses.list[address]
	a.nodes += delta
	if a.backend >= 0 {
		p.backends[a.backend].nodes += int64(delta)
	}
}

// zoneIndex gives each zone a number; -1 is no zone.
func (p *Pool) zoneIndex(zone string) int32 {
	if zone == "" {
		return -1
	}
	i, ok := p.zones[zone]
	if !ok {
		i = int32(len(p.zones))
		p.zones[zone] = i
	}
	return i
}

// never is the rank of a backend that takes no nodes.
const never = 3

// rank orders backends for new nodes; the lowest takes them.
func rank(h nfs.Health) int32 {
	switch h {
	case nfs.Healthy:
		return 0
	case nfs.Unknown:
		return 1
	case nfs.Failing:
		return 2
	default:
		return never
	}
}

// mix spreads the bits of a hash (the finalizer of SplitMix64).
func mix(x uint64) uint64 {
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}
