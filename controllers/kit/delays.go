package kit

import "time"

// Earliest is the shortest of some delays. As in a reconcile.Result, 0 is no delay but none at all.
func Earliest(delays ...time.Duration) time.Duration {
	var earliest time.Duration
	for _, d := range delays {
		if d > 0 && (earliest == 0 || d < earliest) {
			earliest = d
		}
	}
	return earliest
}

// Backoff is the pause after a number of failures: first, which doubles with each further failure, up to most.
func Backoff(first, most time.Duration, failures int) time.Duration {
	pause := first
	for ; failures > 1 && pause < most; failures-- {
		pause *= 2
	}
	return min(pause, most)
}
