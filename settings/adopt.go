package settings

import "github.com/fairlead-io/fairlead/storage"

// Adopt returns the record to begin with in a cluster that has none: clients
// are what their template says. Servers are taken to be on the cluster network
// until every client is seen on the other, so that a wrong guess costs a moment
// and no mount.
func Adopt(d DaemonSet) Record {
	if !d.Found || d.Unreadable {
		return Record{}
	}
	return Record{Clients: d.Network, Servers: storage.Attachment{}, VolumeClients: d.VolumeNetworks}
}

// Observe returns the record that a cluster shows whose storage system rolls
// out by itself: servers may follow the clients once every client is there.
func Observe(r Rollout) Record {
	seen := Record{Clients: r.DaemonSet.Network, ServersSince: r.Now}
	r.Record = seen
	if r.DaemonSet.Found && r.DaemonSet.Observed && len(r.outdated()) == 0 && len(r.unready(seen.Clients)) == 0 {
		seen.Servers = seen.Clients
	}
	return seen
}
