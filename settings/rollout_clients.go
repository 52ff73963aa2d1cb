package settings

import (
	"fmt"
	"slices"
	"strings"

	"github.com/fairlead-io/fairlead/storage"
)

// rollClients brings the template and every client pod to the recorded network.
func (r Rollout) rollClients(s Step, outdated []storage.Client) (done bool, _ Step) {
	if blockers := r.daemonSetBlockers(); len(blockers) > 0 {
		return false, s.wait(PhaseWaiting, blockers)
	}
	if !r.DaemonSet.Found {
		return true, s // no storage system, and nothing is asked of it
	}
	s.Phase = PhaseRolling
	s.Message = fmt.Sprintf("%d of %s on the network", s.Updated, Count(s.Total, "CSI plugin pod"))
	if r.Record.Clients.IsZero() {
		s.Message = fmt.Sprintf("%d of %s back on the cluster network", s.Updated, Count(s.Total, "CSI plugin pod"))
	}
	if r.DaemonSet.Network != r.Record.Clients {
		s.Action = UpdateTemplate
		return false, s
	}
	if !r.DaemonSet.Observed {
		return false, s
	}
	free, blocked := r.restartable(outdated)
	if len(free) > 0 {
		s.Action, s.Clients = RestartClients, free
		return false, s
	}
	if len(blocked) > 0 {
		s.Blockers, s.Message = blocked, s.Message+"; "+Short(blocked)
		return false, s
	}
	if len(outdated) > 0 {
		return false, s
	}
	// Servers that are there already stay when a client is down for a while; they
	// come only when every client is known to reach them.
	rolling := r.DaemonSet.Paused || r.Record.Servers != r.Record.Clients
	if waiting := r.unready(); len(waiting) > 0 && rolling {
		s.Blockers, s.Message = waiting, s.Message+"; "+Short(waiting)
		return false, s
	}
	if r.DaemonSet.Paused {
		s.Action = ResumeTemplate
		return false, s
	}
	return true, s
}

// outdated are the client pods that the recorded network did not reach. While
// Fairlead holds the DaemonSet's own rolling update, pods of an older template
// count too, whatever their network: given its strategy back, the DaemonSet
// would restart them without asking for attached volumes.
func (r Rollout) outdated() []storage.Client {
	var pods []storage.Client
	for _, c := range r.Clients {
		if c.Network != r.Record.Clients || r.DaemonSet.Paused && c.Revision != r.DaemonSet.Revision {
			pods = append(pods, c)
		}
	}
	slices.SortFunc(pods, func(a, b storage.Client) int { return strings.Compare(a.Node+a.Pod, b.Node+b.Pod) })
	return pods
}

func (r Rollout) missing() int { return max(0, r.DaemonSet.Wanted-len(r.Clients)) }

// restartable splits outdated pods: those that may be restarted now, and what
// blocks the others. A pod on a node with an attached shared volume is never
// restarted, whatever the setting says.
func (r Rollout) restartable(outdated []storage.Client) (free []storage.Client, blocked []Blocker) {
	busy, everywhere := busyNodes(r.Volumes)
	budget := max(1, r.DaemonSet.MaxUnavailable) - r.missing()
	for _, c := range r.Clients {
		if !c.Ready || c.Terminating {
			budget--
		}
	}
	for _, c := range outdated {
		if c.Terminating {
			continue
		}
		if volumes := append(slices.Clone(everywhere), busy[c.Node]...); len(volumes) > 0 {
			for _, v := range volumes {
				blocked = append(blocked, Blocker{
					Kind: BlockedByVolume, Name: v, Nodes: []string{c.Node},
					Message: fmt.Sprintf("RWX volume is attached where CSI plugin pod %s must restart", c.Pod),
				})
			}
			continue
		}
		// A pod that is not Ready serves nobody: restarting it costs no budget.
		if !c.Ready {
			free = append(free, c)
		} else if budget > 0 {
			budget--
			free = append(free, c)
		}
	}
	return free, compactByName(blocked)
}

// compactByName merges the blockers of one name into one, nodes joined.
func compactByName(blockers []Blocker) []Blocker {
	var merged []Blocker
	for _, b := range blockers {
		i := slices.IndexFunc(merged, func(m Blocker) bool { return m.Name == b.Name })
		if i < 0 {
			merged = append(merged, b)
			continue
		}
		merged[i].Nodes = append(merged[i].Nodes, b.Nodes...)
	}
	return merged
}

// unready are the clients that are not known to reach the network, and those that are missing.
func (r Rollout) unready() []Blocker {
	var blockers []Blocker
	wait := func(c storage.Client, why string) {
		blockers = append(blockers, Blocker{
			Kind: BlockedByClient, Name: c.Pod, Nodes: []string{c.Node},
			Message: fmt.Sprintf("CSI plugin pod %s on %s %s", c.Pod, c.Node, why),
		})
	}
	for _, c := range r.Clients {
		switch {
		case c.Terminating:
			wait(c, "is still terminating")
		case !c.Ready:
			wait(c, "is not Ready")
		case !r.Record.Clients.IsZero() && !c.Reported:
			wait(c, fmt.Sprintf("has no address yet on %s: Multus reports none", r.Record.Clients))
		}
	}
	if n := r.missing(); n > 0 {
		blockers = append(blockers, Blocker{Kind: BlockedByClient, Name: r.DaemonSet.Name, Message: Count(n, "CSI plugin pod") + " to come"})
	}
	return blockers
}
