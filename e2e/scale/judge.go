package main

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
)

// life of one pod. Its times are the API's, in whole seconds.
type life struct {
	pod, node string
	// began is when its sandbox was made, zero if it never was.
	began time.Time
	// ended is when its deletion was asked for, zero while it lives.
	ended time.Time
	// cause is the API server's reason for its end, if any.
	cause string
	ready bool
}

// evicted is the expected cause.
const evicted = "EvictionByEvictionAPI"

func (l life) String() string {
	text := l.pod + " on " + l.node + " since " + l.began.Format(time.TimeOnly)
	if !l.ended.IsZero() {
		text += " until " + l.ended.Format(time.TimeOnly) + " " + l.cause
	}
	return text
}

// set is the StatefulSet of a workload's pod.
func (l life) set() string { return l.pod[:strings.LastIndex(l.pod, "-")] }

// verdict on what happened to the workloads.
type verdict struct {
	// evictions that were due: a CSI plugin pod on the node began after the pod, and before its eviction.
	evictions int
	// seconds from the first eviction to the last, both included, and how many
	// evictions there were in the busiest ten seconds.
	seconds, busiest int
	// undue were evicted although their mount was alive.
	undue []string
	// others ended without the Eviction API.
	others []string
	// stale run with a mount that is older than the CSI plugin on their node.
	stale []string
	// sameSecond began in the same second as the CSI plugin on their node: the API does not show which was first.
	sameSecond int
	// restarts is how many workloads were restarted how often.
	restarts map[int]int
}

// judge checks the promise: a workload is restarted only if its mount is dead, and once for each CSI plugin pod that ended.
func judge(workloads, clients []life) verdict {
	began := map[string][]time.Time{}
	for _, c := range clients {
		if !c.began.IsZero() {
			began[c.node] = append(began[c.node], c.began)
		}
	}
	v := verdict{restarts: map[int]int{}}
	times, bySecond := map[string]int{}, map[int64]int{}
	for _, w := range workloads {
		if w.began.IsZero() {
			continue // it never had a mount
		}
		times[w.pod] += 0
		later := func(t time.Time) bool { return t.After(w.began) }
		due := func(t time.Time) bool { return !t.Before(w.began) && !t.After(w.ended) }
		switch {
		case w.ended.IsZero() && slices.ContainsFunc(began[w.node], later):
			v.stale = append(v.stale, w.String())
		case w.ended.IsZero() && slices.ContainsFunc(began[w.node], w.began.Equal):
			v.sameSecond++
		case w.ended.IsZero():
		case w.cause != evicted:
			v.others = append(v.others, w.String())
		case !slices.ContainsFunc(began[w.node], due):
			v.undue = append(v.undue, w.String())
		default:
			v.evictions++
			bySecond[w.ended.Unix()]++
		}
		if !w.ended.IsZero() {
			times[w.pod]++
		}
	}
	for _, n := range times {
		v.restarts[n]++
	}
	v.seconds, v.busiest = pace(bySecond)
	return v
}

// pace is how many seconds the evictions took, and the most in ten of them.
func pace(bySecond map[int64]int) (seconds, busiest int) {
	if len(bySecond) == 0 {
		return 0, 0
	}
	at := slices.Sorted(maps.Keys(bySecond))
	for from := range at {
		n := 0
		for _, second := range at[from:] {
			if second >= at[from]+10 {
				break
			}
			n += bySecond[second]
		}
		busiest = max(busiest, n)
	}
	return int(at[len(at)-1]-at[0]) + 1, busiest
}

func (v verdict) String() string {
	var often []string
	for _, n := range slices.Sorted(maps.Keys(v.restarts)) {
		often = append(often, fmt.Sprintf("%d× %d workloads", n, v.restarts[n]))
	}
	text := fmt.Sprintf("restarted %s; %d evictions were due, %d were not, %d pods ended otherwise, %d mounts are dead",
		strings.Join(often, ", "), v.evictions, len(v.undue), len(v.others), len(v.stale))
	if v.sameSecond > 0 {
		text += fmt.Sprintf(", %d began in the same second as the CSI plugin there", v.sameSecond)
	}
	return text
}

// err is nil if the promise was kept.
func (v verdict) err() error {
	var problems []error
	for _, p := range []struct {
		what string
		pods []string
	}{
		{"were not restarted though their mount is dead", v.stale},
		{"were restarted though their mount was alive", v.undue},
		{"ended in another way than by the Eviction API", v.others},
	} {
		if len(p.pods) > 0 {
			slices.Sort(p.pods)
			problems = append(problems, fmt.Errorf("%d workloads %s, the first: %s", len(p.pods), p.what, p.pods[0]))
		}
	}
	if n := v.restarts[0]; n > 0 && len(v.stale) == 0 {
		problems = append(problems, fmt.Errorf("%d workloads were never restarted, and every CSI plugin pod was", n))
	}
	return errors.Join(problems...)
}
