package health

import "time"

// Settings of the probes of one service.
type Settings struct {
	// Failures in a row take a backend out; Successes in a row return it.
	Failures, Successes int
	// MaxEjected is the percentage of the backends that may be Down at once.
	MaxEjected int
	// Interval between two probes of a backend, and Timeout of one probe.
	Interval, Timeout time.Duration
}

// DefaultSettings find a dead server within 16 seconds.
func DefaultSettings() Settings {
	return Settings{Failures: 3, Successes: 2, MaxEjected: 50, Interval: 5 * time.Second, Timeout: time.Second}
}

// maxDown is how many of total backends may be Down at once: never all of them.
func (s Settings) maxDown(total int) int { return max(0, min(total*s.MaxEjected/100, total-1)) }
