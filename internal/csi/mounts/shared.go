package mounts

import (
	"context"
	"fmt"
	"sync"
)

// calls may hang. At most one call runs for a key: later callers wait for that call.
type calls struct {
	mu      sync.Mutex
	running map[string]*call
}

type call struct {
	done  chan struct{}
	value any
	err   error
}

// do runs f, unless a call with the key runs, and waits until it ends or the context does.
func (c *calls) do(ctx context.Context, key string, f func() (any, error)) (any, error) {
	c.mu.Lock()
	if c.running == nil {
		c.running = map[string]*call{}
	}
	running := c.running[key]
	if running == nil {
		running = &call{done: make(chan struct{})}
		c.running[key] = running
		go func() {
			running.value, running.err = f()
			c.mu.Lock()
			delete(c.running, key)
			c.mu.Unlock()
			close(running.done)
		}()
	}
	c.mu.Unlock()
	select {
	case <-running.done:
		return running.value, running.err
	case <-ctx.Done():
		return nil, fmt.Errorf("%s: %w: %w", key, ErrTimeout, ctx.Err())
	}
}
