package main

import (
	"context"
	"fmt"
	"io"
	"time"
)

// reporter prints the present step and its duration.
type reporter struct {
	out   io.Writer
	name  string
	began time.Time
}

func newReporter(out io.Writer, name string) *reporter {
	return &reporter{out: out, name: name, began: time.Now()}
}

func (r *reporter) say(format string, args ...any) {
	fmt.Fprintf(r.out, "[%s, %4.0f s] %s\n", r.name, time.Since(r.began).Seconds(), fmt.Sprintf(format, args...))
}

const (
	// askEvery is short enough not to lengthen the measurement, and long enough not to disturb it.
	askEvery = 250 * time.Millisecond
	// sayEvery shows the reader that the program runs.
	sayEvery = 5 * time.Second
	// patience is how long the state may stay the same before the wait fails.
	patience = 2 * time.Minute
)

// until waits as long as something changes. The state is what there is to say
// of it; it has come to an end when done is true.
func (r *reporter) until(ctx context.Context, ask func() (state string, done bool, err error)) error {
	var last string
	changed, said := time.Now(), time.Now()
	for {
		state, done, err := ask()
		if err != nil || done {
			return err
		}
		if state != last {
			last, changed = state, time.Now()
		}
		if time.Since(said) > sayEvery {
			r.say("  %s", state)
			said = time.Now()
		}
		if time.Since(changed) > patience {
			return fmt.Errorf("nothing has changed for %s: %s", patience, state)
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-time.After(askEvery):
		}
	}
}
