package rollout

import (
	"cmp"
	"slices"

	"github.com/fairlead-io/fairlead/internal/rwx"
)

// NodeTurn is a node whose client must restart, and the volumes that block the restart.
type NodeTurn struct {
	Node, Pod string
	// Volumes are RWX and attached on the node. Workloads are the pods on the node that use them.
	Volumes, Workloads []string
}

// NodeOrder returns the nodes whose clients must restart for the desired network. Nodes with the fewest
// workloads and volumes come first. The list is empty while the gate of the cluster is closed: draining
// one node does not open that gate.
func NodeOrder(r Rollout) []NodeTurn {
	begun := r.Record.Clients == r.Desired
	if !begun && r.Gate != GateNode {
		return nil
	}
	on, everywhere := map[string][]rwx.Volume{}, []rwx.Volume{}
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
	var turns []NodeTurn
	for _, c := range r.left() {
		turn := NodeTurn{Node: c.Node, Pod: c.Pod}
		for _, v := range slices.Concat(on[c.Node], everywhere) {
			turn.Volumes = append(turn.Volumes, v.Name)
			for _, pod := range v.Workloads {
				if node, known := r.Runs[pod]; !known || node == c.Node {
					turn.Workloads = append(turn.Workloads, pod)
				}
			}
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
