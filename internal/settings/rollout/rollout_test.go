package rollout

import (
	"reflect"
	"testing"
	"time"

	"github.com/fairlead-io/fairlead/internal/settings/catalog"
	"github.com/fairlead-io/fairlead/internal/storage"
)

var (
	clusterNet storage.Attachment
	netOne     = storage.Attachment{Network: storage.Network{Namespace: "kube-system", Name: "one"}, Interface: "lhnet1"}
	netTwo     = storage.Attachment{Network: storage.Network{Namespace: "kube-system", Name: "two"}, Interface: "lhnet2"}
	noon       = time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
)

// atRest is a cluster of two nodes with everything on the network.
func atRest(on storage.Attachment) Rollout {
	return Rollout{
		Desired: on, Record: Record{Clients: on, Servers: on, ServersSince: noon.Add(-time.Hour)}, Now: noon, Policy: Policy{Settle: settle},
		DaemonSet: DaemonSet{Name: "csi", Found: true, Network: on, Observed: true, Revision: "7", Wanted: 2, MaxUnavailable: 1},
		Clients:   []storage.Client{client("node-1", on), client("node-2", on)},
	}
}

// enabling is a cluster whose clients are recorded to go to the network.
func enabling() Rollout {
	r := atRest(clusterNet)
	r.Desired, r.Record.Clients, r.DaemonSet.Network, r.DaemonSet.Paused = netOne, netOne, netOne, true
	for i := range r.Clients {
		r.Clients[i].Revision = "6"
	}
	return r
}

func client(node string, on storage.Attachment) storage.Client {
	return storage.Client{Pod: "csi-" + node, UID: "uid-" + node, Node: node, Network: on, Revision: "7", Ready: true, Reported: !on.IsZero()}
}

func attached(name string, nodes ...string) storage.Volume {
	return storage.Volume{Name: name, Shared: true, Attached: true, Nodes: nodes}
}

func service(volume string, on storage.Attachment) storage.Service {
	s := storage.Service{Name: volume, Volume: volume, ClusterIP: "10.0.0.1"}
	if !on.IsZero() {
		s.ClusterIP, s.Recorded = storage.ClusterIPNone, on
	}
	return s
}

// waitsFor is the step while the change waits for attached volumes.
func waitsFor(volumes ...storage.Volume) Step {
	blockers := catalog.SharedVolumeGate(volumes)
	return Step{Phase: PhaseWaiting, Message: catalog.Short(blockers), Blockers: blockers, Updated: 2, Total: 2}
}

