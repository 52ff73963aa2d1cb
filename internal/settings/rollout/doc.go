// Package rollout decides the next step of bringing clients and servers of RWX volumes onto
// another network: clients first when the network is enabled, servers first when it is disabled.
//
// The record (NetworkRollout) has the network that clients (CSI plugin pods) are
// built with, and the network that new servers (share-manager pods and their Services) are built
// with. A client on the network reaches a server on the cluster network, but not the reverse. So a
// server is on a network only while every client that may mount it is.
//
// [Next] is the whole state machine: facts in, at most one step out. The first state that holds
// decides:
//
//   - Servers are on a network that is not the clients', or that a client or the template lacks
//     (another writer replaced it): record servers on the cluster network, until every client is back.
//   - Clients are not recorded where the settings want them: the change, below.
//   - The template or pods are not where clients are recorded: update the template; restart pods on
//     nodes without attached RWX volumes, in a maintenance window; restore the update strategy.
//   - All clients are there, servers are not: record servers.
//   - The Service of a detached volume is not where it would be created now: recreate it.
//
// # The change
//
// The gate of a change is open if the DaemonSet can be changed, the new network exists, and no RWX
// volume is attached (not asked with networks.gate: node). Again the first state that holds decides:
//
//   - Clients can give the network up (isAbandoned): record clients on the cluster network.
//   - Servers are on a network, and the gate is open or no network is wanted: record servers on the
//     cluster network.
//   - The gate is open (leave): wait for admissions to settle, recreate Services of detached
//     volumes, wait while a server pod or a Service is left on the network, record clients.
//   - The gate is closed, or leave waits (whileWaiting): restart clients on free nodes for other
//     settings; if a network is still wanted, record servers on the network that every client is
//     on; recreate Services of detached volumes.
//
// While a change waits, Longhorn builds from the new values. The webhooks bring what it creates to
// the record (docs/decisions/0007-created-objects-follow-the-record.md).
//
// # Per-volume networks
//
// The record also lists the per-volume networks that clients are built with, and those of them that
// servers may be on. They follow in the same order, once the default network is settled; only the
// first step here comes before everything else:
//
//   - Servers may be on a network that nothing asks for any more, or that a client or the template
//     lacks: remove the network from the servers' list.
//   - Every client reports a network that is asked for: add it to the servers' list.
//   - The Service of a detached volume is not where [Record.Place] says: recreate it.
//   - A network is asked for and exists, or is no longer asked for, nothing is on it and admissions
//     have settled: record the clients' list.
//   - The template or pods lack a network of the clients' list: template, pods on free nodes, and
//     strategy, as above.
//
// # One volume
//
// For one volume, everything derives from its Service. The annotation fairlead.io/network records
// the network when the Service is created, with fixed addresses beside it. Server pod, endpoint URL
// and slices follow; a setting that changes in between changes nothing for that volume.
package rollout
