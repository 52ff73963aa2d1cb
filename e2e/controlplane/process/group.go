package process

import (
	"fmt"
	"sync"
	"time"
)

// Group is processes that belong together: when one dies, the group has failed;
// when the group stops, they stop in the reverse of the order they were started.
type Group struct {
	mu        sync.Mutex
	processes []*Process
	stopping  bool
	deaths    chan *Process
}

// NewGroup returns an empty group.
func NewGroup() *Group {
	// One death is enough to fail the group, so one place is enough.
	return &Group{deaths: make(chan *Process, 1)}
}

// Start starts a process as the last one of the group.
func (g *Group) Start(spec Spec) (*Process, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.stopping {
		return nil, fmt.Errorf("starting %s: the control plane is stopping", spec.Name)
	}
	process, err := Start(spec)
	if err != nil {
		return nil, err
	}
	g.processes = append(g.processes, process)
	go g.watch(process)
	return process, nil
}

func (g *Group) watch(process *Process) {
	<-process.Done()
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.stopping {
		return
	}
	select {
	case g.deaths <- process:
	default:
	}
}

// Deaths gives the first process that ended without being asked to.
func (g *Group) Deaths() <-chan *Process { return g.deaths }

// Pids are the processes' numbers by name.
func (g *Group) Pids() map[string]int {
	g.mu.Lock()
	defer g.mu.Unlock()
	pids := make(map[string]int, len(g.processes))
	for _, process := range g.processes {
		pids[process.Spec.Name] = process.Pid
	}
	return pids
}

// Stop stops everything, last started first, and returns when nothing is left.
func (g *Group) Stop(grace time.Duration) {
	for _, process := range g.close() {
		process.Stop(grace)
	}
}

// Kill ends everything at once. It may be called while Stop is waiting.
func (g *Group) Kill() {
	for _, process := range g.close() {
		process.Kill()
	}
}

// close lets no further process start and returns those there are, last first.
func (g *Group) close() []*Process {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.stopping = true
	reversed := make([]*Process, 0, len(g.processes))
	for i := len(g.processes) - 1; i >= 0; i-- {
		reversed = append(reversed, g.processes[i])
	}
	return reversed
}
