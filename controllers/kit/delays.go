package kit

import "time"

// Earliest returns the shortest of the delays. 0 is no request to look again, as in reconcile.Result.
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
