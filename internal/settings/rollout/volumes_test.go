package rollout

import (
	"strings"
	"testing"
	"time"

	"github.com/fairlead-io/fairlead/internal/multus"
	"github.com/fairlead-io/fairlead/internal/rwx"
	"github.com/fairlead-io/fairlead/internal/settings/catalog"
	"github.com/fairlead-io/fairlead/internal/testkit/must"
)

var (
	teamX    = multus.Network{Namespace: "team-x", Name: "nfs"}
	teamY    = multus.Network{Namespace: "team-y", Name: "nfs"}
	netX     = multus.VolumeAttachment(teamX)
	netY     = multus.VolumeAttachment(teamY)
	missingX = "there is no NetworkAttachmentDefinition team-x/nfs: create it, or ask for another network"
	deletedX = "NetworkAttachmentDefinition team-x/nfs was deleted: CSI plugin pods, and the server pods of pvc-of-team-x, cannot restart without it: recreate it"
)

func requesting(name string, n multus.Network, nodes ...string) rwx.Volume {
	return rwx.Volume{Name: name, Shared: true, Attached: len(nodes) > 0, Nodes: nodes, Request: rwx.Request{Network: n, Source: "StorageClass fast"}}
}

// onVolumeNetworks is a settled cluster whose clients, and perhaps servers, are on per-volume networks.
func onVolumeNetworks(servers bool, networks ...multus.Attachment) func() Rollout {
	return func() Rollout {
		r := onOne()
		r.Record.VolumeClients, r.DaemonSet.VolumeNetworks = networks, networks
		if servers {
			r.Record.VolumeServers = networks
		}
		for i := range r.Clients {
			r.Clients[i].VolumeNetworks, r.Clients[i].VolumeNetworksReported = networks, networks
		}
		for _, a := range networks {
			r.Volumes = append(r.Volumes, requesting("pvc-of-"+a.Namespace, a.Network))
		}
		return r
	}
}

// withoutX removes the network from clients, but not from the template.
func withoutX(r *Rollout) {
	r.DaemonSet.Paused = true
	for i := range r.Clients {
		r.Clients[i].Revision, r.Clients[i].VolumeNetworks, r.Clients[i].VolumeNetworksReported = "6", nil, nil
	}
}

// volumeStep is a step while the default network is applied.
func volumeStep(action Action, volumes Progress, networks ...multus.Attachment) Step {
	s := applied("kube-system/one")
	s.Action, s.Networks, s.Volumes = action, networks, volumes
	return s
}

func progress(phase Phase, message string, blockers ...catalog.Blocker) Progress {
	return Progress{Phase: phase, Message: message, Blockers: blockers}
}

// waitProgress is progress that waits for the blocker, and for the networks of volumes if text is not empty.
func waitProgress(text string, b catalog.Blocker) Progress {
	return progress(PhaseWaiting, catalog.Joined(text, b.Message), b)
}

