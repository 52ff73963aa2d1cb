package rollout

import (
	"reflect"
	"testing"

	"github.com/fairlead-io/fairlead/internal/multus"
	"github.com/fairlead-io/fairlead/internal/rwx"
	"github.com/fairlead-io/fairlead/internal/testkit/must"
)

func TestNodeOrder(t *testing.T) {
	busy := func(gate NetworkGate) Rollout {
		r := onCluster()
		r.Desired, r.Gate = netOne, gate
		r.Clients = append(r.Clients, client("node-3", clusterNet), client("node-4", netOne))
		big, small := attached("pvc-a", "node-1"), attached("pvc-b", "node-2")
		big.Workloads, small.Workloads = []string{"default/web-1", "default/web-0"}, []string{"default/db-0"}
		detached := attached("pvc-c", "node-3")
		detached.Attached = false
		r.Volumes = []rwx.Volume{big, small, detached, {Name: "rwo", Attached: true, Nodes: []string{"node-3"}}}
		return r
	}
	for name, test := range map[string]struct {
		rollout Rollout
		want    []NodeTurn
	}{
		"by node: the fewest workloads first": {busy(GateNode),
			[]NodeTurn{{Node: "node-3", Pod: "csi-node-3"}, {Node: "node-2", Pod: "csi-node-2", Volumes: []string{"pvc-b"}, Workloads: []string{"default/db-0"}}, {Node: "node-1", Pod: "csi-node-1", Volumes: []string{"pvc-a"}, Workloads: []string{"default/web-0", "default/web-1"}}}},
		"by cluster: draining one node opens nothing": {busy(GateCluster), nil},
		"everything is there":                         {onOne(), nil},
	} {
		got := NodeOrder(test.rollout)
		must.Check(t, reflect.DeepEqual(got, test.want), "%s:\ngot  %+v\nwant %+v", name, got, test.want)
	}
	everywhere := busy(GateNode)
	everywhere.Volumes = []rwx.Volume{attached("pvc-b"), attached("pvc-a", "node-1")}
	for i := range everywhere.Volumes {
		everywhere.Volumes[i].Workloads = []string{"default/web-0"}
	}
	turns := NodeOrder(everywhere)
	must.Equal(t, turns[2], NodeTurn{Node: "node-1", Pod: "csi-node-1", Volumes: []string{"pvc-a", "pvc-b"}, Workloads: []string{"default/web-0"}})
	must.Equal(t, turns[1].Volumes, []string{"pvc-b"}, "attached to an unknown node")
	// Three pods on three nodes share a volume: each node has one of them.
	spread := onCluster()
	spread.Desired, spread.Gate, spread.Runs = netOne, GateNode, map[string]string{"default/web-0": "node-1", "default/web-1": "node-2", "default/job": "node-2"}
	shared := attached("pvc-a", "node-1", "node-2")
	shared.Workloads = []string{"default/web-0", "default/web-1", "default/job", "default/not-listed"}
	spread.Volumes = []rwx.Volume{shared}
	turns = NodeOrder(spread)
	must.Equal(t, turns[0].Workloads, []string{"default/not-listed", "default/web-0"}, "node-1")
	must.Equal(t, turns[1].Workloads, []string{"default/job", "default/not-listed", "default/web-1"}, "node-2")
	begun := busy(GateCluster)
	begun.Record.Clients = netOne
	must.Equal(t, len(NodeOrder(begun)), 3, "nodes, once begun by cluster")

	// Taken back: the template is of the network, and no client has joined it.
	back := enabling()
	back.Desired, back.Gate, back.DaemonSet.Paused = multus.Attachment{}, GateNode, true
	for i := range back.Clients {
		back.Clients[i].Revision = "of before"
	}
	must.Equal(t, len(NodeOrder(back)), 0, "nodes, while the change is taken back")
}
