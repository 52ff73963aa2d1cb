package main

import (
	"fmt"
	"runtime"
	"syscall"
	"time"
)

// cpuTime is the CPU time of the process on all CPUs, including the garbage
// collector. Other processes do not count.
func cpuTime() (time.Duration, error) {
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		return 0, fmt.Errorf("reading the CPU time: %w", err)
	}
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano()), nil
}

// sampler takes one measurement: the CPU time of one review.
type sampler func() (time.Duration, error)

// sampleTime is long enough for several cycles of the garbage collector, and
// short enough for many rounds.
const sampleTime = 120 * time.Millisecond

// batch is the number of calls between two readings of the clock.
const batch = 4

// inProcess measures a handler without a network.
func inProcess(c *call) sampler {
	return func() (time.Duration, error) {
		runtime.GC() // so that the other side's garbage does not count
		started, err := cpuTime()
		if err != nil {
			return 0, err
		}
		for calls := 0; ; {
			for range batch {
				if err := c.do(); err != nil {
					return 0, err
				}
			}
			calls += batch
			now, err := cpuTime()
			if err != nil {
				return 0, err
			}
			if spent := now - started; spent >= sampleTime {
				return spent / time.Duration(calls), nil
			}
		}
	}
}
