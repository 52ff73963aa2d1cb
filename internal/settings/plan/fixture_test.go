package plan

import (
	"time"

	"github.com/fairlead-io/fairlead/internal/settings/rollout"
	"github.com/fairlead-io/fairlead/internal/storage"
)

var midday = time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)

// settled is a cluster of two nodes whose clients and servers are on the network.
func settled(on storage.Attachment) rollout.Rollout {
	r := rollout.Rollout{
		Desired: on, Record: rollout.Record{Clients: on, Servers: on, ServersSince: midday.Add(-time.Hour)}, Now: midday, Policy: rollout.Policy{Settle: time.Minute},
		DaemonSet: rollout.DaemonSet{Name: "csi", Found: true, Network: on, Observed: true, Revision: "7", Wanted: 2, MaxUnavailable: 1},
	}
	for _, node := range []string{"node-1", "node-2"} {
		r.Clients = append(r.Clients, storage.Client{Pod: "csi-" + node, UID: "uid-" + node, Node: node, Network: on, Revision: "7", Ready: true, Reported: !on.IsZero()})
	}
	return r
}
