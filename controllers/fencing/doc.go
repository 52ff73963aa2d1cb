// Package fencing is the controller of nodes that are lost with volumes. It keeps
// the record of each node (NodeFence): as whom storage systems know it while it is
// healthy, and how far fencing it is when it is lost. What becomes of a node is
// decided by package fence; this one gathers the facts, writes what was decided,
// and tells it.
//
// First recorded, then done: nothing is fenced or let in that the record does not
// say, so a crash at any step resumes. It is decided twice: on the cache, and, before
// anything but the ledger of a healthy node is written, on live reads. Each write
// carries what was decided upon as a precondition.
package fencing
