// Package fencing is the controller of nodes that are lost with volumes. It keeps a record of
// each boot (NodeFence): the node's addresses as storage clients while the node is healthy, and
// the fences that were requested when the node is lost. Package fence decides; this package gathers
// the facts, writes the decision and reports it.
//
// Every action is recorded before it is done, so a crash at any step resumes. What a working node
// has is recorded from the cache. All else is decided on live reads: of the node by itself, and of
// what nodes share at once for all that ask meanwhile. Each write has the state that was decided on
// as its precondition.
package fencing
