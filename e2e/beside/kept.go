package beside

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/fairlead-io/fairlead/e2e/sandbox"
)

// kept is a process that is started again when it ends, as a kubelet does with a container.
type kept struct {
	cluster *Cluster
	start   func() (*sandbox.Replica, error)
	cancel  context.CancelFunc
	done    chan struct{}

	mu      sync.Mutex
	process *sandbox.Replica
}

// restartDelay is short: a kubelet waits ten seconds the second time.
const restartDelay = 500 * time.Millisecond

// keep starts a process, and starts it again until the cluster stops.
func (c *Cluster) keep(ctx context.Context, name, program string, args, env []string) (*kept, error) {
	running, cancel := context.WithCancel(context.WithoutCancel(ctx))
	k := &kept{cluster: c, cancel: cancel, done: make(chan struct{})}
	k.start = func() (*sandbox.Replica, error) {
		return c.StartProcess(name, c.Log(name), program, args, env)
	}
	process, err := k.start()
	if err != nil {
		cancel()
		return nil, err
	}
	k.process = process
	c.ends = append(c.ends, k.release)
	go k.run(running)
	return k, nil
}

func (k *kept) run(ctx context.Context) {
	defer close(k.done)
	for {
		select {
		case <-ctx.Done():
			return
		case <-k.current().Ended():
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(restartDelay):
		}
		process, err := k.start()
		if err != nil {
			fmt.Fprintf(k.cluster.Out, "starting %s again: %v\n", k.current().Name, err)
			return
		}
		k.mu.Lock()
		k.process = process
		k.mu.Unlock()
	}
}

func (k *kept) current() *sandbox.Replica {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.process
}

// release starts the process no more. The sandbox kills it.
func (k *kept) release() {
	k.cancel()
	<-k.done
}
