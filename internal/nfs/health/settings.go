package health

import (
	"time"

	"github.com/fairlead-io/fairlead/internal/nfs"
)

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

// Check reports values that are out of range. field is the path of the settings.
func (s Settings) Check(field string) nfs.Problems {
	var problems nfs.Problems
	for _, count := range []struct {
		name  string
		value int
	}{{"failures", s.Failures}, {"successes", s.Successes}} {
		if count.value < 1 || count.value > 100 {
			problems.Add(field+"."+count.name, "%d is out of range: write 1 to 100", count.value)
		}
	}
	if s.MaxEjected < 0 || s.MaxEjected > 100 {
		problems.Add(field+".maxEjected", "%d is not a percentage: write 0 to 100", s.MaxEjected)
	}
	if s.Interval < time.Second || s.Interval > time.Hour {
		problems.Add(field+".interval", "%s is out of range: write 1s to 1h", s.Interval)
	}
	if s.Timeout < 100*time.Millisecond || s.Timeout > s.Interval {
		problems.Add(field+".timeout", "%s is out of range: write 100ms up to the interval, %s", s.Timeout, s.Interval)
	}
	return problems
}

// maxDown is how many of total backends may be Down at once: never all of them.
func (s Settings) maxDown(total int) int { return max(0, min(total*s.MaxEjected/100, total-1)) }
