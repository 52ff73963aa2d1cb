package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"
)

// stop is how this program is asked to end: once politely, the second time in a
// hurry.
type stop struct {
	ctx     context.Context
	cancel  context.CancelCauseFunc
	hurry   chan struct{}
	release func()
}

func catchSignals(parent context.Context) *stop {
	ctx, cancel := context.WithCancelCause(parent)
	caught := make(chan os.Signal, 2)
	for _, sig := range []os.Signal{os.Interrupt, syscall.SIGTERM, syscall.SIGHUP} {
		// Started with nohup, or in the background by a script, some are
		// ignored on purpose; asking for them would undo that.
		if !signal.Ignored(sig) {
			signal.Notify(caught, sig)
		}
	}
	result := &stop{ctx: ctx, cancel: cancel, hurry: make(chan struct{})}
	result.release = func() { signal.Stop(caught) }
	go func() {
		cancel(fmt.Errorf("interrupted by %s", <-caught))
		<-caught
		close(result.hurry)
	}()
	return result
}

// whenClosed stops when the input ends. Whoever holds the other end of the pipe
// needs to do nothing to end this program, not even to live long enough.
func (s *stop) whenClosed(input io.Reader) {
	// An input that can't be read any more has ended, too.
	_, _ = io.Copy(io.Discard, input)
	s.cancel(io.EOF)
}
