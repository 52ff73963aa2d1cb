// Package tainting marks lost nodes as out of service in an operator's place, where that is
// configured. taint.Rules decides; this package gathers the facts and writes the taint.
//
// The first look reads the cache, at every change of a node and at intervals while a node is not
// Ready. Only if it leads to a taint, a second look reads the API server: nodes, leases, records
// and the switch. The second look decides, and the taint is written only if the node is as it was
// read. Leases are not watched: each node renews its own every 10 s.
//
// Nothing else is written. The fencing controller records the taint by its value, and removes it
// (fence.Step.RemoveTaint).
//
// Rights: nodes get, list, watch, patch; nodefences get,
// list, watch; events create, patch; in kube-node-lease, leases get, list; in
// taint.SwitchNamespace, configmaps get.
package tainting
