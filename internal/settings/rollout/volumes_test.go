package rollout

import (
	"reflect"
	"testing"
	"time"

	"github.com/fairlead-io/fairlead/internal/settings/catalog"
	"github.com/fairlead-io/fairlead/internal/storage"
)

var (
	teamX = storage.Network{Namespace: "team-x", Name: "nfs"}
	teamY = storage.Network{Namespace: "team-y", Name: "nfs"}
	onX   = storage.VolumeAttachment(teamX)
	onY   = storage.VolumeAttachment(teamY)
	// missingX is what is said of a network that is asked for and does not exist.
	missingX = "there is no NetworkAttachmentDefinition team-x/nfs: create it, or ask for another network"
	deletedX = "NetworkAttachmentDefinition team-x/nfs was deleted: CSI plugin pods, and the server pods of pvc-of-team-x, do not start again without it: create it again"
)

func askingFor(name string, n storage.Network, nodes ...string) storage.Volume {
	return storage.Volume{Name: name, Shared: true, Attached: len(nodes) > 0, Nodes: nodes, Request: storage.Request{Network: n, Source: "StorageClass fast"}}
}

// onVolumeNetworks is a cluster at rest whose clients, and servers if so, are on volumes' networks too.
func onVolumeNetworks(servers bool, networks ...storage.Attachment) func() Rollout {
	return func() Rollout {
		r := atRest(netOne)
		r.Record.VolumeClients, r.DaemonSet.VolumeNetworks = networks, networks
		if servers {
			r.Record.VolumeServers = networks
		}
		for i := range r.Clients {
			r.Clients[i].VolumeNetworks, r.Clients[i].VolumeNetworksReported = networks, networks
		}
		for _, a := range networks {
			r.Volumes = append(r.Volumes, askingFor("pvc-of-"+a.Namespace, a.Network))
		}
		return r
	}
}

// still is the step that tells the settings that nothing has changed for them.
func still(change func(*Step)) Step {
	s := Step{Applied: true, Phase: PhaseApplied, Message: "RWX volumes are on kube-system/one", Updated: 2, Total: 2}
	change(&s)
	return s
}

func serviceOnX(volume string) storage.Service { return service(volume, onX) }

