package workloads

import (
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

const (
	// turn is how long after one pod of a controller the next is evicted.
	turn = 10 * time.Second
	// eventEvery is how often a controller gets an event about restarts of its pods.
	eventEvery = 10 * time.Minute
)

// turns prevent that all pods of one controller restart at once. They are in memory.
type turns struct {
	mu      sync.Mutex
	byOwner map[types.UID]lastTurn
}

type lastTurn struct{ evicted, reported time.Time }

// take returns how long the pod's controller has to wait for its turn; 0 takes the turn.
func (t *turns) take(owner types.UID, now time.Time) time.Duration {
	t.mu.Lock()
	defer t.mu.Unlock()
	for uid, last := range t.byOwner {
		if !now.Before(last.evicted.Add(turn)) && !now.Before(last.reported.Add(eventEvery)) {
			delete(t.byOwner, uid)
		}
	}
	last := t.byOwner[owner]
	if wait := last.evicted.Add(turn).Sub(now); wait > 0 {
		return wait
	}
	last.evicted = now
	t.byOwner[owner] = last
	return 0
}

// giveBack returns a turn without an eviction.
func (t *turns) giveBack(owner types.UID) {
	t.mu.Lock()
	defer t.mu.Unlock()
	last := t.byOwner[owner]
	last.evicted = time.Time{}
	t.byOwner[owner] = last
}

// mayReport reports whether an event is due for the controller, and records the event.
func (t *turns) mayReport(owner types.UID, now time.Time) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	last := t.byOwner[owner]
	if now.Before(last.reported.Add(eventEvery)) {
		return false
	}
	last.reported = now
	t.byOwner[owner] = last
	return true
}
