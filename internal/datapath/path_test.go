package datapath

import (
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/fairlead-io/fairlead/internal/longhorn"
	"github.com/fairlead-io/fairlead/internal/multus"
	"github.com/fairlead-io/fairlead/internal/rwx"
	"github.com/fairlead-io/fairlead/internal/settings/rollout"
	"github.com/fairlead-io/fairlead/internal/testkit/must"
)

var (
	onNetwork = multus.Attachment{Network: multus.Network{Namespace: "kube-system", Name: "storage-net"}, Interface: "lhnet1"}
	address   = netip.MustParseAddr("10.1.0.7")
)

// attached has volume pvc-a, in use on node-1 and served on node-2, all on the network.
func attached() Facts {
	return Facts{
		Names: longhorn.DefaultNames(), ClusterDomain: "cluster.local",
		Rollout: rollout.Rollout{
			Desired:   onNetwork,
			Record:    rollout.Record{Clients: onNetwork, Servers: onNetwork},
			DaemonSet: rollout.DaemonSet{Name: "longhorn-csi-plugin", Found: true, Network: onNetwork, Wanted: 1},
			Volumes:   []rwx.Volume{{Name: "pvc-a", Shared: true, Attached: true, Nodes: []string{"node-1"}, Workloads: []string{"default/web-0"}}, {Name: "pvc-block", Attached: true}},
			Services:  []rwx.Service{{Namespace: "longhorn-system", Name: "pvc-a", Volume: "pvc-a", ClusterIP: rwx.ClusterIPNone, Recorded: onNetwork}},
			Servers: []rwx.Server{{Pod: "share-manager-pvc-a", Volume: "pvc-a", Node: "node-2", Network: onNetwork, Ready: true,
				Reported: []multus.Reported{{Network: "kube-system/storage-net", Interface: "lhnet1", IPs: []string{address.String()}}}}},
			Clients: []rwx.Client{{Pod: "longhorn-csi-plugin-1", Node: "node-1", Network: onNetwork, Reported: true, Ready: true}},
		},
		Published: map[string][]netip.Addr{"pvc-a": {address}},
		Endpoints: map[string]string{"pvc-a": "nfs://pvc-a.longhorn-system.svc.cluster.local/pvc-a"},
	}
}

