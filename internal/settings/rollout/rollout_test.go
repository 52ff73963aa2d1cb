package rollout

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/fairlead-io/fairlead/internal/multus"
	"github.com/fairlead-io/fairlead/internal/rwx"
	"github.com/fairlead-io/fairlead/internal/settings/catalog"
	"github.com/fairlead-io/fairlead/internal/testkit/must"
)

var (
	clusterNet multus.Attachment
	netOne     = multus.Attachment{Network: multus.Network{Namespace: "kube-system", Name: "one"}, Interface: "lhnet1"}
	netTwo     = multus.Attachment{Network: multus.Network{Namespace: "kube-system", Name: "two"}, Interface: "lhnet2"}
	noon       = time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
)

// settled is a cluster of two nodes with clients and servers on the network.
func settled(on multus.Attachment) Rollout {
	return Rollout{
		Desired: on, Record: Record{Clients: on, Servers: on, ServersSince: noon.Add(-time.Hour)}, Now: noon, Policy: Policy{Settle: settle},
		DaemonSet: DaemonSet{Name: "csi", Found: true, Network: on, Observed: true, Revision: "7", Wanted: 2, MaxUnavailable: 1},
		Clients:   []rwx.Client{client("node-1", on), client("node-2", on)},
	}
}

func onOne() Rollout     { return settled(netOne) }
func onCluster() Rollout { return settled(clusterNet) }

// enabling is a cluster whose clients must move to the network.
func enabling() Rollout {
	r := onCluster()
	r.Desired, r.Record.Clients, r.DaemonSet.Network, r.DaemonSet.Paused = netOne, netOne, netOne, true
	for i := range r.Clients {
		r.Clients[i].Revision = "6"
	}
	return r
}

// rolled is enabling, with all clients on the network.
func rolled() Rollout {
	r := enabling()
	r.Clients = onOne().Clients
	return r
}

func client(node string, on multus.Attachment) rwx.Client {
	return rwx.Client{Pod: "csi-" + node, UID: "uid-" + node, Node: node, Network: on, Revision: "7", Ready: true, Reported: !on.IsZero()}
}

func attached(name string, nodes ...string) rwx.Volume {
	return rwx.Volume{Name: name, Shared: true, Attached: true, Nodes: nodes}
}

func service(volume string, on multus.Attachment) rwx.Service {
	s := rwx.Service{Name: volume, Volume: volume, ClusterIP: "10.0.0.1"}
	if !on.IsZero() {
		s.ClusterIP, s.Recorded = rwx.ClusterIPNone, on
	}
	return s
}

func server(volume string, on multus.Attachment) rwx.Server {
	return rwx.Server{Pod: "share-manager-" + volume, Volume: volume, Node: "node-1", Network: on}
}

func blocker(kind catalog.BlockerKind, name, message string, nodes ...string) catalog.Blocker {
	return catalog.Blocker{Kind: kind, Name: name, Nodes: nodes, Message: message}
}

// pod is a blocker that is a CSI plugin pod.
func pod(node, message string) catalog.Blocker {
	return blocker(catalog.BlockedByClient, "csi-"+node, "CSI plugin pod csi-"+node+" on "+node+" "+message, node)
}

// inUse is the volume that blocks the restart of the client on node-1.
func inUse(nodes ...string) catalog.Blocker {
	return blocker(catalog.BlockedByVolume, "pvc-a", "RWX volume is attached where CSI plugin pod csi-node-1 must restart: drain the node, or stop the workloads", nodes...)
}

func applied(message string) Step {
	return Step{Applied: true, Phase: PhaseApplied, Message: "RWX volumes are on " + message, Updated: 2, Total: 2}
}

func waits(blockers ...catalog.Blocker) Step {
	return Step{Phase: PhaseWaiting, Message: catalog.Short(blockers), Blockers: blockers, Updated: 2, Total: 2}
}

// serversTo records the network of servers, clientsTo that of clients.
func serversTo(on multus.Attachment, message string) Step {
	return Step{Action: RecordServers, Network: on, Phase: PhaseSwitching, Message: message, Updated: 2, Total: 2}
}

func clientsTo(on multus.Attachment) Step {
	return Step{Action: RecordClients, Network: on, Phase: PhaseRolling, Message: "being applied now: 2 CSI plugin pods restart", Updated: 2, Total: 2}
}

