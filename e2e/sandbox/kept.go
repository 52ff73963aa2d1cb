package sandbox

import (
	"context"
	"fmt"
	"sync"
	"time"
)

// Kept is a process that is started again when it ends by itself, as a kubelet does with a container.
type Kept struct {
	cancel context.CancelFunc
	done   chan struct{}

	mu      sync.Mutex
	process *Replica
}

// restartDelay is short: a kubelet waits ten seconds the second time.
const restartDelay = 500 * time.Millisecond

// Keep starts a process, and starts it again until it is released, or the sandbox stops.
func (s *Sandbox) Keep(ctx context.Context, start func() (*Replica, error)) (*Kept, error) {
	process, err := start()
	if err != nil {
		return nil, err
	}
	running, cancel := context.WithCancel(context.WithoutCancel(ctx))
	k := &Kept{cancel: cancel, done: make(chan struct{}), process: process}
	s.othersMu.Lock()
	s.kept = append(s.kept, k)
	s.othersMu.Unlock()
	go func() {
		defer close(k.done)
		for {
			select {
			case <-running.Done():
				return
			case <-k.Process().Ended():
			}
			select {
			case <-running.Done():
				return
			case <-time.After(restartDelay):
			}
			fmt.Fprintln(s.Out, k.Process().Name, "has ended, and is started again; see", k.Process().Log)
			process, err := start()
			if err != nil {
				fmt.Fprintf(s.Out, "starting %s again: %v\n", k.Process().Name, err)
				return
			}
			k.mu.Lock()
			k.process = process
			k.mu.Unlock()
		}
	}()
	return k, nil
}

// Process that runs now, or has run last.
func (k *Kept) Process() *Replica {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.process
}

// Release starts the process no more. It runs on.
func (k *Kept) Release() {
	k.cancel()
	<-k.done
}