func TestHopThatDisagreesIsNamed(t *testing.T) {
	other := multus.Attachment{Network: multus.Network{Namespace: "kube-system", Name: "backup-net"}, Interface: "lhnet1"}
	for name, test := range map[string]struct {
		change  func(*Facts)
		state   State
		kind    Kind
		message string
		command string
	}{
		"nothing": {func(*Facts) {}, OK, "", "", ""},
		"no client": {func(f *Facts) { f.Rollout.Clients = nil }, Wrong, Client,
			"no ready client of the storage system on node node-1", "kubectl -n longhorn-system get pods -l app=longhorn-csi-plugin --field-selector spec.nodeName=node-1 -o wide"},
		"client without an address": {func(f *Facts) { f.Rollout.Clients[0].Reported = false }, Wrong, Client, "no ready client", "kubectl -n longhorn-system get pods"},
		"client without the volume's network": {func(f *Facts) {
			own := multus.VolumeAttachment(other.Network)
			f.Rollout.Services[0].Recorded, f.Rollout.Servers[0].Network, f.Rollout.Servers[0].Reported[0] = own, own, multus.Reported{Network: own.Network.String(), Interface: own.Interface, IPs: []string{address.String()}}
			f.Rollout.Volumes[0].Request.Network, f.Rollout.Record.VolumeServers = other.Network, []multus.Attachment{own}
		}, Wrong, Client, "Multus reports no address of pod longhorn-csi-plugin-1 on kube-system/backup-net@", "kubectl"},
		// Regression: a roll-out of the default network made volumes with a network of their own seem wrong.
		"client on the volume's network, not on the default network": {func(f *Facts) {
			own := multus.VolumeAttachment(other.Network)
			f.Rollout.Services[0].Recorded, f.Rollout.Servers[0].Network, f.Rollout.Servers[0].Reported[0] = own, own, multus.Reported{Network: own.Network.String(), Interface: own.Interface, IPs: []string{address.String()}}
			f.Rollout.Volumes[0].Request.Network, f.Rollout.Record.VolumeServers = other.Network, []multus.Attachment{own}
			c := &f.Rollout.Clients[0]
			c.Network, c.Reported, c.VolumeNetworks, c.VolumeNetworksReported = multus.Attachment{}, false, []multus.Attachment{own}, []multus.Attachment{own}
		}, OK, "", "", ""},
		"client will join another volume's network": {func(f *Facts) {
			f.Rollout.Record.VolumeClients = []multus.Attachment{multus.VolumeAttachment(other.Network)}
		}, OK, "", "", ""},
		"workload with a dead mount": {func(f *Facts) {
			f.Dead = []rwx.DeadMount{{Pod: "default/web-0", Node: "node-1", Volumes: []string{"pvc-a"}, Message: "its NFS mount does not answer"}}
		}, Wrong, Workload, "pod default/web-0: its NFS mount does not answer", "kubectl -n default delete pod web-0"},
		"dead mount of a pod that nothing recreates": {func(f *Facts) {
			f.Dead = []rwx.DeadMount{{Pod: "default/web-0", Node: "node-1", Volumes: []string{"pvc-a"}, Reason: rwx.ReasonNoController}}
		}, Wrong, Workload, "pod default/web-0", "kubectl -n default get pod web-0 -o yaml"},
		"dead mount of a pod with a disruption budget": {func(f *Facts) {
			f.Dead = []rwx.DeadMount{{Pod: "default/web-0", Node: "node-1", Volumes: []string{"pvc-a"}, Reason: rwx.ReasonBudget}}
		}, Wrong, Workload, "pod default/web-0", "kubectl -n default get poddisruptionbudgets"},
		"dead mount where the volume is no longer attached": {func(f *Facts) {
			f.Dead = []rwx.DeadMount{{Pod: "default/web-0", Node: "node-2", Volumes: []string{"pvc-a"}}}
		}, OK, "", "", ""},
		"dead mount of another volume": {func(f *Facts) {
			f.Dead = []rwx.DeadMount{{Pod: "default/web-0", Node: "node-1", Volumes: []string{"pvc-b"}}}
		}, OK, "", "", ""},
		"pods that start can't mount": {func(f *Facts) {
			f.Place, f.Rollout.Desired, f.Rollout.Volumes[0].Owners = rwx.InHost, multus.Attachment{}, []string{"default/statefulset/web"}
		}, Waiting, Client, "Longhorn mounts over the node's network by now: pods that start on node-1 can't mount volume pvc-a until all its workloads are stopped", "kubectl -n default scale --replicas=0 statefulset/web"},
		"mounts in clients": {func(f *Facts) { f.Place = rwx.InClient }, OK, "", "", ""},
		"endpoint": {func(f *Facts) { f.Endpoints["pvc-a"] = "nfs://10.43.0.9/pvc-a" }, Wrong, Endpoint,
			"the storage system gives clients nfs://10.43.0.9/pvc-a, and Service pvc-a has nfs://pvc-a.longhorn-system.svc.cluster.local/pvc-a", "kubectl -n longhorn-system get service pvc-a -o wide"},
		"slices": {func(f *Facts) { f.Published = nil }, Wrong, Addresses,
			"EndpointSlices of Service pvc-a have none, and Multus reports 10.1.0.7", "kubectl -n fairlead-system rollout restart deployment fairlead-controller"},
		"slices, while no controller leads": {func(f *Facts) { f.Published, f.Idle = nil, true }, Wrong, Addresses,
			"EndpointSlices of Service pvc-a have none, and Multus reports 10.1.0.7: no controller of Fairlead publishes", "fairlead check"},
		"slices with an old address": {func(f *Facts) { f.Published["pvc-a"] = []netip.Addr{address.Next()} }, Wrong, Addresses, "have 10.1.0.8, and Multus reports 10.1.0.7", "kubectl"},
		"server not Ready": {func(f *Facts) { f.Rollout.Servers[0].Ready = false; f.Published = nil }, Wrong, Server,
			"server pod share-manager-pvc-a is not Ready", "kubectl -n longhorn-system describe pod share-manager-pvc-a"},
		"no server": {func(f *Facts) { f.Rollout.Servers = nil; f.Published = nil }, Wrong, Server, "volume pvc-a is attached and has no server pod", "kubectl"},
		"no server, for a backup": {func(f *Facts) {
			f.Rollout.Servers, f.Published, f.Rollout.Volumes[0].Purposes = nil, nil, []string{"a backup"}
		}, OK, "", "", ""},
		"server with the address of another one": {func(f *Facts) { f.Rollout.Servers[0].Clash = rwx.Clash{Pod: "share-manager-pvc-b"} }, Wrong, Server,
			"server pod share-manager-pvc-a has an address on kube-system/storage-net@lhnet1 that pod share-manager-pvc-b has too: the network's ipam assigns addresses twice", "kubectl -n longhorn-system describe pod share-manager-pvc-a"},
		"client with the address of another one": {func(f *Facts) { f.Rollout.Clients[0].Clash = rwx.Clash{Pod: "share-manager-pvc-b"} }, Wrong, Client,
			"has an address on kube-system/storage-net@lhnet1 that pod share-manager-pvc-b has too", "kubectl"},
		"server elsewhere": {func(f *Facts) { f.Rollout.Servers[0].Network = other }, Waiting, Server,
			"pod share-manager-pvc-a asks for kube-system/backup-net@lhnet1, but its Service uses kube-system/storage-net@lhnet1", "kubectl"},
		"client elsewhere": {func(f *Facts) {
			f.Rollout.Clients[0].Networks, f.Rollout.Clients[0].Network = []multus.Attachment{other}, other
		}, Wrong, Client, "no ready client", ""},
		"node not drained yet": {func(f *Facts) {
			f.Rollout.Clients[0].Networks, f.Rollout.Clients[0].Network = nil, multus.Attachment{}
			f.Rollout.Services[0] = rwx.Service{Namespace: "longhorn-system", Name: "pvc-a", Volume: "pvc-a", ClusterIP: "10.43.0.9"}
			f.Endpoints = nil
		}, Waiting, Client, "instead of kube-system/storage-net@lhnet1; restarted when no RWX volume is attached on node-1", "kubectl"},
		"Service elsewhere": {func(f *Facts) {
			f.Rollout.Services[0] = rwx.Service{Namespace: "longhorn-system", Name: "pvc-a", Volume: "pvc-a", ClusterIP: "10.43.0.9"}
			f.Endpoints = nil
		}, Waiting, Service,
			"Service pvc-a still uses the cluster network instead of kube-system/storage-net@lhnet1; recreated when the volume is detached", "kubectl -n longhorn-system get service pvc-a -o yaml"},
		"Service elsewhere, of a workload that can be scaled": {func(f *Facts) {
			f.Rollout.Services[0] = rwx.Service{Namespace: "longhorn-system", Name: "pvc-a", Volume: "pvc-a", ClusterIP: "10.43.0.9"}
			f.Endpoints, f.Rollout.Volumes[0].Owners = nil, []string{"default/deployment/web"}
		}, Waiting, Service, "recreated when the volume is detached", "kubectl -n default scale --replicas=0 deployment/web"},
		"Service elsewhere that is left alone": {func(f *Facts) {
			f.Rollout.Services[0] = rwx.Service{Namespace: "longhorn-system", Name: "pvc-a", Volume: "pvc-a", ClusterIP: "10.43.0.9", OptOut: true}
			f.Endpoints, f.Rollout.Volumes[0].Owners = nil, []string{"default/deployment/web"}
		}, Waiting, Service, "left alone, since it opts out", "kubectl -n longhorn-system get service pvc-a -o yaml"},
		"server elsewhere, of a workload that can be scaled": {func(f *Facts) {
			f.Rollout.Servers[0].Network, f.Rollout.Volumes[0].Owners = other, []string{"default/deployment/web"}
		}, Waiting, Server, "restarted when no started workload uses volume pvc-a", "kubectl -n default scale --replicas=0 deployment/web"},
	} {
		t.Run(name, func(t *testing.T) {
			f := attached()
			test.change(&f)
			paths := Follow(f)
			must.True(t, len(paths) == 1, "got %d paths", len(paths))
			p := paths[0]
			must.Check(t, p.State == test.state, "state %s: %+v", p.State, p.Hops)
			found := test.kind == ""
			for _, h := range p.Hops {
				found = found || h.Kind == test.kind && strings.Contains(h.Message, test.message) && strings.HasPrefix(h.Command, test.command)
				if test.state == OK && h.State != OK {
					t.Errorf("%+v", h)
				}
			}
			must.Check(t, found, "no hop %s says %q: %+v", test.kind, test.message, p.Hops)
		})
	}
}

