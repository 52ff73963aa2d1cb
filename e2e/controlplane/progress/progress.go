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
	// Nothing useful can be done when telling about progress fails.
	_, _ = fmt.Fprintf(r.out, format+"\n", args...)
}

// Do runs one step of several and tells about it: when it starts, while it
// takes long, and when it is done. A step that fails is left to its caller,
// who knows what to say about the error.
func (r *Reporter) Do(number, total int, what string, step func() error) error {
	r.Printf("%s", label(number, total, what))
	return r.DoQuick(number, total, what, step)
}

// DoQuick is Do for a step that is over before its first line could be read: it
// tells only when it is done, or if it takes long after all.
func (r *Reporter) DoQuick(number, total int, what string, step func() error) error {
	started := time.Now()
	stop := make(chan struct{})
	var beating sync.WaitGroup
	beating.Go(func() { r.beat(label(number, total, what), started, stop) })
	err := step()
	close(stop)
	beating.Wait()

	if err == nil {
		r.Printf("%s %s", label(number, total, what), Elapsed(time.Since(started)))
	}
	return err
}

func label(number, total int, what string) string {
	return fmt.Sprintf("[%d/%d] %s ...", number, total, what)
}

func (r *Reporter) beat(label string, started time.Time, stop <-chan struct{}) {
	ticker := time.NewTicker(r.heartbeat)
	defer ticker.Stop()
	for {
		select {
		case <-stop:
			return
		case <-ticker.C:
			r.Printf("%s %s so far", label, Elapsed(time.Since(started)))
		}
	}
}
