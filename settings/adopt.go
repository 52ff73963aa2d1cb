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
	return Record{Clients: d.Network, Servers: storage.Attachment{}}
}
