package rollout

import (
	"slices"
	"testing"
	"time"

	"github.com/fairlead-io/fairlead/internal/multus"
	"github.com/fairlead-io/fairlead/internal/rwx"
	"github.com/fairlead-io/fairlead/internal/settings/catalog"
	"github.com/fairlead-io/fairlead/internal/testkit/must"
)

// joining is a cluster whose settings choose a network that no client is on yet.
func joining() Rollout {
	r := onCluster()
	r.Desired = netOne
	return r
}

// sunday is closed at noon of that Thursday, for two and a half days.
var sunday = Windows{{Days: []time.Weekday{time.Sunday}, Length: time.Hour, Location: time.UTC}}

func TestOutlook(t *testing.T) {
	const restart2, window = "2 CSI plugin pods restart", "restarts begin in a maintenance window only; the next opens at 2026-01-04T00:00:00Z"
	for name, test := range map[string]struct {
		start  func() Rollout
		change func(*Rollout)
		want   string
		waits  bool
	}{
		"joins":           {joining, func(*Rollout) {}, "being applied now: " + restart2, false},
		"volume attached": {joining, func(r *Rollout) { r.Volumes = []rwx.Volume{attached("pvc-a", "node-1")} }, "will be applied when these RWX volumes are detached: pvc-a (node-1). Then " + restart2 + ".", true},
		"window closed":   {joining, func(r *Rollout) { r.Windows = sunday }, "waiting: " + window + ". Then " + restart2 + ".", true},
		"volume attached, window closed": {joining, func(r *Rollout) { r.Volumes, r.Windows = []rwx.Volume{attached("pvc-a", "node-1")}, sunday },
			"will be applied when these RWX volumes are detached: pvc-a (node-1); also waiting: " + window + ". Then " + restart2 + ".", true},
		// Regression: the first steps wait for no window, and the change was announced as applied now.
		"node by node, window closed": {joining, func(r *Rollout) { r.Gate, r.Windows = GateNode, sunday }, "waiting: " + window + ". Then " + restart2 + ".", true},
		"node by node": {joining, func(r *Rollout) { r.Gate, r.Volumes = GateNode, []rwx.Volume{attached("pvc-a", "node-1")} },
			"being applied node by node: 1 CSI plugin pod restarts now, then 1 CSI plugin pod restarts when these RWX volumes are detached: pvc-a (node-1)", false},
		"node by node, all nodes in use": {joining, func(r *Rollout) {
			r.Gate, r.Volumes = GateNode, []rwx.Volume{attached("pvc-a", "node-1", "node-2")}
		},
			"will be applied when these RWX volumes are detached: pvc-a (node-1, node-2). Then " + restart2 + ".", true},
		"a pod that is not Ready restarts outside windows": {joining, func(r *Rollout) { r.Gate, r.Windows, r.Clients[0].Ready = GateNode, sunday, false },
			"being applied: 1 CSI plugin pod restarts now; the rest is waiting: " + window, false},
		"node lost": {joining, func(r *Rollout) { r.Clients[0].Lost, r.Clients[0].Ready = true, false },
			"being applied: 1 CSI plugin pod restarts now; the rest is waiting: CSI plugin pod csi-node-1 on node-1 waits until the node is Ready", false},
		"leaves":             {onOne, func(r *Rollout) { r.Desired = clusterNet }, "being applied now: " + restart2 + ", after 10s, in case a Service is still being created", false},
		"to another network": {onOne, func(r *Rollout) { r.Desired = netTwo }, "being applied now: " + restart2 + ", after 10s, in case a Service is still being created", false},
		// Regression: the forecast stopped where Services of detached volumes are replaced, which comes before the restarts.
		"leaves, with a detached volume": {onOne, func(r *Rollout) { r.Desired, r.Services = clusterNet, []rwx.Service{service("pvc-a", netOne)} }, "being applied now: " + restart2 + ", after 10s, in case a Service is still being created", false},
		"leaves, with a detached volume, window closed": {onOne, func(r *Rollout) {
			r.Gate, r.Windows, r.Desired, r.Services = GateNode, sunday, clusterNet, []rwx.Service{service("pvc-a", netOne)}
		}, "waiting: " + window + ". Then " + restart2 + ".", true},
		"leaves, with a volume's own network": {onOne, func(r *Rollout) {
			r.MountsFromHost, r.Desired, r.Record.VolumeServers, r.Volumes = true, clusterNet, []multus.Attachment{netX}, []rwx.Volume{attached("pvc-a", "node-1")}
		}, "will be applied when these RWX volumes are detached: pvc-a (node-1). Then " + restart2 + ".", true},
		// Regression: while Services may still be created, volumes seemed to block a roll-out that is given up.
		"half joined, and taken back before Services have settled": {enabling, func(r *Rollout) {
			r.Desired, r.Record.ServersSince, r.Volumes = clusterNet, noon.Add(-settle/2), []rwx.Volume{attached("pvc-a", "node-1")}
			r.Clients[0], r.Clients[1] = client("node-1", clusterNet), client("node-2", netOne)
		}, "being applied now: 1 CSI plugin pod restarts, after 5s, in case a Service is still being created", false},
		"network missing, volume attached, window closed": {joining, func(r *Rollout) {
			r.Networks, r.Volumes, r.Windows = map[multus.Network]bool{}, []rwx.Volume{attached("pvc-a", "node-1")}, sunday
		}, "will be applied when these RWX volumes are detached: pvc-a (node-1); also waiting: there is no NetworkAttachmentDefinition kube-system/one, and pods on it do not start: create it, or choose another network; " + window + ". Then " + restart2 + ".", true},
		// Regression: the window was left out beside the server that is still there, and servers left long before clients could.
		"to another network node by node, window closed": {onOne, func(r *Rollout) {
			r.Gate, r.Windows, r.Desired, r.Volumes, r.Servers = GateNode, sunday, netTwo, []rwx.Volume{attached("pvc-a", "node-1")}, []rwx.Server{server("pvc-a", netOne)}
		}, "waiting: " + window + ". Then " + restart2 + ".", true},
		"off node by node, window closed, server still there": {onOne, func(r *Rollout) {
			r.Gate, r.Windows, r.Desired, r.Volumes, r.Servers = GateNode, sunday, clusterNet, []rwx.Volume{attached("pvc-a", "node-1")}, []rwx.Server{server("pvc-a", netOne)}
		}, "waiting: server pod share-manager-pvc-a is still on kube-system/one@lhnet1: stop the workloads of volume pvc-a; " + window + ". Then " + restart2 + ".", true},
		"from a deleted network, window closed": {onOne, func(r *Rollout) {
			r.Gate, r.Windows, r.Desired, r.Networks = GateNode, sunday, netTwo, map[multus.Network]bool{netTwo.Network: true}
		}, "waiting: " + window + ". Then " + restart2 + ".", true},
		"network missing": {joining, func(r *Rollout) { r.Networks = map[multus.Network]bool{} },
			"waiting: there is no NetworkAttachmentDefinition kube-system/one, and pods on it do not start: create it, or choose another network. Then " + restart2 + ".", true},
		// Regression: restarts were announced, and none came.
		"set back before a pod restarted": {enabling, func(r *Rollout) {
			r.Desired = clusterNet
			for i := range r.Clients {
				r.Clients[i].Network, r.Clients[i].Reported = clusterNet, false
			}
		}, "being applied now: no CSI plugin pod restarts", false},
		"set back after one restarted": {enabling, func(r *Rollout) {
			r.Desired, r.Clients[1] = clusterNet, client("node-2", netOne)
			r.Clients[0].Network, r.Clients[0].Reported = clusterNet, false
		}, "being applied now: 1 CSI plugin pod restarts", false},
		"applied": {onOne, func(*Rollout) {}, "being applied now: no CSI plugin pod restarts", false},
	} {
		t.Run(name, func(t *testing.T) {
			r := test.start()
			test.change(&r)
			clients := slices.Clone(r.Clients)
			o := Foresee(r)
			must.Equal(t, o.Message(), test.want)
			must.Equal(t, o.Waits(), test.waits)
			must.Equal(t, r.Clients, clients) // the facts stay as they are
		})
	}
}

func TestShortBlockers(t *testing.T) {
	volume := catalog.Blocker{Kind: catalog.BlockedByVolume, Name: "pvc-117d3553", Nodes: []string{"node-2"}, Workloads: []string{"default/web-0"}}
	must.Equal(t, catalog.Short([]catalog.Blocker{volume}), "1 RWX volume attached: pvc-117d3553")
}

func TestVolumeStates(t *testing.T) {
	r := onOne()
	r.Services = []rwx.Service{service("pvc-a", netOne), service("pvc-b", clusterNet), service("pvc-c", netOne)}
	must.Equal(t, r.VolumeStates(), map[VolumeState]int{VolumeOnNetwork: 2, VolumeOnClusterNetwork: 0, VolumeToMove: 1})
	r = onCluster()
	r.Services = []rwx.Service{service("pvc-a", clusterNet)}
	must.Equal(t, r.VolumeStates(), map[VolumeState]int{VolumeOnNetwork: 0, VolumeOnClusterNetwork: 1, VolumeToMove: 0})
}
