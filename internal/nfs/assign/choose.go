package assign

// choose returns the address for a new node, -1 if no backend takes one: the best
// backend of its zone while that stays within the limit, else the best of all;
// of the backend's addresses the one with the fewest nodes.
func (p *Pool) choose(hash uint64, zone int32) int32 {
	b := p.all.pick(hash)
	if b < 0 {
		return -1
	}
	if zone >= 0 && int(zone) < len(p.byZone) && p.byZone[zone] != nil && p.backends[b].zone != zone {
		local := p.byZone[zone].pick(hash)
		if local >= 0 && rank(p.backends[local].Health) == rank(p.backends[b].Health) && p.withinSlack(local) {
			b = local
		}
	}
	best := int32(-1)
	for _, a := range p.backends[b].addresses {
		if best < 0 || p.addresses.list[a].nodes < p.addresses.list[best].nodes ||
			p.addresses.list[a].nodes == p.addresses.list[best].nodes && mix(hash^p.addresses.list[a].hash) > mix(hash^p.addresses.list[best].hash) {
			best = a
		}
	}
	return best
}

// withinSlack reports whether one more node leaves the backend at most the slack
// above the average. While planning, the tree holds only backends below their limit.
func (p *Pool) withinSlack(b int32) bool {
	return p.limits != nil || p.backends[b].nodes < limit(p.openNodes+1, p.openWeight, int64(p.backends[b].Weight), p.slack)
}

// limit is ⌈average × (1 + slack)⌉ for a backend of a weight.
func limit(nodes, weights, weight, slack int64) int64 {
	if weights == 0 {
		return 0
	}
	whole := 100 * weights
	return (nodes*weight*(100+slack) + whole - 1) / whole
}

// takes reports whether a new node may go to the backend.
func (p *Pool) takes(b int32) bool {
	x := &p.backends[b]
	return x.Open() && len(x.addresses) > 0 && (p.limits == nil || x.nodes < p.limits[b])
}

// usable reports whether a node can stay with the address: its backend is there and not down.
func (p *Pool) usable(address int32) bool {
	if address < 0 {
		return false
	}
	b := p.addresses.list[address].backend
	return b >= 0 && rank(p.backends[b].Health) < 3
}

// count adds nodes to an address and to its backend.
func (p *Pool) count(address, delta int32) {
	if address < 0 {
		return
	}
	a := &p.addresses.list[address]
	a.nodes += delta
	if a.backend < 0 {
		return
	}
	b := &p.backends[a.backend]
	b.nodes += int64(delta)
	if p.bulk {
		return
	}
	if b.Open() {
		p.openNodes += int64(delta)
	}
	if b.zone >= 0 {
		p.byZone[b.zone].update(p, b.leaf)
	}
	p.all.update(p, a.backend)
}

// build recomputes the sums and the trees.
func (p *Pool) build() {
	p.openNodes, p.openWeight = 0, 0
	all := make([]int32, len(p.backends))
	zones := make([][]int32, len(p.zones))
	for i := range p.backends {
		b := &p.backends[i]
		all[i] = int32(i)
		if b.Open() {
			p.openNodes += b.nodes
			p.openWeight += int64(b.Weight)
		}
		if b.zone >= 0 {
			b.leaf = int32(len(zones[b.zone]))
			zones[b.zone] = append(zones[b.zone], int32(i))
		}
	}
	p.all = newTree(p, all)
	p.byZone = make([]*tree, len(zones))
	for z, leaves := range zones {
		if len(leaves) > 0 {
			p.byZone[z] = newTree(p, leaves)
		}
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
