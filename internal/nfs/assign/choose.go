package assign

import (
	"github.com/cespare/xxhash/v2"

	"github.com/fairlead-io/fairlead/internal/nfs"
)

// choose returns the address for a new node, "" if no backend takes one: the best
// backend of its zone while that stays within the limit, else the best of all;
// of the backend's addresses the one with the fewest nodes.
func (p *Pool) choose(node, zone string) string {
	hash := xxhash.Sum64String(node)
	var best, local *backend
	nodes, weights := 1, 0 // of the backends that take nodes, with the new node
	for i := range p.backends {
		b := &p.backends[i]
		if !b.Open() || len(b.addresses) == 0 {
			continue
		}
		nodes, weights = nodes+b.nodes, weights+int(b.Weight)
		if b.beats(best, hash) {
			best = b
		}
		if zone != "" && b.Zone == zone && b.beats(local, hash) {
			local = b
		}
	}
	if best == nil {
		return ""
	}
	if local != nil && local.Health == best.Health && local.nodes < limit(nodes, weights, int(local.Weight), p.slack) {
		best = local
	}
	return p.emptiest(best.addresses, hash)
}

// beats reports whether a backend is better for a new node: healthy ones first, then those not probed yet, then those
// that fail and are kept in use; then by nodes for the weight, the new one included. Ties are decided by a rendezvous
// hash: the same node finds the same backend in any process.
func (b *backend) beats(other *backend, hash uint64) bool {
	if other == nil {
		return true
	}
	if b.Health != other.Health {
		return rank(b.Health) < rank(other.Health)
	}
	if x, y := (b.nodes+1)*int(other.Weight), (other.nodes+1)*int(b.Weight); x != y {
		return x < y
	}
	return mix(hash^b.hash) > mix(hash^other.hash)
}

// emptiest is the address with the fewest nodes.
func (p *Pool) emptiest(addresses []string, hash uint64) string {
	tie := func(a string) uint64 { return mix(hash ^ xxhash.Sum64String(a)) }
	best := addresses[0]
	for _, a := range addresses[1:] {
		if n, least := p.counts[a], p.counts[best]; n < least || n == least && tie(a) > tie(best) {
			best = a
		}
	}
	return best
}

// limit is ⌈average × (1 + slack)⌉ for a backend of a weight.
func limit(nodes, weights, weight, slack int) int {
	if weights == 0 {
		return 0
	}
	whole := 100 * weights
	return (nodes*weight*(100+slack) + whole - 1) / whole
}

// usable reports whether a node can stay with the address: its backend is there and not down.
func (p *Pool) usable(address string) bool {
	i, ok := p.leads[address]
	return ok && p.backends[i].Health != nfs.Down
}

// rank orders the health of backends for new nodes; the lowest takes them.
func rank(h nfs.Health) int {
	return [...]int{nfs.Healthy: 0, nfs.Unknown: 1, nfs.Failing: 2, nfs.Down: 3}[h]
}

// mix spreads the bits of a hash (the finalizer of SplitMix64).
func mix(x uint64) uint64 {
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}