func TestNext(t *testing.T) {
	for name, test := range map[string]struct {
		start func() Rollout
		but   func(*Rollout)
		want  Step
	}{
		"applied: nothing to do": {
			start: func() Rollout { return atRest(netOne) },
			want:  Step{Applied: true, Phase: PhaseApplied, Message: "RWX volumes are on kube-system/one", Updated: 2, Total: 2},
		},
		"applied: on the cluster network": {
			start: func() Rollout { return atRest(clusterNet) },
			want:  Step{Applied: true, Phase: PhaseApplied, Message: "RWX volumes are on the cluster network", Updated: 2, Total: 2},
		},
		"applied: attached volumes follow when next attached": {
			start: func() Rollout { return atRest(netOne) },
			but: func(r *Rollout) {
				r.Volumes = []storage.Volume{attached("pvc-a", "node-1")}
				r.Services = []storage.Service{service("pvc-a", clusterNet)}
			},
			want: Step{Applied: true, Phase: PhaseApplied, Message: "RWX volumes are on kube-system/one; yet to be attached anew: pvc-a", Updated: 2, Total: 2},
		},
		"applied stays when a client is down for a while": {
			start: func() Rollout { return atRest(netOne) },
			but:   func(r *Rollout) { r.Clients[0].Ready = false },
			want:  Step{Applied: true, Phase: PhaseApplied, Message: "RWX volumes are on kube-system/one", Updated: 2, Total: 2},
		},
		"no storage system, and nothing is asked of it": {
			start: func() Rollout { return Rollout{Now: noon} },
			want:  Step{Applied: true, Phase: PhaseApplied, Message: "RWX volumes are on the cluster network"},
		},

		"disabling: servers first, attached volumes or not": {
			start: func() Rollout { return atRest(netOne) },
			but: func(r *Rollout) {
				r.Desired, r.Volumes = clusterNet, []storage.Volume{attached("pvc-a", "node-1")}
			},
			want: Step{Action: RecordServers, Network: clusterNet, Phase: PhaseSwitching, Message: "new servers go to the cluster network", Updated: 2, Total: 2},
		},
		"changing networks: servers leave the first one first": {
			start: func() Rollout { return atRest(netOne) },
			but:   func(r *Rollout) { r.Desired = netTwo },
			want:  Step{Action: RecordServers, Network: clusterNet, Phase: PhaseSwitching, Message: "new servers go to the cluster network", Updated: 2, Total: 2},
		},

		"changing networks: servers stay while a volume is attached": {
			start: func() Rollout { return atRest(netOne) },
			but: func(r *Rollout) {
				r.Desired, r.Volumes = netTwo, []storage.Volume{attached("pvc-a", "node-1")}
			},
			want: waitsFor(attached("pvc-a", "node-1")),
		},
		"changing networks: servers come back when a volume is attached before clients could leave": {
			start: func() Rollout { return atRest(netOne) },
			but: func(r *Rollout) {
				r.Desired, r.Record.Servers, r.Volumes = netTwo, clusterNet, []storage.Volume{attached("pvc-a", "node-1")}
			},
			want: Step{
				Action: RecordServers, Network: netOne, Phase: PhaseSwitching, Updated: 2, Total: 2, Blockers: catalog.SharedVolumeGate([]storage.Volume{attached("pvc-a", "node-1")}),
				Message: "the change waits: new servers stay on the network that every client is on",
			},
		},
		"changing networks, by node: servers leave the first one first, attached volumes or not": {
			start: func() Rollout { return atRest(netOne) },
			but: func(r *Rollout) {
				r.Desired, r.Gate, r.Volumes = netTwo, GateNode, []storage.Volume{attached("pvc-a", "node-1")}
			},
			want: Step{Action: RecordServers, Network: clusterNet, Phase: PhaseSwitching, Message: "new servers go to the cluster network", Updated: 2, Total: 2},
		},

		"enabling: the network does not exist": {
			start: func() Rollout { return atRest(clusterNet) },
			but:   func(r *Rollout) { r.Desired, r.Networks = netOne, NetworksThere(nil) },
			want:  Step{Phase: PhaseWaiting, Message: noNetwork(netOne).Message, Blockers: []catalog.Blocker{noNetwork(netOne)}, Updated: 2, Total: 2, After: MissingNetworkRetry},
		},
		"enabling: the network is deleted while clients roll": {
			start: enabling,
			but:   func(r *Rollout) { r.Networks = NetworksThere(nil) },
			want: Step{
				Phase: PhaseRolling, Message: "0 of 2 CSI plugin pods on the network; " + noNetwork(netOne).Message, Blockers: []catalog.Blocker{noNetwork(netOne)},
				Total: 2, After: MissingNetworkRetry,
			},
		},
		"enabling: another network is chosen before every client has reached the first": {
			start: enabling,
			but: func(r *Rollout) {
				r.Desired, r.Volumes = netTwo, []storage.Volume{attached("pvc-a", "node-1")}
				r.Clients[1].Network, r.Clients[1].Ready = netOne, false
			},
			want: Step{
				Action: RecordClients, Network: clusterNet, Phase: PhaseRolling, Total: 2,
				Message: "not every client has reached kube-system/one@lhnet1, and it is not asked for any more: clients go back to the cluster network",
			},
		},
		"enabling: the change waits, and clients are restarted for another setting": {
			start: func() Rollout { return atRest(clusterNet) },
			but: func(r *Rollout) {
				r.Desired, r.Volumes = netOne, []storage.Volume{attached("pvc-a", "node-1")}
				r.DaemonSet.Paused, r.DaemonSet.Revision = true, "8"
			},
			want: Step{
				Action: RestartClients, Clients: []storage.Client{client("node-2", clusterNet)}, Phase: PhaseWaiting, Total: 2,
				Message: "1 RWX volume attached: pvc-a", Blockers: catalog.SharedVolumeGate([]storage.Volume{attached("pvc-a", "node-1")}),
			},
		},
		"enabling, by node: clients begin while a volume is attached": {
			start: func() Rollout { return atRest(clusterNet) },
			but: func(r *Rollout) {
				r.Desired, r.Gate, r.Volumes = netOne, GateNode, []storage.Volume{attached("pvc-a", "node-1")}
			},
			want: Step{Action: RecordClients, Network: netOne, Phase: PhaseRolling, Message: "the gate is open: 2 CSI plugin pods restart", Updated: 2, Total: 2},
		},
		"disabling, by node: clients begin when no volume is on the network": {
			start: func() Rollout { return atRest(netOne) },
			but: func(r *Rollout) {
				r.Desired, r.Record.Servers, r.Gate, r.Volumes = clusterNet, clusterNet, GateNode, []storage.Volume{attached("pvc-a", "node-1")}
				r.Services = []storage.Service{service("pvc-a", clusterNet)}
			},
			want: Step{Action: RecordClients, Network: clusterNet, Phase: PhaseRolling, Message: "the gate is open: 2 CSI plugin pods restart", Updated: 2, Total: 2},
		},
		"disabling, by node: a volume is still on the network": {
			start: func() Rollout { return atRest(netOne) },
			but: func(r *Rollout) {
				r.Desired, r.Record.Servers, r.Gate, r.Volumes = clusterNet, clusterNet, GateNode, []storage.Volume{attached("pvc-a", "node-1")}
				r.Services = []storage.Service{service("pvc-a", netOne)}
			},
			want: Step{Phase: PhaseWaiting, Message: "Service pvc-a is still for kube-system/one@lhnet1: delete it once its volume is detached", Updated: 2, Total: 2, Blockers: []catalog.Blocker{{
				Kind: catalog.BlockedByService, Name: "pvc-a", Message: "Service pvc-a is still for kube-system/one@lhnet1: delete it once its volume is detached",
			}}},
		},
		"headless by a value that is not applied, volume detached: replaced": {
			start: func() Rollout { return atRest(clusterNet) },
			but: func(r *Rollout) {
				r.Volumes = []storage.Volume{{Name: "pvc-a", Shared: true}}
				r.Services = []storage.Service{{Name: "pvc-a", Volume: "pvc-a", ClusterIP: storage.ClusterIPNone}}
			},
			want: Step{
				Action: ReplaceServices, Services: []storage.Service{{Name: "pvc-a", Volume: "pvc-a", ClusterIP: storage.ClusterIPNone}},
				Phase: PhaseSwitching, Message: "replacing 1 Service of detached volumes", Updated: 2, Total: 2,
			},
		},

		"enabling: DaemonSet not found": {
			start: func() Rollout { return Rollout{Desired: netOne, Now: noon, DaemonSet: DaemonSet{Name: "csi"}} },
			want:  daemonSetWait("DaemonSet csi does not exist: is the storage system installed?", 0),
		},
		"enabling: DaemonSet opts out": {
			start: func() Rollout { return atRest(clusterNet) },
			but:   func(r *Rollout) { r.Desired, r.DaemonSet.OptOut = netOne, true },
			want:  daemonSetWait("DaemonSet csi opts out by fairlead.io/opt-out: remove the annotation from its template", 2),
		},
		"enabling: DaemonSet unreadable": {
			start: func() Rollout { return atRest(clusterNet) },
			but:   func(r *Rollout) { r.Desired, r.DaemonSet.Unreadable = netOne, true },
			want:  daemonSetWait("DaemonSet csi has an annotation k8s.v1.cni.cncf.io/networks that can't be read: correct it", 2),
		},
		"enabling: DaemonSet on the host network": {
			start: func() Rollout { return atRest(clusterNet) },
			but:   func(r *Rollout) { r.Desired, r.DaemonSet.HostNetwork = netOne, true },
			want:  daemonSetWait("DaemonSet csi is on the host network, where Multus adds no interface: set hostNetwork to false", 2),
		},
		"disabling: a DaemonSet on the host network doesn't matter": {
			start: func() Rollout { return atRest(netOne) },
			but: func(r *Rollout) {
				r.Desired, r.Record.Servers, r.DaemonSet.HostNetwork = clusterNet, clusterNet, true
			},
			want: Step{Action: RecordClients, Network: clusterNet, Phase: PhaseRolling, Message: "the gate is open: 2 CSI plugin pods restart", Updated: 2, Total: 2},
		},
		"enabling: a volume is attached": {
			start: func() Rollout { return atRest(clusterNet) },
			but: func(r *Rollout) {
				r.Desired, r.Volumes = netOne, []storage.Volume{attached("pvc-a", "node-1"), {Name: "rwo", Attached: true}}
			},
			want: Step{Phase: PhaseWaiting, Message: "1 RWX volume attached: pvc-a", Updated: 2, Total: 2, Blockers: []catalog.Blocker{{
				Kind: catalog.BlockedByVolume, Name: "pvc-a", Nodes: []string{"node-1"},
				Message: "RWX volume is attached: stop the workloads that use it, so that it is detached",
			}}},
		},
		"enabling: the gate is open": {
			start: func() Rollout { return atRest(clusterNet) },
			but: func(r *Rollout) {
				r.Desired, r.Volumes = netOne, []storage.Volume{{Name: "pvc-a", Shared: true}, {Name: "rwo", Attached: true}}
			},
			want: Step{Action: RecordClients, Network: netOne, Phase: PhaseRolling, Message: "the gate is open: 2 CSI plugin pods restart", Updated: 2, Total: 2},
		},

		"leaving a network: Services just admitted settle": {
			start: func() Rollout { return atRest(netOne) },
			but: func(r *Rollout) {
				r.Desired, r.Record.Servers, r.Record.ServersSince = clusterNet, clusterNet, noon.Add(-4*time.Second)
			},
			want: Step{
				Phase: PhaseWaiting, Message: "letting Services settle that were just admitted", Updated: 2, Total: 2, After: 6 * time.Second,
				Blockers: []catalog.Blocker{{Kind: catalog.BlockedByTime, Message: "letting Services settle that were just admitted"}},
			},
		},
		"leaving a network: the settle time is over to the tick": {
			start: func() Rollout { return atRest(netOne) },
			but: func(r *Rollout) {
				r.Desired, r.Record.Servers, r.Record.ServersSince = clusterNet, clusterNet, noon.Add(-settle)
			},
			want: Step{Action: RecordClients, Network: clusterNet, Phase: PhaseRolling, Message: "the gate is open: 2 CSI plugin pods restart", Updated: 2, Total: 2},
		},
		"leaving the cluster network needs no settle time": {
			start: func() Rollout { return atRest(clusterNet) },
			but:   func(r *Rollout) { r.Desired, r.Record.ServersSince = netOne, noon },
			want:  Step{Action: RecordClients, Network: netOne, Phase: PhaseRolling, Message: "the gate is open: 2 CSI plugin pods restart", Updated: 2, Total: 2},
		},
		"leaving a network: Services at rest are replaced": {
			start: func() Rollout { return atRest(netOne) },
			but: func(r *Rollout) {
				r.Desired, r.Record.Servers = clusterNet, clusterNet
				r.Services = []storage.Service{service("pvc-a", netOne), service("pvc-b", clusterNet)}
			},
			want: Step{
				Action: ReplaceServices, Services: []storage.Service{service("pvc-a", netOne)}, Phase: PhaseSwitching,
				Message: "replacing 1 Service of detached volumes", Updated: 2, Total: 2,
			},
		},
		"leaving a network: a server is still on it": {
			start: func() Rollout { return atRest(netOne) },
			but: func(r *Rollout) {
				r.Desired, r.Record.Servers = clusterNet, clusterNet
				r.Servers = []storage.Server{{Pod: "share-manager-pvc-a", Volume: "pvc-a", Node: "node-1", Network: netOne}, {Pod: "share-manager-pvc-b", Volume: "pvc-b"}}
				r.Services = []storage.Service{service("pvc-a", netOne), service("pvc-b", clusterNet)}
			},
			want: Step{
				Phase: PhaseWaiting, Message: "server pod share-manager-pvc-a is still on kube-system/one@lhnet1", Updated: 2, Total: 2,
				Blockers: []catalog.Blocker{
					{Kind: catalog.BlockedByServer, Name: "share-manager-pvc-a", Nodes: []string{"node-1"}, Message: "server pod share-manager-pvc-a is still on kube-system/one@lhnet1"},
					{Kind: catalog.BlockedByService, Name: "pvc-a", Message: "Service pvc-a is still for kube-system/one@lhnet1: delete it once its volume is detached"},
				},
			},
		},
		"leaving a network: a Service that opts out is left, and waited for": {
			start: func() Rollout { return atRest(netOne) },
			but: func(r *Rollout) {
				r.Desired, r.Record.Servers = clusterNet, clusterNet
				s := service("pvc-a", netOne)
				s.OptOut = true
				r.Services = []storage.Service{s}
			},
			want: Step{
				Phase: PhaseWaiting, Message: "Service pvc-a is still for kube-system/one@lhnet1: delete it once its volume is detached", Updated: 2, Total: 2,
				Blockers: []catalog.Blocker{{Kind: catalog.BlockedByService, Name: "pvc-a", Message: "Service pvc-a is still for kube-system/one@lhnet1: delete it once its volume is detached"}},
			},
		},

		"rolling: the template first": {
			start: enabling,
			but:   func(r *Rollout) { r.DaemonSet.Network, r.DaemonSet.Paused = clusterNet, false },
			want:  Step{Action: UpdateTemplate, Phase: PhaseRolling, Message: "0 of 2 CSI plugin pods on the network", Total: 2},
		},
		"rolling: no restart before the DaemonSet controller has seen the template": {
			start: enabling,
			but:   func(r *Rollout) { r.DaemonSet.Observed = false },
			want:  Step{Phase: PhaseRolling, Message: "0 of 2 CSI plugin pods on the network", Total: 2},
		},
		"rolling: as many at a time as may be down": {
			start: enabling,
			want: Step{
				Action: RestartClients, Clients: []storage.Client{enabling().Clients[0]}, Phase: PhaseRolling,
				Message: "0 of 2 CSI plugin pods on the network", Total: 2,
			},
		},
		"rolling: one for each look at what is attached, also where more may be down": {
			start: enabling,
			but:   func(r *Rollout) { r.DaemonSet.MaxUnavailable = 5 },
			want: Step{
				Action: RestartClients, Clients: enabling().Clients[:1], Phase: PhaseRolling,
				Message: "0 of 2 CSI plugin pods on the network", Total: 2,
			},
		},
		"rolling: the budget is spent on a pod that is to come": {
			start: enabling,
			but:   func(r *Rollout) { r.Clients = r.Clients[1:] },
			want: Step{
				Phase: PhaseRolling, Message: "0 of 2 CSI plugin pods on the network; 1 CSI plugin pod to come", Total: 2,
				Blockers: []catalog.Blocker{{Kind: catalog.BlockedByClient, Name: "csi", Message: "1 CSI plugin pod to come"}},
			},
		},
		"rolling: the budget is spent on a pod that is terminating, say on a lost node": {
			start: enabling,
			but:   func(r *Rollout) { r.Clients[0].Terminating = true },
			want: Step{
				Phase: PhaseRolling, Message: "0 of 2 CSI plugin pods on the network; CSI plugin pod csi-node-1 on node-1 is still terminating", Total: 2,
				Blockers: []catalog.Blocker{{Kind: catalog.BlockedByClient, Name: "csi-node-1", Nodes: []string{"node-1"}, Message: "CSI plugin pod csi-node-1 on node-1 is still terminating"}},
			},
		},
		"rolling: an installer took the rolling update back": {
			start: enabling,
			but:   func(r *Rollout) { r.DaemonSet.Paused = false },
			want:  Step{Action: UpdateTemplate, Phase: PhaseRolling, Message: "0 of 2 CSI plugin pods on the network", Total: 2},
		},
		"rolling: no restart helps a pod that lost what its template asks for": {
			start: func() Rollout { return atRest(netOne) },
			but: func(r *Rollout) {
				r.Record.Servers, r.DaemonSet.Paused = clusterNet, true
				r.Clients[0].Network = clusterNet
			},
			want: Step{
				Phase: PhaseRolling, Message: "1 of 2 CSI plugin pods on the network; CSI plugin pod csi-node-1 on node-1 came up without the network of its template: does another webhook take it away?", Updated: 1, Total: 2,
				Blockers: []catalog.Blocker{{Kind: catalog.BlockedByClient, Name: "csi-node-1", Nodes: []string{"node-1"}, Message: "CSI plugin pod csi-node-1 on node-1 came up without the network of its template: does another webhook take it away?"}},
			},
		},
		"astray: servers leave the network that a client came up without": {
			start: func() Rollout { return atRest(netOne) },
			but:   func(r *Rollout) { r.Clients[0].Network = clusterNet },
			want:  Step{Action: RecordServers, Phase: PhaseSwitching, Message: "new servers go to the cluster network until every client is back", Updated: 1, Total: 2},
		},
		"astray: servers leave the network that the template was taken off": {
			start: func() Rollout { return atRest(netOne) },
			but:   func(r *Rollout) { r.DaemonSet.Network = clusterNet },
			want:  Step{Action: RecordServers, Phase: PhaseSwitching, Message: "new servers go to the cluster network until every client is back", Updated: 2, Total: 2},
		},
		"nothing asked: an opted-out DaemonSet keeps what it has": {
			start: func() Rollout { return atRest(clusterNet) },
			but: func(r *Rollout) {
				r.DaemonSet.Network, r.DaemonSet.OptOut, r.Clients[0].Network = netOne, true, netOne
			},
			want: Step{Applied: true, Phase: PhaseApplied, Message: "RWX volumes are on the cluster network", Updated: 1, Total: 2},
		},
		"nothing asked: clients that others put on a network stay while a server is there": {
			start: func() Rollout { return atRest(clusterNet) },
			but: func(r *Rollout) {
				r.DaemonSet.Network = netOne
				r.Servers = []storage.Server{{Pod: "share-manager-pvc-a", Volume: "pvc-a", Node: "node-1", Network: netOne}}
			},
			want: Step{
				Phase: PhaseWaiting, Message: "server pod share-manager-pvc-a is still on kube-system/one@lhnet1", Updated: 2, Total: 2,
				Blockers: []catalog.Blocker{{Kind: catalog.BlockedByServer, Name: "share-manager-pvc-a", Nodes: []string{"node-1"}, Message: "server pod share-manager-pvc-a is still on kube-system/one@lhnet1"}},
			},
		},
		"a Service that can't be headless is left alone": {
			start: func() Rollout { return atRest(netOne) },
			but: func(r *Rollout) {
				s := service("pvc-a", clusterNet)
				s.Fixed = true
				r.Services = []storage.Service{s}
			},
			want: Step{Applied: true, Phase: PhaseApplied, Message: "RWX volumes are on kube-system/one", Updated: 2, Total: 2},
		},
		"rolling: a DaemonSet that opts out meanwhile is left alone": {
			start: enabling,
			but:   func(r *Rollout) { r.DaemonSet.OptOut = true },
			want: Step{
				Phase: PhaseWaiting, Message: "DaemonSet csi opts out by fairlead.io/opt-out: remove the annotation from its template", Total: 2,
				Blockers: []catalog.Blocker{{Kind: catalog.BlockedByDaemonSet, Name: "csi", Message: "DaemonSet csi opts out by fairlead.io/opt-out: remove the annotation from its template"}},
			},
		},
		"rolling: a pod that is not Ready costs no budget": {
			start: enabling,
			but:   func(r *Rollout) { r.Clients[1].Ready = false },
			want: Step{
				Action: RestartClients, Clients: []storage.Client{notReady(enabling().Clients[1])}, Phase: PhaseRolling,
				Message: "0 of 2 CSI plugin pods on the network", Total: 2,
			},
		},
		"rolling: never where a volume is attached": {
			start: enabling,
			but: func(r *Rollout) {
				r.Volumes = []storage.Volume{attached("pvc-a", "node-1", "node-2"), {Name: "rwo", Attached: true, Nodes: []string{"node-2"}}}
			},
			want: Step{
				Phase: PhaseRolling, Message: "0 of 2 CSI plugin pods on the network; 1 RWX volume attached: pvc-a", Total: 2,
				Blockers: []catalog.Blocker{{
					Kind: catalog.BlockedByVolume, Name: "pvc-a", Nodes: []string{"node-1", "node-2"},
					Message: "RWX volume is attached where CSI plugin pod csi-node-1 must restart",
				}},
			},
		},
		"rolling: elsewhere meanwhile": {
			start: enabling,
			but:   func(r *Rollout) { r.Volumes = []storage.Volume{attached("pvc-a", "node-1")} },
			want: Step{
				Action: RestartClients, Clients: []storage.Client{enabling().Clients[1]}, Phase: PhaseRolling,
				Message: "0 of 2 CSI plugin pods on the network", Total: 2,
			},
		},
		"rolling: nowhere while a volume is attached nobody knows where": {
			start: enabling,
			but:   func(r *Rollout) { r.Volumes = []storage.Volume{attached("pvc-a")} },
			want: Step{
				Phase: PhaseRolling, Message: "0 of 2 CSI plugin pods on the network; 1 RWX volume attached: pvc-a", Total: 2,
				Blockers: []catalog.Blocker{{
					Kind: catalog.BlockedByVolume, Name: "pvc-a", Nodes: []string{"node-1", "node-2"},
					Message: "RWX volume is attached where CSI plugin pod csi-node-1 must restart",
				}},
			},
		},
		"rolling: not even a pod that is not Ready where a volume is attached": {
			start: enabling,
			but: func(r *Rollout) {
				r.Clients[0].Ready = false
				r.Volumes = []storage.Volume{attached("pvc-a", "node-1")}
				r.Clients[1] = client("node-2", netOne)
			},
			want: Step{
				Phase: PhaseRolling, Message: "1 of 2 CSI plugin pods on the network; 1 RWX volume attached: pvc-a", Updated: 1, Total: 2,
				Blockers: []catalog.Blocker{{
					Kind: catalog.BlockedByVolume, Name: "pvc-a", Nodes: []string{"node-1"},
					Message: "RWX volume is attached where CSI plugin pod csi-node-1 must restart",
				}},
			},
		},
		"rolling: an older template counts while paused, whatever its network": {
			start: enabling,
			but: func(r *Rollout) {
				r.Clients = []storage.Client{client("node-1", netOne), client("node-2", netOne)}
				r.Clients[1].Revision = "6"
			},
			want: Step{
				Action: RestartClients, Clients: []storage.Client{{Pod: "csi-node-2", UID: "uid-node-2", Node: "node-2", Network: netOne, Revision: "6", Ready: true, Reported: true}},
				Phase: PhaseRolling, Message: "1 of 2 CSI plugin pods of the newest template", Updated: 1, Total: 2,
			},
		},
		"rolling: a new pod without an address is waited for": {
			start: enabling,
			but: func(r *Rollout) {
				r.Clients = []storage.Client{client("node-1", netOne), client("node-2", netOne)}
				r.Clients[1].Reported = false
			},
			want: Step{
				Phase: PhaseRolling, Updated: 2, Total: 2,
				Message: "2 of 2 CSI plugin pods on the network; CSI plugin pod csi-node-2 on node-2 has no address yet on kube-system/one@lhnet1: Multus reports none",
				Blockers: []catalog.Blocker{{
					Kind: catalog.BlockedByClient, Name: "csi-node-2", Nodes: []string{"node-2"},
					Message: "CSI plugin pod csi-node-2 on node-2 has no address yet on kube-system/one@lhnet1: Multus reports none",
				}},
			},
		},
		"rolling: pods that are not Ready, terminating or to come are waited for": {
			start: enabling,
			but: func(r *Rollout) {
				r.DaemonSet.Wanted = 3
				r.Clients = []storage.Client{notReady(client("node-1", netOne)), client("node-2", netOne)}
				r.Clients[1].Terminating = true
			},
			want: Step{
				Phase: PhaseRolling, Updated: 2, Total: 3,
				Message: "2 of 3 CSI plugin pods on the network; CSI plugin pod csi-node-1 on node-1 is not Ready",
				Blockers: []catalog.Blocker{
					{Kind: catalog.BlockedByClient, Name: "csi-node-1", Nodes: []string{"node-1"}, Message: "CSI plugin pod csi-node-1 on node-1 is not Ready"},
					{Kind: catalog.BlockedByClient, Name: "csi-node-2", Nodes: []string{"node-2"}, Message: "CSI plugin pod csi-node-2 on node-2 is still terminating"},
					{Kind: catalog.BlockedByClient, Name: "csi", Message: "1 CSI plugin pod to come"},
				},
			},
		},
		"rolled: the DaemonSet gets its own strategy back": {
			start: enabling,
			but: func(r *Rollout) {
				r.Clients = []storage.Client{client("node-1", netOne), client("node-2", netOne)}
			},
			want: Step{Action: ResumeTemplate, Phase: PhaseRolling, Message: "2 of 2 CSI plugin pods on the network", Updated: 2, Total: 2},
		},
		"rolled back: applied, whoever restarts pods": {
			start: func() Rollout { return atRest(clusterNet) },
			but:   func(r *Rollout) { r.DaemonSet.Paused = true },
			want: Step{
				Action: ResumeTemplate, Applied: true, Phase: PhaseApplied, Message: "RWX volumes are on the cluster network", Updated: 2, Total: 2,
				Volumes: Progress{Phase: PhaseRolling, Message: "2 of 2 CSI plugin pods of the newest template"},
			},
		},
		"rolled: servers follow": {
			start: func() Rollout { return atRest(netOne) },
			but:   func(r *Rollout) { r.Record.Servers = clusterNet },
			want:  Step{Action: RecordServers, Network: netOne, Phase: PhaseSwitching, Message: "every client is on the network: new servers follow", Updated: 2, Total: 2},
		},
		"servers don't follow while one client is not Ready": {
			start: func() Rollout { return atRest(netOne) },
			but: func(r *Rollout) {
				r.Record.Servers = clusterNet
				r.Clients[0].Ready = false
			},
			want: Step{
				Phase: PhaseRolling, Updated: 2, Total: 2,
				Message:  "2 of 2 CSI plugin pods on the network; CSI plugin pod csi-node-1 on node-1 is not Ready",
				Blockers: []catalog.Blocker{{Kind: catalog.BlockedByClient, Name: "csi-node-1", Nodes: []string{"node-1"}, Message: "CSI plugin pod csi-node-1 on node-1 is not Ready"}},
			},
		},
		"switched: Services of volumes at rest are made anew": {
			start: func() Rollout { return atRest(netOne) },
			but: func(r *Rollout) {
				optedOut := service("pvc-d", clusterNet)
				optedOut.OptOut = true
				r.Volumes = []storage.Volume{{Name: "pvc-a", Shared: true}, attached("pvc-b", "node-1")}
				r.Servers = []storage.Server{{Pod: "share-manager-pvc-c", Volume: "pvc-c"}}
				r.Services = []storage.Service{service("pvc-a", clusterNet), service("pvc-b", clusterNet), service("pvc-c", clusterNet), optedOut}
			},
			want: Step{
				Action: ReplaceServices, Services: []storage.Service{service("pvc-a", clusterNet)}, Phase: PhaseSwitching,
				Message: "replacing 1 Service of detached volumes", Updated: 2, Total: 2,
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			r := test.start()
			if test.but != nil {
				test.but(&r)
			}
			if got := Next(r); !reflect.DeepEqual(got, test.want) {
				t.Fatalf("got  %+v\nwant %+v", got, test.want)
			}
		})
	}
}

