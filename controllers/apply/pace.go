package apply

import "time"

// What a setting waits for changes with every volume that is attached or
// detached. Within one phase it is told every so often, the last state at last;
// a phase is told as it begins.
const (
	// tellEvery is for events, and for a write to the storage system's own settings that
	// was refused: each wakes every manager of it.
	tellEvery = 30 * time.Second
	// statusEvery is for the status of Fairlead's own.
	statusEvery = 2 * time.Second
)

// paces are when what was last written, in memory: a new leader writes at once.
type paces map[string]pace

type pace struct {
	head string
	at   time.Time
}

// due tells whether something is to be written now: at once where its head is
// another than at the last time, else when that is long enough ago. If not, it
// is looked at again then.
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
