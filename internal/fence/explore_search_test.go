package fence

import (
	"fmt"
	"hash/fnv"
	"slices"
	"strings"
	"time"
)

// mostStates fit into 8 GiB.
const mostStates = 8_000_000

type visited struct {
	parent int32
	action string
}

type exploration struct {
	world    *exploredWorld
	states   int
	depth    int
	complete bool
	bound    string
	found    []string
	took     time.Duration
}

func (e exploration) summary() string {
	how := "complete"
	if !e.complete {
		how = "not complete: " + e.bound
	}
	return fmt.Sprintf("%s: %d states, depth %d, %s, %s", e.world.name, e.states, e.depth, how, e.took.Round(time.Second))
}

// explore the world breadth first, until no new state is found, one of the faults is, or a bound is reached.
func explore(of *exploredWorld, y system, longest time.Duration, until ...string) exploration {
	world := *of
	w := &world
	w.system = y
	began := time.Now()
	e := exploration{world: w}
	seen := map[fingerprint]struct{}{}
	var log []visited
	type open struct {
		s  small
		at int32
	}
	var text encoder
	print := func(s *small) (f fingerprint) {
		s.encode(&text)
		h := fnv.New128a()
		h.Write(text.b)
		h.Sum(f[:0])
		return f
	}
	trace := func(at int32, last string) string {
		steps := []string{last}
		for ; at > 0; at = log[at].parent {
			steps = append(steps, log[at].action)
		}
		slices.Reverse(steps)
		return strings.Join(steps, "\n  ")
	}
	first := newSmall(w)
	level := []open{{first, 0}}
	log = append(log, visited{})
	seen[print(&first)] = struct{}{}
	kinds := map[string]bool{}
	for len(level) > 0 {
		var next []open
		for _, o := range level {
			for _, a := range o.s.actions() {
				s := o.s
				a.do(&s)
				if s.found != "" {
					kind, _, _ := strings.Cut(s.found, ":")
					if !kinds[kind] {
						kinds[kind] = true
						e.found = append(e.found, s.found+"\n  "+trace(o.at, a.name))
						if slices.Contains(until, kind) {
							e.states, e.took, e.bound = len(seen), time.Since(began), "found"
							return e
						}
					}
					continue
				}
				f := print(&s)
				if _, known := seen[f]; known {
					continue
				}
				seen[f] = struct{}{}
				log = append(log, visited{o.at, a.name})
				next = append(next, open{s, int32(len(log) - 1)})
			}
			if len(seen) > mostStates || time.Since(began) > longest {
				e.bound = fmt.Sprintf("%d states or %s", mostStates, longest)
				e.states, e.took = len(seen), time.Since(began)
				return e
			}
		}
		if len(next) > 0 {
			e.depth++
		}
		level = next
	}
	e.complete, e.states, e.took = true, len(seen), time.Since(began)
	return e
}
