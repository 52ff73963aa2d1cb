package assign

import (
	"cmp"
	"slices"
)

// settle stores a node, and counts it at the address that its volumes name. Where
// they name several, the address on a usable backend counts, then the one with the
// most volumes, then the lowest: whatever order the attachments came in.
func (p *Pool) settle(name string, n entry) {
	before := n.address
	n.address = -1
	delete(p.split, name)
	if len(n.volumes) > 0 {
		n.address = n.volumes[0].address
		if slices.ContainsFunc(n.volumes, func(h held) bool { return h.address != n.address }) {
			p.split[name] = struct{}{}
			n.address = p.preferred(n.volumes)
		}
	}
	if n.address != before {
		p.count(before, -1)
		p.count(n.address, 1)
	}
	if n.address < 0 {
		delete(p.nodes, name)
		return
	}
	p.nodes[name] = n
}

func (p *Pool) preferred(volumes []held) int32 {
	counts := map[int32]int{}
	for _, h := range volumes {
		counts[h.address]++
	}
	best := int32(-1)
	for address, count := range counts {
		if best < 0 || cmp.Or(
			compareBool(p.usable(address), p.usable(best)), cmp.Compare(count, counts[best]),
			cmp.Compare(p.addresses.list[best].text, p.addresses.list[address].text),
		) > 0 {
			best = address
		}
	}
	return best
}

func compareBool(a, b bool) int {
	switch {
	case a == b:
		return 0
	case a:
		return 1
	default:
		return -1
	}
}

func find(volumes []held, volume string) int {
	return slices.IndexFunc(volumes, func(h held) bool { return h.volume == volume })
}