func TestNextLeavesItsFactsAsTheyAre(t *testing.T) {
	r := enabling()
	r.Clients[0], r.Clients[1] = r.Clients[1], r.Clients[0]
	r.Volumes = []storage.Volume{attached("pvc-b", "node-2"), attached("pvc-a")}
	before := r
	before.Clients = append([]storage.Client(nil), r.Clients...)
	before.Volumes = append([]storage.Volume(nil), r.Volumes...)
	Next(r)
	if !reflect.DeepEqual(r, before) {
		t.Fatalf("got  %+v\nwant %+v", r, before)
	}
}

func daemonSetWait(message string, pods int) Step {
	return Step{
		Phase: PhaseWaiting, Message: message, Updated: pods, Total: pods,
		Blockers: []catalog.Blocker{{Kind: catalog.BlockedByDaemonSet, Name: "csi", Message: message}},
	}
}

func notReady(c storage.Client) storage.Client {
	c.Ready = false
	return c
}

func TestDeletedNetworkIsReportedAtRest(t *testing.T) {
	r := atRest(netOne)
	r.Networks = map[storage.Network]bool{}
	blocker := deletedNetwork(netOne.Network, ", and the server pods of RWX volumes,")
	want := Step{
		Phase: PhaseApplied, Applied: true, Message: "RWX volumes are on kube-system/one", Updated: 2, Total: 2,
		Volumes: Progress{Phase: PhaseWaiting, Message: blocker.Message, Blockers: []catalog.Blocker{blocker}},
	}
	if got := Next(r); !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v", got)
	}
}

// A pod may ask for both interfaces after an upgrade of the storage system.
func TestSecondInterfaceCounts(t *testing.T) {
	both := []storage.Attachment{netTwo, netOne}
	r := atRest(netOne)
	r.DaemonSet.Network, r.DaemonSet.Networks = netTwo, both
	for i := range r.Clients {
		c := &r.Clients[i]
		c.Network, c.Networks, c.Reported, c.NetworksReported = netTwo, both, false, both[1:]
	}
	want := Step{Phase: PhaseApplied, Applied: true, Message: "RWX volumes are on kube-system/one", Updated: 2, Total: 2}
	if got := Next(r); !reflect.DeepEqual(got, want) {
		t.Errorf("at rest: got %+v", got)
	}
	r.Record.Servers = clusterNet
	if got := Next(r); got.Action != RecordServers || got.Network != netOne {
		t.Errorf("every client is there, servers are not: got %+v", got)
	}
	r.Desired, r.Record = clusterNet, Record{}
	if got := Next(r); got.Action != UpdateTemplate {
		t.Errorf("no network is wanted: got %+v", got)
	}
}
