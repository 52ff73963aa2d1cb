package nfs

import (
	"fmt"
	"maps"
	"net/netip"
	"slices"

	"github.com/fairlead-io/fairlead/api/v1alpha1"
)

// Change is a planned change of backends: which to add, drain, remove, or give another weight. The command line and tests
// use it.
type Change struct {
	Add           []v1alpha1.NFSBackend
	Drain, Remove []string
	// Weights by address, with or without a port.
	Weights map[string]int32
}

// Apply returns the members after the change, sorted by address. New members count as healthy, as after their first probe.
// port is the service's, for addresses without a port. Wrong entries are left out, and all problems are returned, with
// paths such as remove[1].
func (c Change) Apply(members []Backend, port uint16) ([]Backend, Problems) {
	after := map[netip.AddrPort]Backend{}
	for _, m := range members {
		after[m.Addr] = m
	}
	added, problems := ParseBackends("add", c.Add, int32(port))
	for _, b := range added {
		if _, ok := after[b.Addr]; ok {
			problems.Add("add", "the service has backend %s already: change its weight, or remove it from the list", b.Addr)
			continue
		}
		b.Health = Healthy
		after[b.Addr] = b
	}
	change := func(field, text string, apply func(Backend)) {
		addr, err := ParseEndpoint(text, port)
		if err != nil {
			problems.Add(field, "%s", err)
		} else if m, ok := after[addr]; !ok {
			problems.Add(field, "the service has no backend %s: write the address of one that it has", addr)
		} else {
			apply(m)
		}
	}
	for i, text := range c.Drain {
		change(Index("drain", i), text, func(m Backend) { m.Drain = true; after[m.Addr] = m })
	}
	for _, text := range slices.Sorted(maps.Keys(c.Weights)) {
		field, weight := fmt.Sprintf("weight[%s]", text), c.Weights[text]
		if weight < 1 || weight > MaxWeight {
			problems.Add(field, "%d is out of range: write 1 to %d", weight, MaxWeight)
			continue
		}
		change(field, text, func(m Backend) { m.Weight = weight; after[m.Addr] = m })
	}
	for i, text := range c.Remove {
		change(Index("remove", i), text, func(m Backend) { delete(after, m.Addr) })
	}
	return slices.SortedFunc(maps.Values(after), func(a, b Backend) int { return a.Addr.Compare(b.Addr) }), problems
}
