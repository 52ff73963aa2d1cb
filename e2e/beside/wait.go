package beside

import (
	"context"
	"fmt"
	"time"
)

const pollInterval = 50 * time.Millisecond

// Eventually waits until check finds nothing wrong. The error says what was wrong last.
func (c *Cluster) Eventually(ctx context.Context, what string, within time.Duration, check func() error) error {
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	began := time.Now()
	for {
		err := check()
		if err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("waiting for %s: not within %s: %w", what, time.Since(began).Round(time.Second), err)
		case <-time.After(pollInterval):
		}
	}
}
