// Package kit has what the controllers share: predicates and handlers of events, delays,
// reports that are made once, and notes that fit into an event.
package kit