func TestNextForVolumeNetworks(t *testing.T) {
	const (
		aForX     = "RWX volumes wait for their networks: pvc-a for team-x/nfs (StorageClass fast)"
		forX      = "RWX volumes wait for their networks: pvc-of-team-x for team-x/nfs (StorageClass fast)"
		onX       = "2 CSI plugin pods on volume networks team-x/nfs; "
		servers   = "new servers may use volume networks: "
		replacing = "replacing 1 Service of detached volumes"
		hostNet   = "DaemonSet csi is on the host network, where Multus adds no interface: set hostNetwork to false"
	)
	x, y, one := []multus.Attachment{netX}, []multus.Attachment{netY}, netOne.Network
	missing, deleted := blocker(catalog.BlockedByNetwork, "team-x/nfs", missingX), blocker(catalog.BlockedByNetwork, "team-x/nfs", deletedX)
	lost := pod("node-1", "started without the network of its template: check whether another webhook removes it")
	noAddress := pod("node-2", "has no address on "+netX.String()+": Multus reports none")
	used := blocker(catalog.BlockedByVolume, "pvc-b", "RWX volume is attached where CSI plugin pod csi-node-2 must restart: drain the node, or stop the workloads", "node-2")
	idle, attachedA, noRequest := requesting("pvc-a", teamX), requesting("pvc-a", teamX, "node-1"), requesting("pvc-a", multus.Network{}, "node-1")
	updated := func(n int, s Step) Step { return with(s, func(s *Step) { s.Updated = n }) }
	byCluster := func(volumes Progress) Step {
		return with(applied("the cluster network"), func(s *Step) { s.Volumes = volumes })
	}
	replacesX := func(old rwx.Service) Step {
		return with(volumeStep(ReplaceServices, progress(PhaseSwitching, replacing)), func(s *Step) { s.Services = []rwx.Service{old} })
	}
	reattachA := with(volumeStep(Nothing, Progress{}), func(s *Step) { s.Message += "; still to be reattached: pvc-a" })
	volumes := func(networks []multus.Network, volumes ...rwx.Volume) func(*Rollout) {
		return func(r *Rollout) { r.Volumes, r.Networks = volumes, networkSet(networks) }
	}
	checkSteps(t, map[string]stepTest{
		"joining: clients get the network while volumes are attached": {onVolumeNetworks(false), volumes([]multus.Network{one, teamX, teamY}, attachedA),
			volumeStep(RecordVolumeClients, progress(PhaseRolling, "CSI plugin pods get volume networks: team-x/nfs; "+aForX), netX)},
		"joining: a StorageClass requests the network": {onVolumeNetworks(false), func(r *Rollout) {
			r.ClassNetworks, r.Networks = []multus.Network{teamX}, networkSet([]multus.Network{one, teamX})
		}, volumeStep(RecordVolumeClients, progress(PhaseRolling, "CSI plugin pods get volume networks: team-x/nfs"), netX)},
		"not joined: missing network": {onVolumeNetworks(false), volumes([]multus.Network{one, teamY}, idle), volumeStep(Nothing, waitProgress(aForX, missing))},
		"joined, then deleted": {onVolumeNetworks(true, netX, netY), func(r *Rollout) { r.Networks = networkSet([]multus.Network{one, teamY}) },
			volumeStep(Nothing, waitProgress("", deleted))},
		"joined and deleted while another is joined: no client restarts": {onVolumeNetworks(true, netX), func(r *Rollout) {
			r.Volumes, r.Networks = append(r.Volumes, requesting("pvc-a", teamY)), networkSet([]multus.Network{one, teamY})
			r.Record.VolumeClients, r.DaemonSet.VolumeNetworks, r.DaemonSet.Paused = append(x, netY), append(x, netY), true
		}, updated(0, volumeStep(Nothing, waitProgress("RWX volumes wait for their networks: pvc-a for team-y/nfs (StorageClass fast)", deleted)))},
		"changing the default network with a deleted volume network: no client restarts": {onVolumeNetworks(true, netX), func(r *Rollout) {
			r.Desired, r.Record.Clients, r.Record.Servers = netTwo, netTwo, clusterNet
			r.DaemonSet.Network, r.DaemonSet.Paused, r.Networks = netTwo, true, networkSet([]multus.Network{netTwo.Network})
		}, with(rolling(0, Nothing, deleted), func(s *Step) { s.After, s.Volumes = MissingNetworkRetry, waitProgress("", deleted) })},
		"not joined: volume that clients do not mount": {onVolumeNetworks(false), func(r *Rollout) {
			volumes([]multus.Network{one, teamX}, idle)(r)
			r.Volumes[0].Shared = false
		}, volumeStep(Nothing, Progress{})},
		"not joined: default network": {onVolumeNetworks(false), func(r *Rollout) { r.Volumes = []rwx.Volume{requesting("pvc-a", one)} }, volumeStep(Nothing, Progress{})},
		"not joined: DaemonSet on the host network": {onCluster, func(r *Rollout) {
			volumes([]multus.Network{one, teamX}, idle)(r)
			r.DaemonSet.HostNetwork = true
		}, byCluster(progress(PhaseWaiting, hostNet+"; "+aForX, blocker(catalog.BlockedByDaemonSet, "csi", hostNet)))},
		"not joined: clients mount from the host": {onCluster, func(r *Rollout) {
			volumes([]multus.Network{one, teamX}, idle)(r)
			r.MountsFromHost = true
		}, byCluster(waitProgress(aForX, blocker(catalog.BlockedByNetwork, "cluster network", chooseNetworkFirst)))},
		"left: the settings remove the default network": {onVolumeNetworks(true, netX), func(r *Rollout) {
			r.MountsFromHost, r.Desired, r.Record.Servers = true, clusterNet, clusterNet
		}, Step{Action: RecordVolumeServers, Updated: 2, Total: 2, Phase: PhaseRolling, Message: "being applied now: 2 CSI plugin pods restart", Volumes: progress(PhaseSwitching, servers+"none")}},
		"left: the step reports the default network too": {onVolumeNetworks(true, netX), func(r *Rollout) {
			r.Desired, r.Record.Servers, r.Volumes = netTwo, clusterNet, []rwx.Volume{attached("pvc-a", "node-1")}
		}, Step{
			Action: RecordVolumeServers, Updated: 2, Total: 2, Phase: PhaseSwitching, Message: "the change waits: new servers stay on the network that every client is on",
			Blockers: catalog.SharedVolumeGate([]rwx.Volume{attached("pvc-a", "node-1")}), Volumes: progress(PhaseSwitching, servers+"none"),
		}},
		"invalid request is reported": {onVolumeNetworks(false), func(r *Rollout) {
			r.Volumes = []rwx.Volume{{Name: "pvc-a", Shared: true, Request: rwx.Request{Problem: "annotation x of y: z"}}}
		}, volumeStep(Nothing, progress(PhaseWaiting, "RWX volumes wait for their networks: pvc-a has an invalid request: annotation x of y: z",
			blocker(catalog.BlockedByRequest, "pvc-a", "annotation x of y: z")))},
		"rolling: template first": {onVolumeNetworks(false, netX), func(r *Rollout) { r.DaemonSet.VolumeNetworks = nil }, volumeStep(UpdateTemplate, progress(PhaseRolling, "2 of "+onX+forX))},
		"rolling: a client on a free node restarts": {onVolumeNetworks(false, netX), withoutX,
			with(volumeStep(RestartClients, progress(PhaseRolling, "0 of "+onX+forX)), func(s *Step) {
				r := onVolumeNetworks(false, netX)()
				withoutX(&r)
				s.Clients, s.Updated = r.Clients[:1], 0
			})},
		"rolling: a node with an attached volume waits": {onVolumeNetworks(false, netX), func(r *Rollout) {
			joined := r.Clients[0]
			withoutX(r)
			r.Clients[0], r.Volumes = joined, append(r.Volumes, attached("pvc-b", "node-2"))
		}, updated(1, volumeStep(Nothing, progress(PhaseRolling, "1 of "+onX+"1 RWX volume attached: pvc-b; "+forX, used)))},
		"rolling: a restart does not restore a network that a pod lost": {onVolumeNetworks(false, netX), func(r *Rollout) {
			r.DaemonSet.Paused, r.Clients[0].VolumeNetworks = true, nil
		}, updated(1, volumeStep(Nothing, progress(PhaseRolling, "1 of "+onX+lost.Message+"; "+forX, lost)))},
		"rolled: a client has no address": {onVolumeNetworks(false, netX), func(r *Rollout) { r.Clients[1].VolumeNetworksReported = nil },
			volumeStep(Nothing, progress(PhaseRolling, noAddress.Message+"; "+forX, noAddress))},
		"rolled: servers may use the network while another is not joined": {onVolumeNetworks(false, netX, netY), func(r *Rollout) { r.Clients[1].VolumeNetworksReported = x },
			volumeStep(RecordVolumeServers, progress(PhaseSwitching, "every CSI plugin pod is ready: "+servers+"team-x/nfs; "+forX+", pvc-of-team-y for team-y/nfs (StorageClass fast)"), netX)},
		"joined: Service of an idle volume is replaced": {onVolumeNetworks(true, netX), func(r *Rollout) { r.Services = []rwx.Service{service("pvc-of-team-x", netOne)} },
			replacesX(service("pvc-of-team-x", netOne))},
		"joined: another address replaces the Service": {onVolumeNetworks(true, netX), func(r *Rollout) {
			r.Volumes[0].Request.Identity.Addresses, r.Services = "10.0.0.9", []rwx.Service{service("pvc-of-team-x", netX)}
		}, replacesX(service("pvc-of-team-x", netX))},
		"joined: an attached volume follows when next attached": {onVolumeNetworks(true, netX), func(r *Rollout) {
			r.Volumes, r.Services = []rwx.Volume{attachedA}, []rwx.Service{service("pvc-a", netOne)}
		}, volumeStep(Nothing, progress("", "still to be reattached for their networks: pvc-a"))},
		"joined: settled": {onVolumeNetworks(true, netX), func(r *Rollout) { r.Services = []rwx.Service{service("pvc-of-team-x", netX)} }, volumeStep(Nothing, Progress{})},
		"astray client: servers leave": {onVolumeNetworks(true, netX, netY), func(r *Rollout) { r.Clients[0].VolumeNetworks = y },
			updated(1, volumeStep(RecordVolumeServers, progress(PhaseSwitching, servers+"team-y/nfs"), netY))},
		"astray template: servers leave": {onVolumeNetworks(true, netX, netY), func(r *Rollout) { r.DaemonSet.VolumeNetworks = y },
			volumeStep(RecordVolumeServers, progress(PhaseSwitching, servers+"team-y/nfs"), netY)},
		"settings choose a network: clients mount in their pods": {onVolumeNetworks(true, netX), func(r *Rollout) { r.MountsFromHost = true }, volumeStep(Nothing, Progress{})},
		"astray client that terminates: servers stay": {onVolumeNetworks(true, netX), func(r *Rollout) {
			r.Clients[0].VolumeNetworks, r.Clients[0].Terminating = nil, true
		}, updated(1, volumeStep(UpdateTemplate, progress(PhaseRolling, strings.TrimSuffix("1 of "+onX, "; "))))},
		"a client is down: servers stay": {onVolumeNetworks(true, netX), func(r *Rollout) { r.Clients[0].Ready = false }, volumeStep(Nothing, Progress{})},
		"refused replacement of a volume's Service": {onVolumeNetworks(true, netX), func(r *Rollout) {
			r.Services = []rwx.Service{service("pvc-of-team-x", netOne)}
			r.Record.Refused = []Refusal{{Kind: catalog.BlockedByService, Name: "pvc-of-team-x", Message: "a policy says no"}}
		}, volumeStep(Nothing, waitProgress("", blocker(catalog.BlockedByService, "pvc-of-team-x", "a policy says no")))},
		"attached with another address": {onVolumeNetworks(true), func(r *Rollout) {
			r.Volumes, r.Services = []rwx.Volume{attached("pvc-a", "node-1")}, []rwx.Service{service("pvc-a", netOne)}
			r.Volumes[0].Request.Identity.Addresses = "10.0.0.9"
		}, volumeStep(Nothing, progress("", "still to be reattached for their networks: pvc-a"))},
		"leaving: servers first, with attached volumes": {onVolumeNetworks(true, netX), func(r *Rollout) {
			r.Volumes, r.Services = []rwx.Volume{noRequest}, []rwx.Service{service("pvc-a", netX)}
		}, with(reattachA, func(s *Step) { s.Action, s.Volumes = RecordVolumeServers, progress(PhaseSwitching, servers+"none") })},
		"leaving: clients stay while a volume is there": {onVolumeNetworks(false, netX), func(r *Rollout) {
			r.Volumes, r.Services = []rwx.Volume{noRequest}, []rwx.Service{service("pvc-a", netX)}
		}, reattachA},
		"leaving: clients stay while a server without a Service is there": {onVolumeNetworks(false, netX), func(r *Rollout) {
			r.Volumes, r.Servers = nil, []rwx.Server{server("pvc-a", netX)}
		}, volumeStep(Nothing, Progress{})},
		"leaving: Services that were just admitted": {onVolumeNetworks(false, netX), func(r *Rollout) { r.Volumes, r.Record.ServersSince = nil, noon.Add(-4*time.Second) },
			with(volumeStep(Nothing, progress(PhaseWaiting, "waiting until 12:00:06 UTC, in case a Service is still being created")), func(s *Step) { s.After = 6 * time.Second })},
		"leaving: clients last": {onVolumeNetworks(false, netX, netY), func(r *Rollout) { r.Record.VolumeServers, r.Volumes = y, r.Volumes[1:] },
			volumeStep(RecordVolumeClients, progress(PhaseRolling, "CSI plugin pods get volume networks: team-y/nfs"), netY)},
		"default network first": {onVolumeNetworks(false), func(r *Rollout) {
			volumes([]multus.Network{one, teamX, netTwo.Network}, idle)(r)
			r.Desired = netTwo
		}, with(serversTo(clusterNet, "new servers go to the cluster network"), func(s *Step) { s.Volumes = progress(PhaseWaiting, aForX) })},
		"default network does not wait for per-volume networks": {onVolumeNetworks(true, netX), func(r *Rollout) {
			r.Desired, r.Record.Servers = clusterNet, clusterNet
			r.Services, r.Servers = []rwx.Service{service("pvc-of-team-x", netX)}, []rwx.Server{server("pvc-of-team-x", netX)}
		}, clientsTo(clusterNet)},
	})
}