func TestServerMayTakeTimeToStart(t *testing.T) {
	now := time.Date(2026, 3, 4, 12, 0, 0, 0, time.UTC)
	pod := func(age time.Duration) func(*Facts) {
		return func(f *Facts) {
			f.Rollout.Servers[0].Ready, f.Rollout.Servers[0].Reported, f.Published = false, nil, nil
			f.Rollout.Servers[0].Created = now.Add(-age)
		}
	}
	noPod := func(age time.Duration) func(*Facts) {
		return func(f *Facts) {
			f.Rollout.Servers, f.Published, f.Rollout.Volumes[0].Since = nil, nil, now.Add(-age)
		}
	}
	both := func(changes ...func(*Facts)) func(*Facts) {
		return func(f *Facts) {
			for _, change := range changes {
				change(f)
			}
		}
	}
	failed := func(f *Facts) { f.Failed = map[string]bool{"pvc-a": true} }
	const starts, unpublished = "server share-manager-pvc-a is starting: not Ready yet", "; nothing is published yet"
	const none, notReady = "no Ready server pod of volume pvc-a has an address", "server pod share-manager-pvc-a is not Ready"
	for name, test := range map[string]struct {
		change            func(*Facts)
		state             State
		addresses, server string
	}{
		"pod starts":            {pod(5 * time.Second), Waiting, starts + unpublished, starts},
		"clock is behind":       {pod(-time.Minute), Waiting, starts + unpublished, starts},
		"pod is late":           {pod(startLimit), Wrong, none, notReady},
		"pod has failed":        {both(pod(5*time.Second), failed), Wrong, none, notReady},
		"pod is to be created":  {noPod(5 * time.Second), Waiting, "the server of volume pvc-a is starting: no pod yet" + unpublished, "the server of volume pvc-a is starting: no pod yet"},
		"pod is never created":  {noPod(startLimit), Wrong, none, "volume pvc-a is attached and has no server pod"},
		"failed pod is gone":    {both(noPod(5*time.Second), failed), Wrong, none, "volume pvc-a is attached and has no server pod"},
		"Ready without address": {both(pod(5*time.Second), func(f *Facts) { f.Rollout.Servers[0].Ready = true }), Wrong, none, ""},
		"old address is still published": {both(pod(5*time.Second), func(f *Facts) { f.Published = map[string][]netip.Addr{"pvc-a": {address}} }), Wrong,
			"EndpointSlices of Service pvc-a have 10.1.0.7, and Multus reports none", starts},
	} {
		t.Run(name, func(t *testing.T) {
			f := attached()
			f.Rollout.Now = now
			test.change(&f)
			p, _ := pathOf(f, "pvc-a")
			must.Check(t, p.State == test.state, "state %s", p.State)
			for _, h := range p.Hops {
				if want := map[Kind]string{Addresses: test.addresses, Server: test.server}[h.Kind]; !strings.HasPrefix(h.Message, want) || want == "" && h.State != OK {
					t.Errorf("got %+v, want %q", h, want)
				}
			}
		})
	}
}

