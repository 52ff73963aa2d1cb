package server

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"google.golang.org/grpc"
)

// stopTimeout is how long calls may go on once the process is asked to stop: less than
// the 30 seconds that Kubernetes gives it (terminationGracePeriodSeconds).
const stopTimeout = 25 * time.Second

// Options of a server. The zero value is usable.
type Options struct {
	Log     *slog.Logger
	Metrics *Metrics
	// StopTimeout is how long calls may go on after the context has ended; 0 is 25 seconds.
	StopTimeout time.Duration
}

// Serve answers calls on a socket until the context ends. Calls that run then end first. listening is called, unless nil, once
// calls are answered.
func Serve(ctx context.Context, path string, o Options, listening func(), register ...func(grpc.ServiceRegistrar)) error {
	listener, remove, err := listen(path)
	if err != nil {
		return err
	}
	remove = sync.OnceFunc(remove) // a later process may have the path by then
	defer remove()
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.StopTimeout == 0 {
		o.StopTimeout = stopTimeout
	}
	s := grpc.NewServer(grpc.ChainUnaryInterceptor(o.observe, recovered(o.Log)))
	for _, r := range register {
		r(s)
	}
	served := make(chan error, 1)
	go func() { served <- s.Serve(listener) }()
	if listening != nil {
		listening()
	}
	select {
	case err := <-served:
		return fmt.Errorf("serving %s: %w", path, err)
	case <-ctx.Done():
	}
	remove() // no new calls come
	stopped := make(chan struct{})
	go func() {
		s.GracefulStop()
		close(stopped)
	}()
	select {
	case <-stopped:
	case <-time.After(o.StopTimeout):
		o.Log.Warn("Calls did not end in time and are cut", "socket", path, "after", o.StopTimeout)
		s.Stop()
	}
	return nil
}
