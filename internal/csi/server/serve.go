package server

import (
	"context"
	"fmt"
	"log/slog"
	"net"
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
	// CheckInterval is how often Keep looks for the socket's file; 0 is 2 seconds.
	CheckInterval time.Duration
}

// Serve answers calls until the context ends. Calls that run then end first.
func Serve(ctx context.Context, listener net.Listener, o Options, register ...func(grpc.ServiceRegistrar)) error {
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
	select {
	case err := <-served:
		return fmt.Errorf("serving %s: %w", listener.Addr(), err)
	case <-ctx.Done():
	}
	stopped := make(chan struct{})
	go func() {
		s.GracefulStop()
		close(stopped)
	}()
	select {
	case <-stopped:
	case <-time.After(o.StopTimeout):
		o.Log.Warn("Calls did not end in time and are cut", "socket", listener.Addr().String(), "after", o.StopTimeout)
		s.Stop()
	}
	return nil
}
