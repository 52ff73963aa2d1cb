package cluster

import (
	"context"
	"errors"
	"fmt"
	"time"
)

const pollInterval = 50 * time.Millisecond

// errNotYet is a condition's way to say: nothing is wrong, ask again.
var errNotYet = errors.New("not yet")

// await asks until the condition holds. Errors are asked again, too: while a
// control plane starts, refused connections and missing rights are ordinary.
// When time is up, the last error says what was missing.
func await(ctx context.Context, what string, timeout time.Duration, condition func(context.Context) error) error {
	ctx, cancel := context.WithTimeoutCause(ctx, timeout, fmt.Errorf("it took longer than %s", timeout))
	defer cancel()
	ticker := time.NewTicker(pollInterval)
	defer ticker.Stop()
	last := errNotYet
	for {
		err := condition(ctx)
		if err == nil {
			return nil
		}
		// An error that only repeats that time is up hides the one before it.
		if ctx.Err() == nil {
			last = err
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("waiting for %s: %w (last: %w)", what, context.Cause(ctx), last)
		case <-ticker.C:
		}
	}
}
