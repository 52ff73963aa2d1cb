// Package rollout moves shared volumes onto the network that the settings
// choose. It gathers facts, asks settings.Next for the next step, does it, and
// tells in the record's status what it did or waits for. Package apply tells it
// in the settings.
//
// What disturbs anything is decided twice: on the cache, and when that calls
// for an action, on a live read. One write per step; each is safe to repeat, so
// a crash between any two resumes where it stopped.
package rollout
