package main

import (
	"context"
	"io"
	"os"
	"os/signal"
	"syscall"
)

// untilAsked returns a context that ends when this program is asked to end.
func untilAsked() (context.Context, context.CancelFunc) {
	var signals []os.Signal
	for _, sig := range []os.Signal{os.Interrupt, syscall.SIGTERM, syscall.SIGHUP} {
		// Started with nohup, or in the background by a script, some are
		// ignored on purpose; asking for them would undo that.
		if !signal.Ignored(sig) {
			signals = append(signals, sig)
		}
	}
	return signal.NotifyContext(context.Background(), signals...)
}

// whenClosed stops when the input ends. Whoever holds the other end of the pipe
// needs to do nothing to end this program, not even to live long enough.
func whenClosed(input io.Reader, stop func()) {
	// An input that can't be read any more has ended, too.
	_, _ = io.Copy(io.Discard, input)
	stop()
}
