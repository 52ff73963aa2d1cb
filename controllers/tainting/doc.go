// Package tainting says of a lost node that it is out of service, in an operator's
// place, where that is asked for. Which node is, and when, is taint.Rules's
// decision; this package gathers what it goes by, twice, and writes the taint.
//
// The first look is at the cache, at every change of a node and from time to time
// while one is not Ready. Only if it would come to a taint is there a second look,
// at the API server itself: nodes, their leases and records, and the switch. A taint
// follows from the second look alone, and is written only if the node is still as it
// was read. Leases are not watched: each node renews its own every 10 s, and nobody
// asks for them while all is well.
//
// Nothing else is written. The fencing controller records the taint by its value, and
// takes it away again (fence.Step.RemoveTaint).
//
// What it needs of the API server: nodes get, list, watch, patch; nodefences get,
// list, watch; events create, patch; in kube-node-lease, leases get, list; in
// taint.SwitchNamespace, configmaps get.
package tainting
