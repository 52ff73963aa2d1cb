// Package eventually waits until something is so.
package eventually

import (
	"context"
	"errors"
	"fmt"
	"time"
)

const pollInterval = 50 * time.Millisecond

// Until waits until check finds nothing wrong. The error says what was wrong last. An error of Never ends the wait.
func Until(ctx context.Context, what string, within time.Duration, check func() error) error {
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	began := time.Now()
	for {
		err := check()
		if err == nil {
			return nil
		}
		if errors.As(err, new(never)) {
			return fmt.Errorf("waiting for %s: %w", what, err)
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("waiting for %s: not within %s: %w", what, time.Since(began).Round(time.Second), err)
		case <-time.After(pollInterval):
		}
	}
}

// Never says that it is of no use to wait any longer.
func Never(err error) error { return never{err} }

type never struct{ error }

func (n never) Unwrap() error { return n.error }