func clientsNodeByNode(on multus.Attachment) Step {
	s := clientsTo(on)
	s.Message = "being applied node by node: 2 CSI plugin pods restart, each when no RWX volume is attached on its node"
	return s
}

// rolling is a step with a number of clients on the network.
func rolling(on int, action Action, blockers ...catalog.Blocker) Step {
	message := catalog.Joined(fmt.Sprintf("%d of 2 CSI plugin pods on the network", on), catalog.Short(blockers))
	return Step{Action: action, Phase: PhaseRolling, Message: message, Blockers: blockers, Updated: on, Total: 2}
}

func restarts(c rwx.Client) Step {
	s := rolling(0, RestartClients)
	s.Clients = []rwx.Client{c}
	return s
}

func replaces(s rwx.Service) Step {
	return Step{Action: ReplaceServices, Services: []rwx.Service{s}, Phase: PhaseSwitching, Message: "replacing 1 Service of detached volumes", Updated: 2, Total: 2}
}

// with changes fields of a step.
func with(s Step, change func(*Step)) Step {
	change(&s)
	return s
}

func unready(c rwx.Client) rwx.Client {
	c.Ready = false
	return c
}

// stepTest is the next step of a cluster after a change.
type stepTest struct {
	start  func() Rollout
	change func(*Rollout)
	want   Step
}

func checkSteps(t *testing.T, tests map[string]stepTest) {
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			r := test.start()
			if test.change != nil {
				test.change(&r)
			}
			must.Equal(t, Next(r), test.want)
		})
	}
}

func TestBlockersNameWorkloads(t *testing.T) {
	used := attached("pvc-a", "node-1", "node-2")
	used.Workloads = []string{"default/web-0"}
	for name, test := range map[string]struct {
		rollout func() Rollout
		change  func(*Rollout)
		want    []string
	}{
		"client must restart":                 {enabling, func(*Rollout) {}, []string{"pvc-a"}},
		"client must join a volume's network": {onVolumeNetworks(false, netX), withoutX, []string{"pvc-a"}},
		"server is on the former network": {onOne, func(r *Rollout) {
			r.Desired, r.Record.Servers, r.Gate = clusterNet, clusterNet, GateNode
			r.Servers, r.Services = []rwx.Server{server("pvc-a", netOne)}, []rwx.Service{service("pvc-a", netOne)}
		}, []string{"share-manager-pvc-a", "pvc-a"}},
	} {
		t.Run(name, func(t *testing.T) {
			r := test.rollout()
			r.Volumes = append(r.Volumes, used)
			test.change(&r)
			s := Next(r)
			var names []string
			for _, b := range append(s.Blockers, s.Volumes.Blockers...) {
				if b.Kind != catalog.BlockedByClient {
					names = append(names, b.Name)
					must.Equal(t, b.Workloads, used.Workloads, b.Name)
				}
			}
			must.Equal(t, names, test.want)
		})
	}
}

