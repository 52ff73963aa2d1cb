// Package progress tells a person what is being done, how far it is and how
// long it has taken, in whole lines, so that it reads the same on a terminal
// and in a CI log.
package progress

import (
	"fmt"
	"io"
	"sync"
	"time"
)

// Reporter writes progress lines. Its methods may be called concurrently.
type Reporter struct {
	mu        sync.Mutex
	out       io.Writer
	heartbeat time.Duration
}

// New returns a reporter that repeats a step's line with the time it has taken
// so far, once per heartbeat, for as long as the step takes.
func New(out io.Writer, heartbeat time.Duration) *Reporter {
	return &Reporter{out: out, heartbeat: heartbeat}
}

// Printf writes one line.
func (r *Reporter) Printf(format string, args ...any) {
	r.mu.Lock()
	defer r.mu.Unlock()
	_, _ = fmt.Fprintf(r.out, format+"\n", args...)
}

// quick is how long a step may take before its first line.
const quick = 5 * time.Second

// Do runs one step of several. It reports that the step is done, and before that what has begun, if it takes long. A step
// that fails is left to its caller.
func (r *Reporter) Do(number, total int, what string, step func() error) error {
	label, started := fmt.Sprintf("[%d/%d] %s ...", number, total, what), time.Now()
	done := make(chan error, 1)
	go func() { done <- step() }()
	for next := time.After(quick); ; {
		select {
		case err := <-done:
			if err == nil {
				r.Printf("%s %s", label, Elapsed(started))
			}
			return err
		case <-next:
			if time.Since(started) < 2*quick {
				r.Printf("%s", label)
			} else {
				r.Printf("%s %s so far", label, Elapsed(started))
			}
			next = time.After(r.heartbeat)
		}
	}
}

// Elapsed is the time since the start, as 8.4s or 1m12s.
func Elapsed(started time.Time) time.Duration {
	d := time.Since(started)
	if d < 10*time.Second {
		return d.Round(100 * time.Millisecond)
	}
	return d.Round(time.Second)
}
