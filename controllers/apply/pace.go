package apply

import "time"

// What a setting waits for changes with every attachment. A new phase is reported at once; changes
// within a phase are reported at intervals.
const (
	// eventEvery is for events, and for refused writes to the storage system's own settings:
	// each write wakes every manager.
	eventEvery = 30 * time.Second
	// statusEvery is for the status of Fairlead's own settings.
	statusEvery = 2 * time.Second
)

// paces keeps the last writes in memory: a new leader writes at once.
type paces map[string]pace

type pace struct {
	head string
	at   time.Time
}

// due reports whether a write is due: at once if its head has changed, else at intervals. If the
// write is not due, a look is scheduled for when it is.
func (r *Reconciler) due(what, head string, every time.Duration) bool {
	now := r.Clock.Now()
	last, written := r.paces[what]
	if left := last.at.Add(every).Sub(now); written && last.head == head && left > 0 {
		r.wakeIn(left)
		return false
	}
	if r.paces == nil {
		r.paces = paces{}
	}
	r.paces[what] = pace{head, now}
	return true
}
