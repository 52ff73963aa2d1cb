package main

import (
	"errors"
	"fmt"
	"maps"
	"strings"
	"time"

	"github.com/prometheus/procfs"

	"github.com/fairlead-io/fairlead/e2e/sandbox"
	"github.com/fairlead-io/fairlead/webhook/registration"
)

// cost of the controller.
type cost struct {
	processCost
	// requests to the API server, by verb and resource.
	requests map[string]int
}

// since subtracts earlier CPU time and requests.
func (c cost) since(earlier cost) cost {
	c.cpu -= earlier.cpu
	c.requests = maps.Clone(c.requests)
	for kind, n := range earlier.requests {
		if c.requests[kind] -= n; c.requests[kind] == 0 {
			delete(c.requests, kind)
		}
	}
	return c
}

func (c cost) total() int {
	total := 0
	for _, n := range c.requests {
		total += n
	}
	return total
}

var errNoController = errors.New("no controller was started")

// cost so far.
func (s *scenario) cost() (cost, error) {
	var controller *sandbox.Replica
	for _, r := range s.Replicas() {
		if strings.HasPrefix(r.Name, "controller-") {
			controller = r
		}
	}
	if controller == nil {
		return cost{}, errNoController
	}
	process, err := costOf(controller.Pid())
	if err != nil {
		return cost{}, err
	}
	result := cost{processCost: process, requests: map[string]int{}}
	requests, err := s.ReadWrites()
	if err != nil {
		return cost{}, err
	}
	for _, r := range requests {
		if r.User == "system:serviceaccount:"+registration.Namespace+":"+sandbox.ControllerDeployment {
			result.requests[r.Verb+" "+r.Resource]++
		}
	}
	return result, nil
}

// processCost is what a process uses now, and has used.
type processCost struct {
	memory, peak, shared float64 // MiB
	cpu                  time.Duration
}

func costOf(pid int) (processCost, error) {
	p, err := procfs.NewProc(pid)
	if err != nil {
		return processCost{}, fmt.Errorf("finding a process; this needs Linux: %w", err)
	}
	status, err := p.NewStatus()
	if err != nil {
		return processCost{}, fmt.Errorf("reading the memory of a process: %w", err)
	}
	stat, err := p.Stat()
	if err != nil {
		return processCost{}, fmt.Errorf("reading the CPU time of a process: %w", err)
	}
	const mebibyte = 1 << 20
	return processCost{
		memory: float64(status.VmRSS) / mebibyte, peak: float64(status.VmHWM) / mebibyte, shared: float64(status.RssFile) / mebibyte,
		cpu: time.Duration(stat.CPUTime() * float64(time.Second)),
	}, nil
}
