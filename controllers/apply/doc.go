// Package apply is the settings controller: it brings the settings of the danger
// zone to the storage system's components, and reports in status, conditions,
// events and metrics how far each is and what it waits for.
//
// It gathers facts, makes the plan (settings.Make), reports, and does at most one
// piece of work of it. Work is decided twice: on the cache, and then on a
// live read; the write carries what was decided upon as a precondition. Nothing
// is remembered that a crash could lose, but how often somebody else undid it,
// and when what was last told.
//
// The network of shared volumes is rolled out by package rollout; this one reports it.
package apply