func TestServersWaitForEveryClient(t *testing.T) {
	must.True(t, onVolumeNetworks(false, netX)().reachedByAll(netX), "servers may not use the network")
	for name, change := range map[string]func(*Rollout){
		"no DaemonSet":                  func(r *Rollout) { r.DaemonSet.Found = false },
		"unobserved template":           func(r *Rollout) { r.DaemonSet.Observed = false },
		"template off the network":      func(r *Rollout) { r.DaemonSet.VolumeNetworks = []multus.Attachment{netY} },
		"missing client":                func(r *Rollout) { r.DaemonSet.Wanted++ },
		"unready client":                func(r *Rollout) { r.Clients[1].Ready = false },
		"terminating client":            func(r *Rollout) { r.Clients[1].Terminating = true },
		"client off the network":        func(r *Rollout) { r.Clients[1].VolumeNetworks = nil },
		"client without an address":     func(r *Rollout) { r.Clients[1].VolumeNetworksReported = nil },
		"an address on another network": func(r *Rollout) { r.Clients[1].VolumeNetworksReported = []multus.Attachment{netY} },
	} {
		r := onVolumeNetworks(false, netX)()
		change(&r)
		must.Check(t, !r.reachedByAll(netX), "%s: servers may use the network", name)
	}
}

func TestNewServersJoinNoDeletedNetwork(t *testing.T) {
	r := onVolumeNetworks(false, netX)()
	r.Volumes, r.Networks = []rwx.Volume{requesting("pvc-a", teamX)}, networkSet([]multus.Network{teamX})
	must.Equal(t, r.indexed().volumeServersReady(), []multus.Attachment{netX}, "the network exists")
	r.Networks = networkSet(nil)
	must.Equal(t, len(r.indexed().volumeServersReady()), 0, "the network was deleted")
}

