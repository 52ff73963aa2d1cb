package taint

import (
	"slices"
	"time"

	"github.com/fairlead-io/fairlead/internal/fence"
)

// staleView: the reading must be recent, and some node must have been heard of lately. Otherwise Fairlead or the whole
// cluster is cut off, or Fairlead's clock is wrong.
func (j *judge) staleView(Candidate) *fence.Refusal {
	if age := j.Now.Sub(j.Read); age > j.MaxStaleness {
		return fence.Refuse(ReasonStaleView, "what is known of the cluster was read %s ago, more than %s", age.Round(time.Second), j.MaxStaleness)
	}
	if slices.ContainsFunc(j.Nodes, func(n Candidate) bool { return j.recent(n.Heartbeat) }) {
		return nil
	}
	return fence.Refuse(ReasonStaleView, "no node at all was heard of within %s: either Fairlead or all nodes are cut off, or the clock is wrong", j.MaxStaleness)
}

// recent: within MaxStaleness, before or after, since clocks differ.
func (j *judge) recent(heartbeat time.Time) bool {
	return j.Now.Sub(heartbeat).Abs() <= j.MaxStaleness
}

// storm: nodes that are lost together have a common cause, such as a switch, a rack or the API server's network, and may
// all be running.
//
// A storm lasts as long as the nodes are away, not just for StormWindow. It ends once so many of them are back, deleted,
// or tainted by an operator that the rest would be no storm.
func (j *judge) storm(Candidate) *fence.Refusal {
	limit := max(j.StormNodes, j.StormShare*len(j.Nodes)/100)
	times := j.unquiet()
	for last := limit; last < len(times); last++ {
		first := last - limit
		if times[last].Sub(times[first]) <= j.StormWindow {
			return fence.Refuse(ReasonStorm, "more than %d nodes were lost within %s about %s: none is tainted until that has calmed down. Taint those that are off by hand, or delete their objects", limit, j.StormWindow, times[first].UTC().Format(time.RFC3339))
		}
	}
	return nil
}

// unquiet are the times at which missing nodes were lost and at which others have just returned: their common cause was
// active a moment ago.
func (j *judge) unquiet() []time.Time {
	var times []time.Time
	for _, n := range j.Nodes {
		changed := n.Node.ReadyChanged
		back := j.Now.Sub(changed) <= j.StormWindow && changed.Sub(n.Created) > j.StormWindow // else it is new
		dealtWith := n.Node.OutOfService && !n.Node.OwnTaint
		if n.Node.Exists && (!n.Node.Ready && !dealtWith || n.Node.Ready && back) {
			times = append(times, changed)
		}
	}
	slices.SortFunc(times, time.Time.Compare)
	return times
}
