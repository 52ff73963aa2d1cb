// Package apply is the settings controller of one profile: it applies the settings of the danger zone to the
// storage system's components, and rolls out the network of shared volumes. It reports the progress of each
// setting, and what the setting waits for, in status, conditions, events and metrics.
//
// A reconcile gathers one snapshot (cluster.Reader.Facts), makes the plan (plan.Make), reports, and takes at most
// one step of the network and one on a component. A step is decided on the cache, and again on a live snapshot; each write has the state that was decided
// on as its precondition. A crash loses only what is kept in memory: how often a change was undone or refused, and
// when reports were written.
//
// The step of the network is plan.Plan.Network, the next work on a component plan.Plan.Next. The networks of
// clients and servers are kept in the NetworkRollout, the record, which is also a Service's memory while it is replaced.
package apply
