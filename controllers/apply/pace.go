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

// lastWrites are kept in memory: a new leader writes at once.
type lastWrites map[string]lastWrite

type lastWrite struct {
	head string
	at   time.Time
}

// mayWrite reports whether to write now: at once if the head has changed, else at intervals. Otherwise the next look is
// scheduled for the end of the interval.
func (r *Reconciler) mayWrite(what, head string, every time.Duration) bool {
	now := r.Clock.Now()
	last, written := r.lastWrites[what]
	if left := last.at.Add(every).Sub(now); written && last.head == head && left > 0 {
		r.wakeIn(left)
		return false
	}
	if r.lastWrites == nil {
		r.lastWrites = lastWrites{}
	}
	r.lastWrites[what] = lastWrite{head, now}
	return true
}
