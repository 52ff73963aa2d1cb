package node

import (
	"context"
	"fmt"
	"runtime/debug"
	"sync"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// operations lets one operation run per target. A hanging operation keeps its target until the operation ends, and later
// calls name it in their errors. A panic ends the operation too.
type operations struct {
	mu      sync.Mutex
	running map[string]operation
}

type operation struct {
	what  string
	since time.Time
}

// do runs f for the target, and returns its error. If the context ends first, f has
// the grace to end as well.
func (o *operations) do(ctx context.Context, target, what string, grace time.Duration, f func(context.Context) error) error {
	o.mu.Lock()
	if have, ok := o.running[target]; ok {
		o.mu.Unlock()
		return status.Errorf(codes.Aborted, "%s of %s is in progress since %s: the call is repeated until the operation ends; if it does not, look at the NFS server",
			have.what, target, have.since.UTC().Format(time.RFC3339))
	}
	if o.running == nil {
		o.running = map[string]operation{}
	}
	o.running[target] = operation{what, time.Now()}
	o.mu.Unlock()

	done := make(chan error, 1)
	go func() {
		var err error
		defer func() {
			if p := recover(); p != nil {
				err = status.Errorf(codes.Internal, "%s of %s panicked: %v: %s", what, target, p, debug.Stack())
			}
			o.mu.Lock()
			delete(o.running, target)
			o.mu.Unlock()
			done <- err
		}()
		err = f(ctx)
	}()
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
	}
	select {
	case err := <-done:
		return err
	case <-time.After(grace):
		return status.Error(codes.DeadlineExceeded, fmt.Sprintf("%s of %s did not end in time and goes on: %v", what, target, ctx.Err()))
	}
}
