package cluster

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/fairlead-io/fairlead/internal/storage"
)

// Contested is an object that requests an identity of another volume.
type Contested struct {
	storage.Asker
	Problem string
}

// contest drops identities that another volume has, and reports them as problems: the volume stays on its
// network with another address. The webhook refuses duplicates, but two may be admitted at the same moment,
// or while no webhook answers.
func (r *Reader) contest(ctx context.Context, all *Requests) error {
	fixed := func(requests map[string]storage.Request) []string {
		keys := slices.DeleteFunc(slices.Collect(maps.Keys(requests)), func(k string) bool { return requests[k].Identity.IsZero() })
		slices.Sort(keys)
		return keys
	}
	volumes, claims := fixed(all.ByVolume), fixed(all.Unbound)
	if len(volumes)+len(claims) == 0 {
		return nil
	}
	record, err := r.Record(ctx)
	if IgnoreNoRecord(err) != nil {
		return err
	}
	services, err := r.Services(ctx)
	if err != nil {
		return err
	}
	var claimants []storage.Claimant
	claim := func(key, who string, q storage.Request) {
		network := q.Network
		if network.IsZero() {
			network = record.Servers.Network
		}
		claimants = append(claimants, storage.Claimant{Volume: key, Who: who, Network: network, Identity: q.Identity, Since: q.Asker.Since})
	}
	for _, v := range volumes {
		claim(v, fmt.Sprintf("volume %s (%s)", v, all.ByVolume[v].Asker), all.ByVolume[v])
	}
	for _, c := range claims {
		claim(c, all.Unbound[c].Asker.String(), all.Unbound[c])
	}
	for i, problem := range storage.Contest(append(claimants, holders(services)...)) {
		if i >= len(claimants) || problem == "" {
			continue
		}
		requests := all.ByVolume
		if i >= len(volumes) {
			requests = all.Unbound
		}
		q := requests[claimants[i].Volume]
		q.Identity, q.Problem = storage.Identity{}, fmt.Sprintf("%s: %s", q.Asker, problem)
		requests[claimants[i].Volume] = q
		all.Contested = append(all.Contested, Contested{q.Asker, problem})
	}
	return nil
}

// holders returns a claimant for each Service with a recorded identity.
func holders(services []storage.Service) []storage.Claimant {
	var claimants []storage.Claimant
	for _, s := range services {
		if s.Recorded.IsZero() || s.Identity.IsZero() {
			continue
		}
		claimants = append(claimants, storage.Claimant{
			Volume: s.Volume, Who: fmt.Sprintf("volume %s (Service %s)", s.Volume, s.Name),
			Network: s.Recorded.Network, Identity: s.Identity, Holds: true, Since: s.Created,
		})
	}
	return claimants
}

// dropContested drops the Service's identity if an older Service has it: no server
// pod may start with the same identity.
func (r *Reader) dropContested(ctx context.Context, service *storage.Service) error {
	if service.Identity.IsZero() {
		return nil
	}
	services, err := r.Services(ctx)
	if err != nil {
		return err
	}
	claimants := holders(services)
	problems := storage.Contest(claimants)
	for i, c := range claimants {
		if c.Volume == service.Volume && problems[i] != "" {
			service.Identity = storage.Identity{}
		}
	}
	return nil
}
