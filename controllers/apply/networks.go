package apply

import (
	"context"
	"time"

	"github.com/fairlead-io/fairlead/internal/cluster"
	"github.com/fairlead-io/fairlead/internal/settings/plan"
	"github.com/fairlead-io/fairlead/internal/storage"
)

// networksKeptFor is how long a list of networks is used for reports.
const networksKeptFor = 10 * time.Second

// keptNetworks are the networks of the last list.
type keptNetworks struct {
	there map[storage.Network]bool
	at    time.Time
}

// addNetworks adds the existing networks. The list is live, since the kind may not be installed,
// and is kept for a while except for live decisions. If the list fails, only restarts on a
// network wait.
func (r *Reconciler) addNetworks(ctx context.Context, reader *cluster.Reader, facts *plan.Facts) {
	if reader == r.Cached && r.networks.there != nil && facts.Now.Sub(r.networks.at) < networksKeptFor {
		facts.Existing.Networks = r.networks.there
		return
	}
	if err := r.Live.AddNetworks(ctx, facts); err != nil {
		facts.Existing.NetworksUnlisted = err.Error()
		return
	}
	r.networks = keptNetworks{facts.Existing.Networks, facts.Now}
}