func pathOf(f Facts, volume string) (Path, bool) {
	for _, p := range Follow(f) {
		if p.Volume == volume {
			return p, true
		}
	}
	return Path{}, false
}

func TestServiceOfUsedVolumeIsAwaited(t *testing.T) {
	now := time.Date(2026, 3, 4, 12, 0, 0, 0, time.UTC)
	for name, test := range map[string]struct {
		since time.Time
		want  State
	}{
		"just attached":                    {now.Add(-time.Second), Waiting},
		"attached for long":                {now.Add(-startLimit), Wrong},
		"attached by Longhorn, for no pod": {time.Time{}, OK},
	} {
		f := attached()
		f.Rollout.Now, f.Rollout.Services, f.Rollout.Servers, f.Published = now, nil, nil, nil
		f.Rollout.Volumes[0].Since = test.since
		if p, _ := pathOf(f, "pvc-a"); p.State != test.want || p.Network != nil {
			t.Errorf("%s: %+v", name, p)
		}
	}
}

func TestOptedOutServicesAreLeftToOthers(t *testing.T) {
	for name, change := range map[string]func(*rwx.Service){"opt-out": func(s *rwx.Service) { s.OptOut = true }, "selector": func(s *rwx.Service) { s.Selects = true }} {
		f := attached()
		change(&f.Rollout.Services[0])
		f.Published = nil
		if p, _ := pathOf(f, "pvc-a"); p.State != OK {
			t.Errorf("%s: %+v", name, p)
		}
	}
}

