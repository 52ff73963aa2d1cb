package cluster

import (
	"context"
	"errors"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
)

const pollInterval = 50 * time.Millisecond

// errNotYet is a condition's way to say: nothing is wrong, ask again.
var errNotYet = errors.New("not yet")

// await asks until the condition holds. Errors are asked again, too: while a
// control plane starts, refused connections and missing rights are ordinary.
// When time is up, the last error says what was missing.
func await(ctx context.Context, what string, timeout time.Duration, condition func(context.Context) error) error {
	last := errNotYet
	err := wait.PollUntilContextTimeout(ctx, pollInterval, timeout, true, func(ctx context.Context) (bool, error) {
		err := condition(ctx)
		// An error that only repeats that time is up hides the one before it.
		if ctx.Err() == nil || err == nil {
			last = err
		}
		return err == nil, nil
	})
	if err == nil {
		return nil
	}
	if cause := context.Cause(ctx); cause != nil {
		err = cause
	}
	return fmt.Errorf("waiting for %s: not within %s: %w (last: %w)", what, timeout, err, last)
}
