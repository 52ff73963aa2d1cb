package server

import (
	"context"
	"time"

	"golang.org/x/sync/errgroup"
	"google.golang.org/grpc"
)

// checkInterval is how often Keep looks for the socket's file.
const checkInterval = 2 * time.Second

// Keep listens at the path and serves until the context ends. If the socket's file is
// removed, Keep recreates it: a kubelet finds drivers by their files. If another
// process owns the file, a successor has started, and Keep leaves the path to it.
// listening is called, unless nil, once calls are answered.
func Keep(ctx context.Context, path string, o Options, listening func(), register ...func(grpc.ServiceRegistrar)) error {
	if o.CheckInterval == 0 {
		o.CheckInterval = checkInterval
	}
	group, ctx := errgroup.WithContext(ctx)
	for {
		socket, err := Listen(path)
		if err != nil {
			group.Go(func() error { return err })
			break
		}
		serving, stop := context.WithCancel(ctx)
		group.Go(func() error {
			defer socket.Close()
			return Serve(serving, socket, o, register...)
		})
		if listening != nil {
			listening()
			listening = nil
		}
		removed := waitRemoved(ctx, socket, o.CheckInterval)
		stop()
		if !removed {
			break
		}
		if o.Log != nil {
			o.Log.Warn("The socket was removed and is recreated", "socket", path)
		}
	}
	return group.Wait()
}

// waitRemoved returns true once the file is gone, false when the context has ended.
func waitRemoved(ctx context.Context, socket *Socket, interval time.Duration) bool {
	tick := time.NewTicker(interval)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return false
		case <-tick.C:
			if !socket.Present() && !socket.Replaced() {
				return true
			}
		}
	}
}
