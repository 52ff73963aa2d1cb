package publish

import (
	"cmp"
	"net/netip"

	"github.com/cespare/xxhash/v2"

	"github.com/fairlead-io/fairlead/internal/nfs"
)

// ChooseStable returns the backend for a service's one address. A change breaks all clients' connections, so current stays
// unless the address moves
//
//   - from a missing, Down or Failing backend to a healthy one. Failing counts, although the guard keeps such backends in
//     use elsewhere: one server has all clients in any case, so the move overloads no other server;
//   - from a draining backend to a healthy one that does not drain.
//
// If no backend is fit, current stays: it works again as soon as its server does. A Down backend is never newly chosen.
// The service's name spreads services over the same backends. family limits the addresses to those that the ClusterIP can
// reach; empty: any. The result is not valid if nothing should be published.
func ChooseStable(service string, family Family, current netip.AddrPort, members []nfs.Backend) netip.AddrPort {
	var now, best *nfs.Backend
	hash := xxhash.Sum64String(service)
	for i := range members {
		m := &members[i]
		if family != "" && FamilyOf(m.Addr.Addr()) != family {
			continue
		}
		if m.Addr == current {
			now = m
		}
		if best == nil || cmp.Or(
			cmp.Compare(fitness(*m), fitness(*best)), cmp.Compare(affinity(hash, *best), affinity(hash, *m)), m.Addr.Compare(best.Addr),
		) < 0 {
			best = m
		}
	}
	switch {
	case best == nil, now == nil && best.Health == nfs.Down:
		return netip.AddrPort{}
	case now == nil, moves(*now, *best):
		return best.Addr
	}
	return current
}

// moves reports whether a move from now to best is worth a reconnect of all clients.
func moves(now, best nfs.Backend) bool {
	switch {
	case best.Health == nfs.Healthy && (now.Health == nfs.Down || now.Health == nfs.Failing):
		return true // also to one that drains, which still serves
	case now.Health == nfs.Down:
		return best.Health != nfs.Down
	default:
		return now.Drain && !best.Drain && best.Health == nfs.Healthy
	}
}

// fitness orders backends: healthy, not probed, failing, down. Among equals, draining backends come last.
func fitness(m nfs.Backend) int {
	order := map[nfs.Health]int{nfs.Healthy: 0, nfs.Unknown: 2, nfs.Failing: 4, nfs.Down: 6}[m.Health]
	if m.Drain {
		order++
	}
	return order
}

// affinity is a rendezvous hash of the service and the backend.
func affinity(service uint64, m nfs.Backend) uint64 {
	x := service ^ xxhash.Sum64String(m.Addr.String())
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	return x ^ x>>27
}
