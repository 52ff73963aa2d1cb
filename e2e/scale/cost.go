package main

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"strconv"
	"strings"
	"time"

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

func costOf(pid int) (c processCost, err error) {
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return c, fmt.Errorf("reading the memory of a process: %w", err)
	}
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return c, fmt.Errorf("reading the CPU time of a process: %w", err)
	}
	var problems [4]error
	c.memory, problems[0] = memory(string(status), "VmRSS")
	c.peak, problems[1] = memory(string(status), "VmHWM")
	c.shared, problems[2] = memory(string(status), "RssFile")
	c.cpu, problems[3] = cpuTime(string(stat))
	return c, errors.Join(problems[:]...)
}

// memory reads a line such as "VmHWM:   123456 kB", in MiB.
func memory(status, name string) (float64, error) {
	for line := range strings.Lines(status) {
		fields := strings.Fields(line)
		if len(fields) == 3 && fields[0] == name+":" {
			kilobytes, err := strconv.ParseFloat(fields[1], 64)
			if err != nil {
				return 0, fmt.Errorf("reading the memory of a process: %w", err)
			}
			return kilobytes / 1024, nil
		}
	}
	return 0, fmt.Errorf("reading the memory of a process: there is no %s; this needs Linux", name)
}

// tick is the unit of times in /proc (USER_HZ in Linux's user interface).
const tick = 10 * time.Millisecond

// cpuTime adds user and system time in /proc/<pid>/stat (fields 14 and 15 in proc(5)).
func cpuTime(stat string) (time.Duration, error) {
	// Field 2, the program's name, may have spaces and ends with the last ")".
	fields := strings.Fields(stat[strings.LastIndex(stat, ")")+1:])
	if len(fields) < 13 {
		return 0, errors.New("reading the CPU time of a process: /proc has too few fields")
	}
	total := time.Duration(0)
	for _, field := range fields[11:13] {
		ticks, err := strconv.ParseInt(field, 10, 64)
		if err != nil {
			return 0, fmt.Errorf("reading the CPU time of a process: %w", err)
		}
		total += time.Duration(ticks) * tick
	}
	return total, nil
}
