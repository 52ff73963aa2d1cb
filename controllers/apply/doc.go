// Package apply is the settings controller: it applies the settings of the danger zone to the
// storage system's components. It reports the progress of each setting, and what the setting
// waits for, in status, conditions, events and metrics.
//
// A reconcile gathers facts, makes the plan (plan.Make), reports, and does at most one piece of
// work. Work is decided on the cache, and again on a live read; each write has the state that was
// decided on as its precondition. A crash loses only how often a change was undone, and when
// reports were written.
//
// Package rollout rolls out the network of shared volumes; package apply reports it.
package apply
