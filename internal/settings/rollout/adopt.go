package rollout

import "github.com/fairlead-io/fairlead/internal/storage"

// Adopt returns the first record of a cluster. Clients are on the networks of their template, and
// servers follow as in Observe. A wrong guess delays servers, but harms no mount.
func Adopt(d DaemonSet, clients []storage.Client) Record {
	if !d.Found || d.Unreadable {
		return Record{}
	}
	record := Observe(Rollout{DaemonSet: d, Clients: clients})
	record.VolumeClients = d.VolumeNetworks
	return record
}

// Observe returns the record of a cluster whose storage system rolls out by itself: servers may follow
// once every client is on the network.
func Observe(r Rollout) Record {
	seen := Record{Clients: r.DaemonSet.Network, ServersSince: r.Now}
	if r.DaemonSet.IsOn(r.Desired) { // the template may have two networks
		seen.Clients = r.Desired
	}
	r.Record = seen
	if r.DaemonSet.Found && r.DaemonSet.Observed && len(r.outdated()) == 0 && len(r.unready(seen.Clients)) == 0 {
		seen.Servers = seen.Clients
	}
	return seen
}