func TestNextForNetworksOfSingleVolumes(t *testing.T) {
	for name, test := range map[string]struct {
		start func() Rollout
		but   func(*Rollout)
		want  Step
	}{
		"joining: clients are built with it at once, volumes attached or not": {
			start: onVolumeNetworks(false),
			but: func(r *Rollout) {
				r.Volumes = []storage.Volume{askingFor("pvc-a", teamX, "node-1")}
				r.Networks = NetworksThere([]storage.Network{netOne.Network, teamX, teamY})
			},
			want: still(func(s *Step) {
				s.Action, s.Networks = RecordVolumeClients, []storage.Attachment{onX}
				s.Volumes = Progress{Phase: PhaseRolling, Message: "CSI plugin pods are built with volume networks team-x/nfs; RWX volumes wait for their networks: pvc-a for team-x/nfs (StorageClass fast)"}
			}),
		},
		"joining: a class asks for its volumes to come": {
			start: onVolumeNetworks(false),
			but: func(r *Rollout) {
				r.ClassNetworks, r.Networks = []storage.Network{teamX}, NetworksThere([]storage.Network{netOne.Network, teamX})
			},
			want: still(func(s *Step) {
				s.Action, s.Networks = RecordVolumeClients, []storage.Attachment{onX}
				s.Volumes = Progress{Phase: PhaseRolling, Message: "CSI plugin pods are built with volume networks team-x/nfs"}
			}),
		},
		"not joined: a network that does not exist": {
			start: onVolumeNetworks(false),
			but: func(r *Rollout) {
				r.Volumes, r.Networks = []storage.Volume{askingFor("pvc-a", teamX)}, NetworksThere([]storage.Network{netOne.Network, teamY})
			},
			want: still(func(s *Step) {
				s.Volumes = Progress{
					Phase:    PhaseWaiting,
					Message:  "RWX volumes wait for their networks: pvc-a for team-x/nfs (StorageClass fast); " + missingX,
					Blockers: []catalog.Blocker{{Kind: catalog.BlockedByNetwork, Name: "team-x/nfs", Message: missingX}},
				}
			}),
		},
		"joined, and then deleted": {
			start: onVolumeNetworks(true, onX, onY),
			but:   func(r *Rollout) { r.Networks = NetworksThere([]storage.Network{netOne.Network, teamY}) },
			want: still(func(s *Step) {
				s.Volumes = Progress{Phase: PhaseWaiting, Message: deletedX, Blockers: []catalog.Blocker{{Kind: catalog.BlockedByNetwork, Name: "team-x/nfs", Message: deletedX}}}
			}),
		},
		"joined, deleted, and another is joined: no client restarts": {
			start: onVolumeNetworks(true, onX),
			but: func(r *Rollout) {
				r.Volumes, r.Networks = append(r.Volumes, askingFor("pvc-a", teamY)), NetworksThere([]storage.Network{netOne.Network, teamY})
				r.Record.VolumeClients, r.DaemonSet.VolumeNetworks = []storage.Attachment{onX, onY}, []storage.Attachment{onX, onY}
				r.DaemonSet.Paused = true
			},
			want: still(func(s *Step) {
				s.Updated = 0
				s.Volumes = Progress{
					Phase:    PhaseWaiting,
					Message:  "RWX volumes wait for their networks: pvc-a for team-y/nfs (StorageClass fast); " + deletedX,
					Blockers: []catalog.Blocker{{Kind: catalog.BlockedByNetwork, Name: "team-x/nfs", Message: deletedX}},
				}
			}),
		},
		"changing the common network, and a volume network was deleted: no client restarts": {
			start: onVolumeNetworks(true, onX),
			but: func(r *Rollout) {
				r.Desired, r.Record.Clients, r.Record.Servers = netTwo, netTwo, clusterNet
				r.DaemonSet.Network, r.DaemonSet.Paused = netTwo, true
				r.Networks = NetworksThere([]storage.Network{netTwo.Network})
			},
			want: Step{
				Phase: PhaseRolling, Message: "0 of 2 CSI plugin pods on the network; " + deletedX, Total: 2, After: MissingNetworkRetry,
				Blockers: []catalog.Blocker{{Kind: catalog.BlockedByNetwork, Name: "team-x/nfs", Message: deletedX}},
				Volumes:  Progress{Phase: PhaseWaiting, Message: deletedX, Blockers: []catalog.Blocker{{Kind: catalog.BlockedByNetwork, Name: "team-x/nfs", Message: deletedX}}},
			},
		},
		"not joined: a volume that no client mounts": {
			start: onVolumeNetworks(false),
			but: func(r *Rollout) {
				migratable := askingFor("pvc-a", teamX)
				migratable.Shared = false
				r.Volumes, r.Networks = []storage.Volume{migratable}, NetworksThere([]storage.Network{netOne.Network, teamX})
			},
			want: still(func(*Step) {}),
		},
		"not joined: the network that all volumes are on": {
			start: onVolumeNetworks(false),
			but:   func(r *Rollout) { r.Volumes = []storage.Volume{askingFor("pvc-a", netOne.Network)} },
			want:  still(func(*Step) {}),
		},
		"not joined: a DaemonSet on the host network": {
			start: func() Rollout { return atRest(clusterNet) },
			but: func(r *Rollout) {
				r.DaemonSet.HostNetwork = true
				r.Volumes, r.Networks = []storage.Volume{askingFor("pvc-a", teamX)}, NetworksThere([]storage.Network{netOne.Network, teamX})
			},
			want: still(func(s *Step) {
				s.Message = "RWX volumes are on the cluster network"
				problem := "DaemonSet csi is on the host network, where Multus adds no interface: set hostNetwork to false"
				s.Volumes = Progress{
					Phase: PhaseWaiting, Message: problem + "; RWX volumes wait for their networks: pvc-a for team-x/nfs (StorageClass fast)",
					Blockers: []catalog.Blocker{{Kind: catalog.BlockedByDaemonSet, Name: "csi", Message: problem}},
				}
			}),
		},
		"not joined: clients mount from the host": {
			start: func() Rollout { return atRest(clusterNet) },
			but: func(r *Rollout) {
				r.MountsFromHost = true
				r.Volumes, r.Networks = []storage.Volume{askingFor("pvc-a", teamX)}, NetworksThere([]storage.Network{netOne.Network, teamX})
			},
			want: still(func(s *Step) {
				s.Message = "RWX volumes are on the cluster network"
				s.Volumes = Progress{
					Phase: PhaseWaiting, Message: "RWX volumes wait for their networks: pvc-a for team-x/nfs (StorageClass fast); " + chooseNetworkFirst,
					Blockers: []catalog.Blocker{{Kind: catalog.BlockedByNetwork, Name: "cluster network", Message: chooseNetworkFirst}},
				}
			}),
		},
		"left: the settings take the network of all away": {
			start: onVolumeNetworks(true, onX),
			but:   func(r *Rollout) { r.MountsFromHost, r.Desired, r.Record.Servers = true, clusterNet, clusterNet },
			want: Step{
				Action: RecordVolumeServers, Updated: 2, Total: 2,
				Phase: PhaseRolling, Message: "the gate is open: 2 CSI plugin pods restart",
				Volumes: Progress{Phase: PhaseSwitching, Message: "new servers may be on volume networks no more"},
			},
		},
		"left: and the settings are told what their network waits for meanwhile": {
			start: onVolumeNetworks(true, onX),
			but: func(r *Rollout) {
				r.Desired, r.Record.Servers = netTwo, clusterNet
				r.Volumes = []storage.Volume{attached("pvc-a", "node-1")}
			},
			want: Step{
				Action: RecordVolumeServers, Updated: 2, Total: 2,
				Phase: PhaseSwitching, Message: "the change waits: new servers stay on the network that every client is on", Blockers: catalog.SharedVolumeGate([]storage.Volume{attached("pvc-a", "node-1")}),
				Volumes: Progress{Phase: PhaseSwitching, Message: "new servers may be on volume networks no more"},
			},
		},
		"a request that can't be read asks for nothing, and is told": {
			start: onVolumeNetworks(false),
			but: func(r *Rollout) {
				r.Volumes = []storage.Volume{{Name: "pvc-a", Shared: true, Request: storage.Request{Problem: "annotation x of y: z"}}}
			},
			want: still(func(s *Step) {
				s.Volumes = Progress{
					Phase: PhaseWaiting, Message: "RWX volumes wait for their networks: pvc-a has a request that can't be followed: annotation x of y: z",
					Blockers: []catalog.Blocker{{Kind: catalog.BlockedByRequest, Name: "pvc-a", Message: "annotation x of y: z"}},
				}
			}),
		},
		"rolling: the template first": {
			start: onVolumeNetworks(false, onX),
			but:   func(r *Rollout) { r.DaemonSet.VolumeNetworks = nil },
			want: still(func(s *Step) {
				s.Action = UpdateTemplate
				s.Volumes = Progress{Phase: PhaseRolling, Message: "2 of 2 CSI plugin pods on volume networks team-x/nfs; RWX volumes wait for their networks: pvc-of-team-x for team-x/nfs (StorageClass fast)"}
			}),
		},
		"rolling: a pod on a free node restarts": {
			start: onVolumeNetworks(false, onX),
			but:   withoutX,
			want: still(func(s *Step) {
				r := onVolumeNetworks(false, onX)()
				withoutX(&r)
				s.Action, s.Clients, s.Updated = RestartClients, r.Clients[:1], 0
				s.Volumes = Progress{Phase: PhaseRolling, Message: "0 of 2 CSI plugin pods on volume networks team-x/nfs; RWX volumes wait for their networks: pvc-of-team-x for team-x/nfs (StorageClass fast)"}
			}),
		},
		"rolling: a node with an attached volume waits, and is named": {
			start: onVolumeNetworks(false, onX),
			but: func(r *Rollout) {
				withoutX(r)
				r.Clients[0] = onVolumeNetworks(false, onX)().Clients[0]
				r.Volumes = append(r.Volumes, attached("pvc-b", "node-2"))
			},
			want: still(func(s *Step) {
				s.Updated = 1
				s.Volumes = Progress{
					Phase: PhaseRolling, Message: "1 of 2 CSI plugin pods on volume networks team-x/nfs; 1 RWX volume attached: pvc-b; RWX volumes wait for their networks: pvc-of-team-x for team-x/nfs (StorageClass fast)",
					Blockers: []catalog.Blocker{{Kind: catalog.BlockedByVolume, Name: "pvc-b", Nodes: []string{"node-2"}, Message: "RWX volume is attached where CSI plugin pod csi-node-2 must restart"}},
				}
			}),
		},
		"rolling: no restart helps a pod that lost what its template asks for": {
			start: onVolumeNetworks(false, onX),
			but: func(r *Rollout) {
				r.DaemonSet.Paused = true
				r.Clients[0].VolumeNetworks = nil
			},
			want: still(func(s *Step) {
				s.Updated = 1
				lost := "CSI plugin pod csi-node-1 on node-1 came up without the network of its template: does another webhook take it away?"
				s.Volumes = Progress{
					Phase: PhaseRolling, Message: "1 of 2 CSI plugin pods on volume networks team-x/nfs; " + lost + "; RWX volumes wait for their networks: pvc-of-team-x for team-x/nfs (StorageClass fast)",
					Blockers: []catalog.Blocker{{Kind: catalog.BlockedByClient, Name: "csi-node-1", Nodes: []string{"node-1"}, Message: lost}},
				}
			}),
		},
		"rolled: an address is still waited for": {
			start: onVolumeNetworks(false, onX),
			but:   func(r *Rollout) { r.Clients[1].VolumeNetworksReported = nil },
			want: still(func(s *Step) {
				waits := "CSI plugin pod csi-node-2 on node-2 has no address yet on " + onX.String() + ": Multus reports none"
				s.Volumes = Progress{
					Phase: PhaseRolling, Message: waits + "; RWX volumes wait for their networks: pvc-of-team-x for team-x/nfs (StorageClass fast)",
					Blockers: []catalog.Blocker{{Kind: catalog.BlockedByClient, Name: "csi-node-2", Nodes: []string{"node-2"}, Message: waits}},
				}
			}),
		},
		"rolled: servers may be on it, also while another network is yet to be joined": {
			start: onVolumeNetworks(false, onX, onY),
			but:   func(r *Rollout) { r.Clients[1].VolumeNetworksReported = []storage.Attachment{onX} },
			want: still(func(s *Step) {
				s.Action, s.Networks = RecordVolumeServers, []storage.Attachment{onX}
				s.Volumes = Progress{
					Phase:   PhaseSwitching,
					Message: "every CSI plugin pod is there: new servers may be on volume networks team-x/nfs; RWX volumes wait for their networks: pvc-of-team-x for team-x/nfs (StorageClass fast), pvc-of-team-y for team-y/nfs (StorageClass fast)",
				}
			}),
		},
		"there: the Service of a volume at rest is made anew": {
			start: onVolumeNetworks(true, onX),
			but:   func(r *Rollout) { r.Services = []storage.Service{service("pvc-of-team-x", netOne)} },
			want: still(func(s *Step) {
				s.Action, s.Services = ReplaceServices, []storage.Service{service("pvc-of-team-x", netOne)}
				s.Volumes = Progress{Phase: PhaseSwitching, Message: "replacing 1 Service of detached volumes"}
			}),
		},
		"there: an address that changes takes a new Service too": {
			start: onVolumeNetworks(true, onX),
			but: func(r *Rollout) {
				r.Volumes[0].Request.Identity.Addresses = "10.0.0.9"
				r.Services = []storage.Service{serviceOnX("pvc-of-team-x")}
			},
			want: still(func(s *Step) {
				s.Action, s.Services = ReplaceServices, []storage.Service{serviceOnX("pvc-of-team-x")}
				s.Volumes = Progress{Phase: PhaseSwitching, Message: "replacing 1 Service of detached volumes"}
			}),
		},
		"there: an attached volume follows when next attached": {
			start: onVolumeNetworks(true, onX),
			but: func(r *Rollout) {
				r.Volumes = []storage.Volume{askingFor("pvc-a", teamX, "node-1")}
				r.Services = []storage.Service{service("pvc-a", netOne)}
			},
			want: still(func(s *Step) { s.Volumes.Message = "yet to be attached anew for their networks: pvc-a" }),
		},
		"there: everything is where it asks to be": {
			start: onVolumeNetworks(true, onX),
			but:   func(r *Rollout) { r.Services = []storage.Service{serviceOnX("pvc-of-team-x")} },
			want:  still(func(*Step) {}),
		},
		"astray: servers leave the network that a client came up without": {
			start: onVolumeNetworks(true, onX, onY),
			but:   func(r *Rollout) { r.Clients[0].VolumeNetworks = []storage.Attachment{onY} },
			want: still(func(s *Step) {
				s.Action, s.Networks, s.Updated = RecordVolumeServers, []storage.Attachment{onY}, 1
				s.Volumes = Progress{Phase: PhaseSwitching, Message: "new servers may be on volume networks team-y/nfs"}
			}),
		},
		"astray: servers leave the network that the template was taken off": {
			start: onVolumeNetworks(true, onX, onY),
			but:   func(r *Rollout) { r.DaemonSet.VolumeNetworks = []storage.Attachment{onY} },
			want: still(func(s *Step) {
				s.Action, s.Networks = RecordVolumeServers, []storage.Attachment{onY}
				s.Volumes = Progress{Phase: PhaseSwitching, Message: "new servers may be on volume networks team-y/nfs"}
			}),
		},
		"leaving: servers first, attached volumes or not": {
			start: onVolumeNetworks(true, onX),
			but: func(r *Rollout) {
				r.Volumes = []storage.Volume{askingFor("pvc-a", storage.Network{}, "node-1")}
				r.Services = []storage.Service{serviceOnX("pvc-a")}
			},
			want: still(func(s *Step) {
				s.Action, s.Message = RecordVolumeServers, s.Message+"; yet to be attached anew: pvc-a"
				s.Volumes = Progress{Phase: PhaseSwitching, Message: "new servers may be on volume networks no more"}
			}),
		},
		"leaving: clients stay while a volume is there": {
			start: onVolumeNetworks(false, onX),
			but: func(r *Rollout) {
				r.Volumes = []storage.Volume{askingFor("pvc-a", storage.Network{}, "node-1")}
				r.Services = []storage.Service{serviceOnX("pvc-a")}
			},
			want: still(func(s *Step) { s.Message += "; yet to be attached anew: pvc-a" }),
		},
		"leaving: clients stay while a server without a Service is there": {
			start: onVolumeNetworks(false, onX),
			but: func(r *Rollout) {
				r.Volumes, r.Servers = nil, []storage.Server{{Pod: "share-manager-pvc-a", Volume: "pvc-a", Network: onX}}
			},
			want: still(func(*Step) {}),
		},
		"leaving: Services just admitted settle": {
			start: onVolumeNetworks(false, onX),
			but:   func(r *Rollout) { r.Volumes, r.Record.ServersSince = nil, noon.Add(-4*time.Second) },
			want: still(func(s *Step) {
				s.After = 6 * time.Second
				s.Volumes = Progress{Phase: PhaseWaiting, Message: "letting Services settle that were just admitted"}
			}),
		},
		"leaving: clients last": {
			start: onVolumeNetworks(false, onX, onY),
			but: func(r *Rollout) {
				r.Record.VolumeServers, r.Volumes = []storage.Attachment{onY}, r.Volumes[1:]
			},
			want: still(func(s *Step) {
				s.Action, s.Networks = RecordVolumeClients, []storage.Attachment{onY}
				s.Volumes = Progress{Phase: PhaseRolling, Message: "CSI plugin pods are built with volume networks team-y/nfs"}
			}),
		},
		"the settings' network goes first": {
			start: onVolumeNetworks(false),
			but: func(r *Rollout) {
				r.Desired = netTwo
				r.Volumes, r.Networks = []storage.Volume{askingFor("pvc-a", teamX)}, NetworksThere([]storage.Network{netOne.Network, teamX, netTwo.Network})
			},
			want: Step{
				Action: RecordServers, Phase: PhaseSwitching, Message: "new servers go to the cluster network", Updated: 2, Total: 2,
				Volumes: Progress{Phase: PhaseWaiting, Message: "RWX volumes wait for their networks: pvc-a for team-x/nfs (StorageClass fast)"},
			},
		},
		"the settings' network does not wait for volumes on their own": {
			start: onVolumeNetworks(true, onX),
			but: func(r *Rollout) {
				r.Desired, r.Record.Servers = clusterNet, clusterNet
				r.Services = []storage.Service{serviceOnX("pvc-of-team-x")}
				r.Servers = []storage.Server{{Pod: "share-manager-pvc-of-team-x", Volume: "pvc-of-team-x", Network: onX}}
			},
			want: Step{Action: RecordClients, Phase: PhaseRolling, Message: "the gate is open: 2 CSI plugin pods restart", Updated: 2, Total: 2},
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

// withoutX is the template on the network and no client made from it yet.
func withoutX(r *Rollout) {
	r.DaemonSet.Paused = true
	for i := range r.Clients {
		r.Clients[i].Revision, r.Clients[i].VolumeNetworks, r.Clients[i].VolumeNetworksReported = "6", nil, nil
	}
}

// Each line is a reason why servers may not be on the network yet.
func TestServersWaitForEveryClient(t *testing.T) {
	if r := onVolumeNetworks(false, onX)(); !r.reachedByAll(onX) {
		t.Fatal("every client is there")
	}
	for name, but := range map[string]func(*Rollout){
		"no DaemonSet":                  func(r *Rollout) { r.DaemonSet.Found = false },
		"a template not seen yet":       func(r *Rollout) { r.DaemonSet.Observed = false },
		"a template without it":         func(r *Rollout) { r.DaemonSet.VolumeNetworks = []storage.Attachment{onY} },
		"a client to come":              func(r *Rollout) { r.DaemonSet.Wanted++ },
		"a client that is not Ready":    func(r *Rollout) { r.Clients[1].Ready = false },
		"a client that is going":        func(r *Rollout) { r.Clients[1].Terminating = true },
		"a client that does not ask":    func(r *Rollout) { r.Clients[1].VolumeNetworks = nil },
		"a client without an address":   func(r *Rollout) { r.Clients[1].VolumeNetworksReported = nil },
		"an address on another network": func(r *Rollout) { r.Clients[1].VolumeNetworksReported = []storage.Attachment{onY} },
	} {
		t.Run(name, func(t *testing.T) {
			r := onVolumeNetworks(false, onX)()
			if but(&r); r.reachedByAll(onX) {
				t.Fatal("servers may be on it")
			}
		})
	}
}

func TestPlace(t *testing.T) {
	fixed := storage.Identity{Addresses: "10.0.0.9"}
	record := Record{Clients: netOne, Servers: netOne, VolumeClients: []storage.Attachment{onX, onY}, VolumeServers: []storage.Attachment{onX}}
	for name, test := range map[string]struct {
		record  Record
		request storage.Request
		want    storage.Placement
		waits   bool
	}{
		"nothing asked":                            {record, storage.Request{}, storage.Placement{Network: netOne}, false},
		"only an address":                          {record, storage.Request{Identity: fixed}, storage.Placement{Network: netOne, Identity: fixed}, false},
		"an address on the cluster network":        {Record{}, storage.Request{Identity: fixed}, storage.Placement{}, false},
		"the network that all are on":              {record, storage.Request{Network: netOne.Network, Identity: fixed}, storage.Placement{Network: netOne, Identity: fixed}, false},
		"one of its own":                           {record, storage.Request{Network: teamX, Identity: fixed}, storage.Placement{Network: onX, Identity: fixed}, false},
		"one that servers may not be on yet":       {record, storage.Request{Network: teamY, Identity: fixed}, storage.Placement{Network: netOne}, true},
		"the one of all, while servers are off it": {Record{Clients: netOne}, storage.Request{Network: netOne.Network, Identity: fixed}, storage.Placement{}, true},
	} {
		t.Run(name, func(t *testing.T) {
			got, ready := test.record.Place(test.request)
			if got != test.want || ready == test.waits {
				t.Fatalf("got %+v, ready %v", got, ready)
			}
		})
	}
}

func TestNetworksAreLookedUpWhileOneIsUsed(t *testing.T) {
	asked := atRest(clusterNet)
	asked.Volumes = []storage.Volume{askingFor("pvc-a", teamX)}
	desired := atRest(clusterNet)
	desired.Desired = netOne
	left := atRest(netOne)
	left.Desired = clusterNet
	for name, test := range map[string]struct {
		Rollout
		want bool
	}{
		"none": {atRest(clusterNet), false}, "at rest on one": {atRest(netOne), true}, "one is desired": {desired, true},
		"clients have yet to leave one": {left, true}, "a volume asks for one": {asked, true},
	} {
		if got := test.UsesNetworks(); got != test.want {
			t.Errorf("%s: got %t", name, got)
		}
	}
}