func TestVolumeWaitsForWantedNetwork(t *testing.T) {
	f := attached()
	// The settings were changed, new servers are on the cluster network already, and the volume is in use.
	f.Rollout.Desired, f.Rollout.Record.Servers = multus.Attachment{}, multus.Attachment{}
	p, found := pathOf(f, "pvc-a")
	if !found || p.State != Waiting || *p.Network != onNetwork.String() || p.Wanted != "" || !strings.Contains(p.WaitsFor, "recreated when the volume is detached") {
		t.Errorf("got %+v", p)
	}
	if _, found := pathOf(f, "pvc-block"); found {
		t.Error("a volume without a server has a path")
	}
}

// Regression: the Service was told to be recreated for the network that it has.
func TestServiceStaysWhereTheSettingsWereTakenBack(t *testing.T) {
	f := attached()
	f.Rollout.Record.Servers = multus.Attachment{}
	p, _ := pathOf(f, "pvc-a")
	must.True(t, p.State == OK && p.WaitsFor == "", "got %+v", p)
}

// Regression: a volume of the default network waited for the per-volume network of another volume.
func TestVolumeWaitsForItsOwnNetwork(t *testing.T) {
	x := newIndex(attached())
	x.step.Message, x.step.Volumes.Message = "default", "per volume"
	own := multus.VolumeAttachment(onNetwork.Network)
	must.Equal(t, x.waitsFor(multus.Attachment{}, onNetwork), "default")
	must.Equal(t, x.waitsFor(multus.Attachment{}, own), "per volume")
	must.Equal(t, x.waitsFor(own, onNetwork), "per volume")
}

// Longhorn's clients then mount from the host, which is on no network of its own.
func TestWithoutDefaultNetworkNoVolumeWantsItsOwn(t *testing.T) {
	f := attached()
	f.Rollout.MountsFromHost, f.Rollout.Desired = true, multus.Attachment{}
	f.Rollout.Volumes[0].Request.Network = multus.Network{Namespace: "team-x", Name: "nfs"}
	p, _ := pathOf(f, "pvc-a")
	must.Equal(t, p.Wanted, "")
}

func TestIdleVolumeHasNoHops(t *testing.T) {
	f := attached()
	f.Rollout.Volumes[0] = rwx.Volume{Name: "pvc-a", Shared: true}
	f.Rollout.Services, f.Rollout.Servers, f.Published, f.Endpoints = nil, nil, nil, nil
	if p := Follow(f)[0]; p.State != OK || p.Network != nil || len(p.Hops) != 0 {
		t.Errorf("got %+v", p)
	}
}