func TestNext(t *testing.T) {
	const (
		leaves    = "new servers go to the cluster network"
		astray    = leaves + " until every client is back"
		onServer  = "server pod share-manager-pvc-a is still on kube-system/one@lhnet1"
		onSvc     = "Service pvc-a is still for kube-system/one@lhnet1, and is recreated once its volume is detached"
		onSvcOut  = "Service pvc-a is still for kube-system/one@lhnet1, and opts out, so that you delete it once its volume is detached"
		stopUsers = ": stop the workloads of volume pvc-a"
		optsOut   = "DaemonSet csi opts out by fairlead.io/opt-out: remove the annotation from its template"
		admitted  = "waiting until 12:00:06 UTC, in case a Service is still being created"
		abandoned = "CSI plugin pods return to the cluster network: not all of them have joined kube-system/one@lhnet1, which the settings no longer choose"
		lost      = "started without the network of its template: check whether another webhook removes it"
	)
	daemonSet := func(message string) Step { return waits(blocker(catalog.BlockedByDaemonSet, "csi", message)) }
	headless := rwx.Service{Name: "pvc-a", Volume: "pvc-a", ClusterIP: rwx.ClusterIPNone}
	attachedA := []rwx.Volume{attached("pvc-a", "node-1")}
	gate := catalog.SharedVolumeGate(attachedA)
	serverA, serviceA := blocker(catalog.BlockedByServer, "share-manager-pvc-a", onServer, "node-1"), blocker(catalog.BlockedByService, "pvc-a", onSvc)
	down, leftA := pod("node-1", "is not Ready"), service("pvc-a", netOne)
	disable := func(change func(*Rollout)) func(*Rollout) { // servers have left the network
		return func(r *Rollout) {
			r.Desired, r.Record.Servers = clusterNet, clusterNet
			if change != nil {
				change(r)
			}
		}
	}
	checkSteps(t, map[string]stepTest{
		"applied on a network":             {onOne, nil, applied("kube-system/one")},
		"applied on the cluster network":   {onCluster, nil, applied("the cluster network")},
		"applied while a client is down":   {onOne, func(r *Rollout) { r.Clients[0].Ready = false }, applied("kube-system/one")},
		"applied without a storage system": {func() Rollout { return Rollout{Now: noon} }, nil, Step{Applied: true, Phase: PhaseApplied, Message: "RWX volumes are on the cluster network"}},
		"invalid value":                    {onOne, func(r *Rollout) { r.Invalid = errors.New("no network") }, Step{Phase: PhaseInvalid, Message: "not applied until the value is corrected: no network"}},
		"networks can't be listed": {onOne, func(r *Rollout) { r.Unlisted = "a timeout" },
			with(waits(blocker(catalog.BlockedByNetwork, "all", "NetworkAttachmentDefinitions cannot be listed: a timeout")), func(s *Step) { s.After = MissingNetworkRetry })},
		"networks can't be listed, and none is used":  {onCluster, func(r *Rollout) { r.Unlisted = "a timeout" }, applied("the cluster network")},
		"applied: Services are on the network":        {onOne, func(r *Rollout) { r.Volumes, r.Services = attachedA, []rwx.Service{leftA} }, applied("kube-system/one")},
		"applied: pods of an older template may stay": {onOne, func(r *Rollout) { r.Clients[0].Revision = "6" }, applied("kube-system/one")},
		"applied: a client has lost its address": {onOne, func(r *Rollout) { r.Clients[0].Reported = false },
			applied("kube-system/one; CSI plugin pod csi-node-1 on node-1 has no address on the network: Multus reports none")},
		"applied: a client that is down has no address": {onOne, func(r *Rollout) { r.Clients[0].Ready, r.Clients[0].Reported = false, false }, applied("kube-system/one")},
		"applied: a Service that opts out stays": {onOne, func(r *Rollout) {
			r.Volumes, r.Services = attachedA, []rwx.Service{service("pvc-a", clusterNet)}
			r.Services[0].OptOut = true
		}, applied("kube-system/one")},
		"applied: attached volumes follow when next attached": {onOne, func(r *Rollout) { r.Volumes, r.Services = attachedA, []rwx.Service{service("pvc-a", clusterNet)} },
			applied("kube-system/one; still to be reattached: pvc-a")},

		"disabling: servers leave first, with attached volumes": {onOne, func(r *Rollout) { r.Desired, r.Volumes = clusterNet, attachedA }, serversTo(clusterNet, leaves)},
		"changing: servers leave first":                         {onOne, func(r *Rollout) { r.Desired = netTwo }, serversTo(clusterNet, leaves)},
		"changing: servers do not return while a Service may still be created": {onOne, func(r *Rollout) {
			r.Desired, r.Record.Servers, r.Record.ServersSince = netTwo, clusterNet, noon.Add(-4*time.Second)
		},
			with(waits(blocker(catalog.BlockedByTime, "networks.settle", admitted)), func(s *Step) { s.After = 6 * time.Second })},
		"changing: servers do not return while a client is down": {
			onOne, func(r *Rollout) {
				r.Desired, r.Record.Servers, r.Volumes, r.Clients[0].Ready = netTwo, clusterNet, attachedA, false
			}, waits(gate...)},
		"changing: Services of idle volumes follow meanwhile": {onOne, func(r *Rollout) {
			r.Desired, r.Volumes, r.Services = netTwo, attachedA, []rwx.Service{service("pvc-b", clusterNet)}
		}, with(waits(gate...), func(s *Step) { s.Action, s.Services = ReplaceServices, []rwx.Service{service("pvc-b", clusterNet)} })},
		"changing: the present network is deleted": {onOne, func(r *Rollout) {
			r.Desired, r.Record.Servers, r.Volumes, r.Networks = netTwo, clusterNet, attachedA, networkSet([]multus.Network{netTwo.Network})
		}, Step{Action: RecordClients, Phase: PhaseRolling, Updated: 2, Total: 2, Message: abandoned}},
		"disabling: servers do not return while a volume is attached": {onOne, disable(func(r *Rollout) { r.Volumes = attachedA }), waits(gate...)},
		"disabling: DaemonSet opts out":                               {onOne, disable(func(r *Rollout) { r.DaemonSet.OptOut = true }), daemonSet(optsOut)},
		"changing: servers stay while a volume is attached":           {onOne, func(r *Rollout) { r.Desired, r.Volumes = netTwo, attachedA }, waits(gate...)},
		"changing: servers return when a volume is attached before clients leave": {
			onOne, func(r *Rollout) { r.Desired, r.Record.Servers, r.Volumes = netTwo, clusterNet, attachedA },
			with(serversTo(netOne, "the change waits: new servers stay on the network that every client is on"), func(s *Step) { s.Blockers = gate })},
		"changing: servers do not return to a network that was deleted": {onOne, func(r *Rollout) {
			r.Desired, r.Record.Servers, r.Volumes, r.Networks, r.Services = netTwo, clusterNet, attachedA, networkSet([]multus.Network{netTwo.Network}), []rwx.Service{service("pvc-a", netOne)}
		}, waits(gate...)},
		"changing node by node: servers leave first, with attached volumes": {
			onOne, func(r *Rollout) { r.Desired, r.Gate, r.Volumes = netTwo, GateNode, attachedA }, serversTo(clusterNet, leaves)},

		"enabling: missing network": {onCluster, func(r *Rollout) { r.Desired, r.Networks = netOne, networkSet(nil) },
			with(waits(catalog.NoNetwork(netOne.Network, networkSet(nil))), func(s *Step) { s.After = MissingNetworkRetry })},
		"enabling: broken network": {onCluster, func(r *Rollout) { r.Desired, r.Networks = netOne, map[multus.Network]bool{netOne.Network: false} },
			with(waits(catalog.NoNetwork(netOne.Network, map[multus.Network]bool{netOne.Network: false})), func(s *Step) { s.After = MissingNetworkRetry })},
		"enabling: network is deleted while clients roll": {enabling, func(r *Rollout) { r.Networks = networkSet(nil) },
			with(rolling(0, Nothing, catalog.NoNetwork(netOne.Network, networkSet(nil))), func(s *Step) { s.After = MissingNetworkRetry })},
		"enabling: another network is chosen before all clients have joined": {
			enabling, func(r *Rollout) {
				r.Desired, r.Volumes = netTwo, attachedA
				r.Clients[1].Network, r.Clients[1].Ready = netOne, false
			}, Step{Action: RecordClients, Phase: PhaseRolling, Total: 2,
				Message: abandoned}},
		"enabling: another network is chosen, and the DaemonSet opts out": {
			enabling, func(r *Rollout) { r.Desired, r.DaemonSet.OptOut = netTwo, true }, with(daemonSet(optsOut), func(s *Step) { s.Updated = 0 })},
		"enabling: another network is chosen, and a server is there": {enabling, func(r *Rollout) {
			r.Desired, r.Servers = netTwo, []rwx.Server{server("pvc-a", netOne)}
		}, with(waits(serverA), func(s *Step) { s.Action, s.Clients, s.Updated = RestartClients, enabling().Clients[:1], 0 })},
		"enabling: clients restart for another setting afterwards": {
			onCluster, func(r *Rollout) { r.Desired, r.DaemonSet.Paused, r.DaemonSet.Revision = netOne, true, "8" }, with(clientsTo(netOne), func(s *Step) { s.Updated = 0 })},
		"enabling: a client is on another network": {
			onCluster, func(r *Rollout) { r.Desired, r.Clients[0].Network = netOne, netTwo }, with(clientsTo(netOne), func(s *Step) { s.Updated = 1 })},
		"enabling: clients do not return while Services may still be stored that were admitted with the network": {
			enabling, func(r *Rollout) { r.Desired, r.Record.ServersSince = netTwo, noon.Add(-4*time.Second) },
			with(waits(blocker(catalog.BlockedByTime, "networks.settle", admitted)), func(s *Step) {
				s.Action, s.Clients, s.Updated, s.After = RestartClients, enabling().Clients[:1], 0, 6*time.Second
			})},
		"enabling: clients restart for another setting while the change waits": {
			onCluster, func(r *Rollout) {
				r.Desired, r.Volumes, r.DaemonSet.Paused, r.DaemonSet.Revision = netOne, attachedA, true, "8"
			}, with(waits(gate...), func(s *Step) {
				s.Action, s.Clients, s.Updated = RestartClients, []rwx.Client{client("node-2", clusterNet)}, 0
			})},
		"enabling node by node: clients begin while a volume is attached": {
			onCluster, func(r *Rollout) { r.Desired, r.Gate, r.Volumes = netOne, GateNode, attachedA }, clientsNodeByNode(netOne)},
		"disabling node by node: clients begin when no volume is on the network": {
			onOne, disable(func(r *Rollout) {
				r.Gate, r.Volumes, r.Services = GateNode, attachedA, []rwx.Service{service("pvc-a", clusterNet)}
			}), clientsNodeByNode(clusterNet)},
		"disabling node by node: a volume is still on the network": {
			onOne, disable(func(r *Rollout) { r.Gate, r.Volumes, r.Services = GateNode, attachedA, []rwx.Service{leftA} }), waits(blocker(catalog.BlockedByService, "pvc-a", onSvc+stopUsers))},
		"headless Service of a detached volume on no network": {
			onCluster, func(r *Rollout) {
				r.Volumes, r.Services = []rwx.Volume{{Name: "pvc-a", Shared: true}}, []rwx.Service{headless}
			}, replaces(headless)},

		"enabling: DaemonSet not found": {func() Rollout { return Rollout{Desired: netOne, Now: noon, DaemonSet: DaemonSet{Name: "csi"}} }, nil,
			with(daemonSet("DaemonSet csi does not exist: check that the storage system is installed"), func(s *Step) { s.Updated, s.Total = 0, 0 })},
		"enabling: DaemonSet opts out": {onCluster, func(r *Rollout) { r.Desired, r.DaemonSet.OptOut = netOne, true }, daemonSet(optsOut)},
		"enabling: unreadable DaemonSet": {onCluster, func(r *Rollout) { r.Desired, r.DaemonSet.Unreadable = netOne, true },
			daemonSet("DaemonSet csi has an annotation k8s.v1.cni.cncf.io/networks that can't be read: correct it")},
		"enabling: DaemonSet on the host network": {onCluster, func(r *Rollout) { r.Desired, r.DaemonSet.HostNetwork = netOne, true },
			daemonSet("DaemonSet csi is on the host network, where Multus adds no interface: set hostNetwork to false")},
		"disabling: DaemonSet on the host network": {onOne, disable(func(r *Rollout) { r.DaemonSet.HostNetwork = true }), clientsTo(clusterNet)},
		"enabling: attached volume": {onCluster, func(r *Rollout) {
			r.Desired, r.Volumes = netOne, append(attachedA, rwx.Volume{Name: "rwo", Attached: true})
		},
			waits(catalog.Blocker{Kind: catalog.BlockedByVolume, Name: "pvc-a", Nodes: []string{"node-1"}, Message: "RWX volume is attached: stop the workloads that use it, so that it is detached"})},
		"enabling: open gate": {onCluster, func(r *Rollout) {
			r.Desired, r.Volumes = netOne, []rwx.Volume{{Name: "pvc-a", Shared: true}, {Name: "rwo", Attached: true}}
		}, clientsTo(netOne)},

		"leaving: Services that were just admitted": {onOne, disable(func(r *Rollout) { r.Record.ServersSince = noon.Add(-4 * time.Second) }),
			with(waits(blocker(catalog.BlockedByTime, "networks.settle", admitted)), func(s *Step) { s.After = 6 * time.Second })},
		"leaving: settle time has just passed":           {onOne, disable(func(r *Rollout) { r.Record.ServersSince = noon.Add(-settle) }), clientsTo(clusterNet)},
		"leaving the cluster network: no settle time":    {onCluster, func(r *Rollout) { r.Desired, r.Record.ServersSince = netOne, noon }, clientsTo(netOne)},
		"leaving: Services of idle volumes are replaced": {onOne, disable(func(r *Rollout) { r.Services = []rwx.Service{leftA, service("pvc-b", clusterNet)} }), replaces(leftA)},
		"leaving: a server is still on the network": {onOne, disable(func(r *Rollout) {
			r.Servers, r.Services = []rwx.Server{server("pvc-a", netOne), server("pvc-b", clusterNet)}, []rwx.Service{leftA, service("pvc-b", clusterNet)}
		}), waits(serverA, serviceA)},
		"leaving: a Service that opts out blocks": {onOne, disable(func(r *Rollout) {
			r.Services = []rwx.Service{leftA}
			r.Services[0].OptOut = true
		}), waits(blocker(catalog.BlockedByService, "pvc-a", onSvcOut))},

		"rolling: template first":                    {enabling, func(r *Rollout) { r.DaemonSet.Network, r.DaemonSet.Paused = clusterNet, false }, rolling(0, UpdateTemplate)},
		"rolling: template is not observed":          {enabling, func(r *Rollout) { r.DaemonSet.Observed = false }, rolling(0, Nothing)},
		"rolling: one client, within maxUnavailable": {enabling, nil, restarts(enabling().Clients[0])},
		"rolling: one client, below maxUnavailable":  {enabling, func(r *Rollout) { r.DaemonSet.MaxUnavailable = 5 }, restarts(enabling().Clients[0])},
		"rolling: a missing pod uses the budget": {enabling, func(r *Rollout) { r.Clients = r.Clients[1:] },
			rolling(0, Nothing, blocker(catalog.BlockedByClient, "csi", "1 CSI plugin pod missing"))},
		"rolling: a terminating pod uses the budget":             {enabling, func(r *Rollout) { r.Clients[0].Terminating = true }, rolling(0, Nothing, pod("node-1", "is still terminating"))},
		"rolling: an unready pod on the network uses the budget": {enabling, func(r *Rollout) { r.Clients[0] = unready(onOne().Clients[0]) }, rolling(1, Nothing, down)},
		"rolling: a terminating pod does not restart":            {enabling, func(r *Rollout) { r.Clients[0].Terminating, r.DaemonSet.MaxUnavailable = true, 2 }, restarts(enabling().Clients[1])},
		"rolling: the first node, in any order of pods":          {enabling, func(r *Rollout) { slices.Reverse(r.Clients) }, restarts(enabling().Clients[0])},
		"rolling: the first of two unready pods": {enabling, func(r *Rollout) { r.Clients[0].Ready, r.Clients[1].Ready = false, false },
			restarts(unready(enabling().Clients[0]))},
		"rolling: unknown revision of the template": {enabling, func(r *Rollout) {
			r.DaemonSet.Revision, r.Clients[0].Revision, r.Clients[1] = "", "", onOne().Clients[1]
		}, with(restarts(enabling().Clients[0]), func(s *Step) {
			s.Message, s.Updated, s.Clients[0].Revision = "1 of 2 CSI plugin pods on the network", 1, ""
		})},
		"rolling: nothing but an unknown revision": {rolled, func(r *Rollout) { r.DaemonSet.Revision = "" },
			with(restarts(rolled().Clients[0]), func(s *Step) { s.Message = "0 of 2 CSI plugin pods built from the current template" })},
		"rolling back: a pod is still on the network, and a server": {onCluster, func(r *Rollout) {
			r.Clients[0].Network, r.Clients[0].Revision, r.DaemonSet.Paused, r.Servers = netOne, "6", true, []rwx.Server{server("pvc-a", netOne)}
		}, with(rolling(1, RestartClients), func(s *Step) {
			s.Message, s.Clients = "1 of 2 CSI plugin pods back on the cluster network", []rwx.Client{onOne().Clients[0]}
			s.Clients[0].Revision, s.Clients[0].Reported = "6", false
		})},
		"rolled back: the strategy waits for an unready pod": {onCluster, func(r *Rollout) { r.DaemonSet.Paused, r.Clients[0].Ready = true, false }, with(applied("the cluster network"), func(s *Step) {
			s.Volumes = progress(PhaseRolling, "2 of 2 CSI plugin pods built from the current template; "+down.Message, down)
		})},
		"applied, then on the host network":           {onOne, func(r *Rollout) { r.DaemonSet.HostNetwork = true }, daemonSet("DaemonSet csi is on the host network, where Multus adds no interface: set hostNetwork to false")},
		"astray client that terminates: servers stay": {onOne, func(r *Rollout) { r.Clients[0].Network, r.Clients[0].Terminating = clusterNet, true }, rolling(1, UpdateTemplate)},
		"no DaemonSet any more":                       {onOne, func(r *Rollout) { r.DaemonSet, r.Clients = DaemonSet{Name: "csi"}, nil }, with(daemonSet("DaemonSet csi does not exist: check that the storage system is installed"), func(s *Step) { s.Updated, s.Total = 0, 0 })},
		"servers on another network than clients":     {onOne, func(r *Rollout) { r.Record.Clients = netTwo }, with(serversTo(clusterNet, astray), func(s *Step) { s.Updated = 0 })},
		"rolling: a lost node's pod is left alone":    {enabling, func(r *Rollout) { r.Clients[0].Ready, r.Clients[0].Lost = false, true }, restarts(enabling().Clients[1])},
		"rolling: a lost node's terminating pod does not use the budget": {enabling, func(r *Rollout) {
			r.Clients[0].Ready, r.Clients[0].Terminating, r.Clients[0].Lost = false, true, true
		}, restarts(enabling().Clients[1])},
		"rolling: only a lost node's pod is left": {enabling, func(r *Rollout) {
			r.Clients[0].Ready, r.Clients[0].Lost, r.Clients[1] = false, true, onOne().Clients[1]
		}, rolling(1, Nothing, pod("node-1", "waits until the node is Ready"))},
		"rolling: an installer resets the strategy": {enabling, func(r *Rollout) { r.DaemonSet.Paused = false }, rolling(0, UpdateTemplate)},
		"rolling: a restart does not restore a network that a pod lost": {onOne, func(r *Rollout) {
			r.Record.Servers, r.DaemonSet.Paused, r.Clients[0].Network = clusterNet, true, clusterNet
		}, rolling(1, Nothing, pod("node-1", lost))},
		"astray client: servers leave":   {onOne, func(r *Rollout) { r.Clients[0].Network = clusterNet }, with(serversTo(clusterNet, astray), func(s *Step) { s.Updated = 1 })},
		"astray template: servers leave": {onOne, func(r *Rollout) { r.DaemonSet.Network = clusterNet }, serversTo(clusterNet, astray)},
		"no network: a DaemonSet that opts out keeps its network": {onCluster, func(r *Rollout) {
			r.DaemonSet.Network, r.DaemonSet.OptOut, r.Clients[0].Network = netOne, true, netOne
		}, with(applied("the cluster network"), func(s *Step) { s.Updated = 1 })},
		"no network: clients that a user moved stay while a server is there": {onCluster, func(r *Rollout) {
			r.DaemonSet.Network, r.Servers = netOne, []rwx.Server{server("pvc-a", netOne)}
		}, waits(serverA)},
		"Service that can't be headless stays": {onOne, func(r *Rollout) {
			r.Services = []rwx.Service{service("pvc-a", clusterNet)}
			r.Services[0].Fixed = true
		}, applied("kube-system/one")},
		"rolling: DaemonSet opts out":             {enabling, func(r *Rollout) { r.DaemonSet.OptOut = true }, with(daemonSet(optsOut), func(s *Step) { s.Updated = 0 })},
		"rolling: an unready pod costs no budget": {enabling, func(r *Rollout) { r.Clients[1].Ready = false }, restarts(unready(enabling().Clients[1]))},
		"rolling: not where a volume is attached": {enabling, func(r *Rollout) {
			r.Volumes = []rwx.Volume{attached("pvc-a", "node-1", "node-2"), {Name: "rwo", Attached: true, Nodes: []string{"node-2"}}}
		}, rolling(0, Nothing, inUse("node-1", "node-2"))},
		"rolling: another node meanwhile": {enabling, func(r *Rollout) { r.Volumes = attachedA }, restarts(enabling().Clients[1])},
		"rolling: nowhere while a volume is attached to an unknown node": {
			enabling, func(r *Rollout) { r.Volumes = []rwx.Volume{attached("pvc-a")} }, rolling(0, Nothing, inUse("node-1", "node-2"))},
		"rolling: not even an unready pod where a volume is attached": {enabling, func(r *Rollout) {
			r.Clients[0].Ready, r.Volumes, r.Clients[1] = false, attachedA, client("node-2", netOne)
		}, rolling(1, Nothing, inUse("node-1"))},
		"rolling: pods of an older template, while paused": {rolled, func(r *Rollout) { r.Clients[1].Revision = "6" },
			with(rolling(1, RestartClients), func(s *Step) {
				s.Message, s.Clients = "1 of 2 CSI plugin pods built from the current template", rolled().Clients[1:]
				s.Clients[0].Revision = "6"
			})},
		"rolling: a new pod without an address": {rolled, func(r *Rollout) { r.Clients[1].Reported = false },
			rolling(2, Nothing, pod("node-2", "has no address on kube-system/one@lhnet1: Multus reports none"))},
		"rolling: unready, terminating and missing pods": {rolled, func(r *Rollout) {
			r.DaemonSet.Wanted, r.Clients[0].Ready, r.Clients[1].Terminating = 3, false, true
		}, with(rolling(2, Nothing, down, pod("node-2", "is still terminating"), blocker(catalog.BlockedByClient, "csi", "1 CSI plugin pod missing")), func(s *Step) {
			s.Message, s.Total = strings.Replace(s.Message, "2 of 2", "2 of 3", 1), 3
		})},
		"rolled: the DaemonSet gets its strategy back": {rolled, nil, rolling(2, ResumeTemplate)},
		"rolled back: applied before the strategy is back": {onCluster, func(r *Rollout) { r.DaemonSet.Paused = true }, with(applied("the cluster network"), func(s *Step) {
			s.Action, s.Volumes = ResumeTemplate, Progress{Phase: PhaseRolling, Message: "2 of 2 CSI plugin pods built from the current template"}
		})},
		"rolled: servers follow": {onOne, func(r *Rollout) { r.Record.Servers = clusterNet }, serversTo(netOne, "every client is on the network: new servers follow")},
		"rolled: servers wait for a deleted network": {onOne, func(r *Rollout) { r.Record.Servers, r.Networks = clusterNet, networkSet(nil) }, with(rolling(2, Nothing), func(s *Step) {
			deleted := Rollout{}.lostNetwork(netOne.Network, "")
			s.Phase, s.Message, s.Blockers, s.After = PhaseWaiting, deleted.Message, []catalog.Blocker{deleted}, MissingNetworkRetry
		})},
		"rolled: servers wait for an unready client": {onOne, func(r *Rollout) { r.Record.Servers, r.Clients[0].Ready = clusterNet, false }, rolling(2, Nothing, down)},
		"switched: Services of idle volumes are replaced": {onOne, func(r *Rollout) {
			r.Volumes, r.Servers = []rwx.Volume{{Name: "pvc-a", Shared: true}, attached("pvc-b", "node-1")}, []rwx.Server{server("pvc-c", clusterNet)}
			r.Services = []rwx.Service{service("pvc-d", clusterNet), service("pvc-a", clusterNet), service("pvc-b", clusterNet), service("pvc-c", clusterNet)}
			r.Services[0].OptOut = true
		}, replaces(service("pvc-a", clusterNet))},
		"deleted network is reported": {onOne, func(r *Rollout) { r.Networks = networkSet(nil) }, with(applied("kube-system/one"), func(s *Step) {
			deleted := Rollout{}.lostNetwork(netOne.Network, ", and the server pods of RWX volumes,")
			s.Volumes = Progress{Phase: PhaseWaiting, Message: deleted.Message, Blockers: []catalog.Blocker{deleted}}
		})},
	})
}

