// Package fencing is the controller of nodes that are lost with volumes. It keeps a record of
// each node (NodeFence): the node's addresses as storage clients while the node is healthy, and
// the progress of its fence when the node is lost. Package fence decides; this package gathers
// the facts, writes the decision and reports it.
//
// Every action is recorded before it is done, so a crash at any step resumes. The ledger of a
// healthy node is kept by the cache. All else is decided on live reads, in rounds over all nodes
// in an incident. Each write has the state that was decided on as its precondition.
package fencing
