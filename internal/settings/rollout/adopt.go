package rollout

import "github.com/fairlead-io/fairlead/internal/storage"

// Adopt returns the record to begin with in a cluster that has none: clients
// are what their template says, and servers follow as in Observe: a wrong guess
// costs a moment and no mount.
func Adopt(d DaemonSet, clients []storage.Client) Record {
	if !d.Found || d.Unreadable {
		return Record{}
	}
	record := Observe(Rollout{DaemonSet: d, Clients: clients})
	record.VolumeClients = d.VolumeNetworks
	return record
}

// Observe returns the record that a cluster shows whose storage system rolls
// out by itself: servers may follow the clients once every client is there.
func Observe(r Rollout) Record {
	seen := Record{Clients: r.DaemonSet.Network, ServersSince: r.Now}
	if r.DaemonSet.IsOn(r.Desired) { // of two networks on the template
		seen.Clients = r.Desired
	}
	r.Record = seen
	if r.DaemonSet.Found && r.DaemonSet.Observed && len(r.outdated()) == 0 && len(r.unready(seen.Clients)) == 0 {
		seen.Servers = seen.Clients
	}
	return seen
}
