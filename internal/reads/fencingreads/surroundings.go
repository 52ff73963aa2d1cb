package fencingreads

import (
	"context"
	"net/netip"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/fairlead-io/fairlead/api/v1alpha1"
	"github.com/fairlead-io/fairlead/internal/fence"
)

// surroundings are what a fence of a healthy node could hurt, and whether csi-addons' manager runs. All nodes share one reading of
// the caches, so a record is up to a minute behind a drill.
type surroundings struct {
	mu     sync.Mutex
	read   time.Time
	others *snapshot
	// shared addresses are of more than one machine, or of a server.
	shared map[netip.Addr]bool
	silent string
}

// readEvery is how old surroundings get.
const readEvery = time.Minute

// addSurroundings adds them to the facts of a healthy node, if they matter to it.
func (r *FenceReader) addSurroundings(ctx context.Context, f *fence.Facts) error {
	s := r.surroundings
	if s == nil {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if age := f.Now.Sub(s.read); s.others == nil || age < 0 || age > readEvery {
		if err := s.gather(ctx, r, f.Now); err != nil {
			return err
		}
	}
	f.SilentManager = s.silent
	for _, i := range f.Ledger {
		for _, a := range i.Addresses {
			if p, err := fence.ParseClientCIDR(a.CIDR); err == nil && s.shared[p.Addr()] {
				f.Servers, f.Machines = s.others.servers, s.others.machines
				return nil
			}
		}
	}
	return nil
}

func (s *surroundings) gather(ctx context.Context, r *FenceReader, now time.Time) error {
	nodes, err := readAll(ctx, r.objects, &corev1.NodeList{})
	if err != nil {
		return err
	}
	records, err := readAll(ctx, r.objects, &v1alpha1.NodeFenceList{})
	if err != nil {
		return err
	}
	var present []fence.Node
	for i := range nodes.Items {
		present = append(present, FenceNode(&nodes.Items[i]))
	}
	var recorded []fence.Record
	for i := range records.Items {
		recorded = append(recorded, FenceRecord(&records.Items[i]))
	}
	others := &snapshot{machines: fence.Machines(fence.ByName(present, recorded))}
	if err := r.addPods(ctx, others, r.objects); err != nil {
		return err
	}
	s.others, s.read, s.silent = others, now, r.silentManager(ctx, now)
	s.shared = map[netip.Addr]bool{}
	seen := map[netip.Addr]bool{}
	for _, m := range others.machines {
		own := slices.Concat(m.Node.Addresses, m.ClientAddresses)
		for _, i := range m.Spec.Identities {
			for _, a := range i.Addresses {
				if p, err := fence.ParseClientCIDR(a.CIDR); err == nil {
					own = append(own, p.Addr())
				}
			}
		}
		slices.SortFunc(own, netip.Addr.Compare)
		for _, a := range slices.Compact(own) {
			s.shared[a], seen[a] = seen[a], true
		}
	}
	for _, server := range others.servers {
		for _, a := range server.Addresses {
			s.shared[a] = true
		}
	}
	return nil
}
