package invariants

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/fairlead-io/fairlead/e2e/sandbox"
)

// Tolerance is how long a controller may take to follow a change of others: to see
// it in its cache, to decide and to write. A crash of Fairlead's leader is in it.
const Tolerance = 15 * time.Second

// Violation of an invariant.
type Violation struct {
	// Invariant is its number in the design.
	Invariant int
	// At is when it was broken, by the API server's clock.
	At   time.Time
	Text string
}

func (v Violation) String() string {
	return fmt.Sprintf("invariant %d, %s: %s", v.Invariant, v.At.Format("15:04:05.000"), v.Text)
}

// rule is one invariant.
type rule struct {
	invariant int
	// each returns violations of one write; its object is in the state already.
	each func(*state, event) []string
	// lasting returns present violations, which must end within Tolerance.
	lasting func(*state) []string
}

var rules = []rule{
	{invariant: 1, each: serverWithoutClients},
	{invariant: 2, each: halvesDiffer},
	{invariant: 3, each: neverReported, lasting: notReported},
	{invariant: 4, each: restartedInUse},
	{invariant: 5, each: notAuthorised},
	{invariant: 6, each: appliedEarly, lasting: stillApplied},
	{invariant: 8, each: evictedWrongly},
	{invariant: 9, each: mutatedWrongly},
}

// Options of Check.
type Options struct {
	// From ignores earlier violations.
	From time.Time
	// NodeGate: Fairlead runs with networks.gate: node.
	NodeGate bool
	// BackOff is how long the storage system may wait before it creates pods again that were restarted often.
	BackOff time.Duration
}

// Check replays all writes since the API server's start, and returns the violations.
func Check(writes []sandbox.Write, o Options) []Violation {
	c := checker{state: newState(), since: map[string]time.Time{}}
	c.state.nodeGate, c.backOff = o.NodeGate, o.BackOff
	var found []Violation
	for _, e := range inOrder(writes) {
		for _, v := range c.next(e) {
			if !v.At.Before(o.From) {
				found = append(found, v)
			}
		}
	}
	return found
}

// inOrder are the events in the order of the API server's store. The record has them
// in the order of its answers, which may cross.
func inOrder(writes []sandbox.Write) []event {
	var events []event
	last, seen := uint64(0), map[string]uint64{}
	for _, w := range writes {
		for _, e := range decode(w) {
			if e.version == 0 {
				e.version = last // an answer without an object: where the record has it
			}
			object := w.Namespace + " " + w.Object()
			if w.Verb == "delete" && e.version <= seen[object] { // the answer has the version from before the deletion
				e.version = max(e.version, last)
			}
			seen[object] = max(seen[object], e.version)
			last = max(last, e.version)
			events = append(events, e)
		}
	}
	slices.SortStableFunc(events, func(a, b event) int { return cmp.Compare(a.version, b.version) })
	return events
}

type checker struct {
	state *state
	// since is when each lasting condition began.
	since   map[string]time.Time
	backOff time.Duration
}

func (c *checker) next(e event) []Violation {
	var found []Violation
	s := c.state
	s.now = maxTime(s.now, e.At)
	if s.active {
		found = c.lasting()
	}
	e = s.apply(e)
	if !s.active {
		clear(c.since)
		return found
	}
	for _, r := range rules {
		for _, text := range r.each(s, e) {
			found = append(found, Violation{r.invariant, s.now, text + ": " + e.String()})
		}
	}
	return found
}

// lasting reports each condition once, when it has lasted for too long.
func (c *checker) lasting() []Violation {
	var found []Violation
	now := map[string]bool{}
	for _, r := range rules {
		if r.lasting == nil {
			continue
		}
		for _, text := range r.lasting(c.state) {
			now[text] = true
			began, known := c.since[text]
			tolerance := Tolerance
			if strings.Contains(text, missing) {
				tolerance += c.backOff
			}
			switch {
			case !known:
				c.since[text] = c.state.last
			case !began.IsZero() && c.state.now.Sub(began) > tolerance:
				found = append(found, Violation{r.invariant, began, fmt.Sprintf("%s for longer than %s", text, tolerance)})
				c.since[text] = time.Time{} // reported
			}
		}
	}
	for text := range c.since {
		if !now[text] {
			delete(c.since, text)
		}
	}
	return found
}

func maxTime(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}
