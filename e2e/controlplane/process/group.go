package process

import (
	"fmt"
	"slices"
	"sync"
)

// Group is processes that belong together: when one dies, the group has failed.
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

// Kill ends everything, last started first, and returns when nothing is left. No further process is started.
func (g *Group) Kill() {
	g.mu.Lock()
	g.stopping = true
	processes := slices.Clone(g.processes)
	g.mu.Unlock()
	for _, process := range slices.Backward(processes) {
		process.Kill()
	}
}