func TestNextDoesNotChangeItsInput(t *testing.T) {
	r := enabling()
	slices.Reverse(r.Clients)
	r.Volumes = []rwx.Volume{attached("pvc-b", "node-2"), attached("pvc-a")}
	before := r
	before.Clients, before.Volumes = slices.Clone(r.Clients), slices.Clone(r.Volumes)
	Next(r)
	must.True(t, reflect.DeepEqual(r, before), "got  %+v\nwant %+v", r, before)
}

// putOnBoth puts template and clients on two networks: a pod may have both interfaces after an upgrade of the storage system.
func putOnBoth(r *Rollout) {
	both := []multus.Attachment{netTwo, netOne}
	r.DaemonSet.Network, r.DaemonSet.Networks = netTwo, both
	for i := range r.Clients {
		c := &r.Clients[i]
		c.Network, c.Networks, c.Reported, c.NetworksReported = netTwo, both, false, both[1:]
	}
}

func TestSecondInterfaceCounts(t *testing.T) {
	r := onOne()
	putOnBoth(&r)
	must.Equal(t, Next(r), applied("kube-system/one"), "settled")
	r.Record.Servers = clusterNet
	if got := Next(r); got.Action != RecordServers || got.Network != netOne {
		t.Errorf("servers are not on the network: got %+v", got)
	}
	r.Desired, r.Record = clusterNet, Record{}
	must.Equal(t, Next(r).Action, UpdateTemplate, "no network is desired")
}

// networkSet are the networks that exist.
func networkSet(networks []multus.Network) map[multus.Network]bool {
	set := map[multus.Network]bool{}
	for _, n := range networks {
		set[n] = true
	}
	return set
}
