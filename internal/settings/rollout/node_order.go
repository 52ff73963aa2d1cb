package rollout

import (
	"cmp"
	"slices"

	"github.com/fairlead-io/fairlead/internal/storage"
)

// NodeTurn is a node whose client has yet to move, and what has to leave the node first.
type NodeTurn struct {
	Node, Pod string
	// Volumes that are shared and attached on the node, and the pods that use them.
	Volumes, Workloads []string
}

// NodeOrder are the nodes whose clients have yet to restart for the desired
// network: those where nothing is in the way first, then those that are drained
// with the fewest workloads and volumes. Empty while the gate of the cluster is
// closed, since draining one node opens nothing then.
func NodeOrder(r Rollout) []NodeTurn {
	begun := r.Record.Clients == r.Desired
	if !begun && r.Gate != GateNode {
		return nil
	}
	on, everywhere := map[string][]storage.Volume{}, []storage.Volume{}
	for _, v := range r.Volumes {
		if !v.Shared || !v.Attached {
			continue
		}
		for _, node := range v.Nodes {
			on[node] = append(on[node], v)
		}
		if len(v.Nodes) == 0 {
			everywhere = append(everywhere, v)
		}
	}
	r.Record.Clients = r.Desired
	var turns []NodeTurn
	for _, c := range r.outdated() {
		turn := NodeTurn{Node: c.Node, Pod: c.Pod}
		for _, v := range slices.Concat(on[c.Node], everywhere) {
			turn.Volumes = append(turn.Volumes, v.Name)
			turn.Workloads = append(turn.Workloads, v.Workloads...)
		}
		slices.Sort(turn.Volumes)
		slices.Sort(turn.Workloads)
		turn.Workloads = slices.Compact(turn.Workloads)
		turns = append(turns, turn)
	}
	slices.SortStableFunc(turns, func(a, b NodeTurn) int {
		return cmp.Or(cmp.Compare(len(a.Workloads), len(b.Workloads)), cmp.Compare(len(a.Volumes), len(b.Volumes)), cmp.Compare(a.Node, b.Node))
	})
	return turns
}
