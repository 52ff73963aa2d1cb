package plan

import (
	"fmt"
	"maps"
	"net/netip"
	"slices"

	"github.com/fairlead-io/fairlead/internal/nfs"
)

// notes explain how to change backends that spec.backends does not list.
func (s *State) notes(c nfs.Change) []string {
	notes := []string{}
	listed := map[netip.AddrPort]bool{}
	for _, b := range s.Service.Backends {
		listed[b.Addr] = true
	}
	discovered := func(text string) (nfs.Backend, bool) {
		addr, err := nfs.ParseEndpoint(text, s.Service.Port)
		i := slices.IndexFunc(s.members, func(m nfs.Backend) bool { return m.Addr == addr })
		if err != nil || i < 0 || listed[addr] || s.members[i].Source == nfs.Static {
			return nfs.Backend{}, false
		}
		return s.members[i], true
	}
	for _, text := range c.Remove {
		if m, ok := discovered(text); ok {
			notes = append(notes, fmt.Sprintf("backend %s comes from source %s, not from spec.backends: it goes when that has it no more (Service %s)", m.Addr, m.Source, s.Service.ServerService))
		}
	}
	for _, text := range slices.Concat(c.Drain, slices.Sorted(maps.Keys(c.Weights))) {
		if m, ok := discovered(text); ok {
			notes = append(notes, fmt.Sprintf("backend %s comes from source %s: list it in spec.backends too, with its weight or drain: true", m.Addr, m.Source))
		}
	}
	return notes
}
