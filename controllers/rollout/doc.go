// Package rollout is the settings controller for the network of shared
// volumes. It gathers facts, asks settings.Next for the next step, does it, and
// tells in status, conditions, annotations and events what it did or waits for.
//
// What disturbs anything is decided twice: on the cache, and when that calls
// for an action, on a live read. One write per step; each is safe to repeat, so
// a crash between any two resumes where it stopped.
package rollout
