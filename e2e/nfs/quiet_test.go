package nfs

import (
	"testing"
	"time"
)

// quiet is how late a timer may be on a machine that has time for what runs on it.
const quiet = 100 * time.Millisecond

// lateness measures timers until the returned function is called, which returns the latest one. On a busy machine a late
// result says nothing about Fairlead.
func lateness(t *testing.T) func() time.Duration {
	stop, worst := make(chan struct{}), make(chan time.Duration, 1)
	go func() {
		var most time.Duration
		const pause = 20 * time.Millisecond
		for {
			due := time.Now().Add(pause)
			select {
			case <-stop:
				worst <- most
				return
			case <-time.After(pause): // the timer that is measured
				most = max(most, time.Since(due))
			}
		}
	}()
	t.Cleanup(func() {
		select {
		case <-stop:
		default:
			close(stop)
		}
	})
	return func() time.Duration {
		close(stop)
		return <-worst
	}
}
