package apply

import (
	"context"
	"time"

	"github.com/fairlead-io/fairlead/internal/cluster"
	"github.com/fairlead-io/fairlead/internal/settings/plan"

	"github.com/fairlead-io/fairlead/internal/storage"
)

// networksKeptFor is how long a list of networks does for what is only told.
const networksKeptFor = 10 * time.Second

// keptNetworks are those that were last listed.
type keptNetworks struct {
	there map[storage.Network]bool
	at    time.Time
}

// addNetworks adds which networks there are. They are listed live, since their kind may
// not be installed. A change may wait for days: the list is kept for a while, except
// where something is decided on what the live reader sees. If they can't be listed, what
// restarts on a network waits, and nothing else.
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