func TestPlace(t *testing.T) {
	fixed := multus.Identity{Addresses: "10.0.0.9"}
	record := Record{Clients: netOne, Servers: netOne, VolumeClients: []multus.Attachment{netX, netY}, VolumeServers: []multus.Attachment{netX}}
	for name, test := range map[string]struct {
		record  Record
		request rwx.Request
		want    multus.Placement
		waits   bool
	}{
		"no request":                             {record, rwx.Request{}, multus.Placement{Network: netOne}, false},
		"only an address":                        {record, rwx.Request{Identity: fixed}, multus.Placement{Network: netOne, Identity: fixed}, false},
		"an address on the cluster network":      {Record{}, rwx.Request{Identity: fixed}, multus.Placement{}, false},
		"default network":                        {record, rwx.Request{Network: netOne.Network, Identity: fixed}, multus.Placement{Network: netOne, Identity: fixed}, false},
		"own network":                            {record, rwx.Request{Network: teamX, Identity: fixed}, multus.Placement{Network: netX, Identity: fixed}, false},
		"network that servers may not use yet":   {record, rwx.Request{Network: teamY, Identity: fixed}, multus.Placement{Network: netOne}, true},
		"default network that servers have left": {Record{Clients: netOne}, rwx.Request{Network: netOne.Network, Identity: fixed}, multus.Placement{}, true},
	} {
		got, ready := test.record.Place(test.request)
		must.Check(t, got == test.want && ready != test.waits, "%s: got %+v, ready %v", name, got, ready)
	}
}

func TestNetworksAreReadWhileOneIsUsed(t *testing.T) {
	requested := onCluster()
	requested.Volumes = []rwx.Volume{requesting("pvc-a", teamX)}
	desired := onCluster()
	desired.Desired = netOne
	left := onOne()
	left.Desired = clusterNet
	for name, test := range map[string]struct {
		Rollout
		want bool
	}{
		"none": {onCluster(), false}, "settled on a network": {onOne(), true}, "desired network": {desired, true},
		"clients must leave a network": {left, true}, "a volume requests a network": {requested, true},
	} {
		must.Equal(t, test.UsesNetworks(), test.want, "%s", name)
	}
}
