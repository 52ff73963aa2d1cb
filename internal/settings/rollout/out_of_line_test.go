package rollout

import (
	"testing"

	"github.com/fairlead-io/fairlead/internal/multus"
	"github.com/fairlead-io/fairlead/internal/rwx"
	"github.com/fairlead-io/fairlead/internal/settings/catalog"
	"github.com/fairlead-io/fairlead/internal/testkit/must"
)

func TestFindOutOfLine(t *testing.T) {
	const one, two = "kube-system/one@lhnet1", "kube-system/two@lhnet2"
	asks := func(node, network string) OutOfLine {
		return OutOfLine{catalog.BlockedByClient, "csi-" + node, "asks for " + network + " instead of " + one + "; restarted when no RWX volume is attached on " + node}
	}
	lacks := func(node string) OutOfLine {
		return OutOfLine{catalog.BlockedByClient, "csi-" + node, "does not ask for team-x/nfs; restarted when no RWX volume is attached on " + node}
	}
	onCluster := func(volume, waits string) OutOfLine {
		return OutOfLine{catalog.BlockedByService, volume, "still uses the cluster network instead of " + one + "; " + waits}
	}
	const whenServerIsGone, inTurn = "recreated when its server pod is gone", "recreated when the roll-out comes to it"
	lostServer := OutOfLine{catalog.BlockedByServer, "share-manager-v", "asks for the cluster network, but its Service uses " + one + "; restarted when no started workload uses volume v"}
	objects := func(services []rwx.Service, servers ...rwx.Server) func(*Rollout) {
		return func(r *Rollout) { r.Services, r.Servers = services, servers }
	}
	for name, test := range map[string]struct {
		change func(*Rollout)
		want   []OutOfLine
	}{
		"settled":                    {func(*Rollout) {}, nil},
		"settled with a volume":      {objects([]rwx.Service{service("v", netOne)}, server("v", netOne)), nil},
		"client without the network": {func(r *Rollout) { r.Clients[1].Network = clusterNet }, []OutOfLine{asks("node-2", "the cluster network")}},
		"client on another network":  {func(r *Rollout) { r.Clients[0].Network = netTwo }, []OutOfLine{asks("node-1", two)}},
		"template, clients and servers on two networks": {func(r *Rollout) {
			putOnBoth(r)
			objects([]rwx.Service{service("v", netOne)}, server("v", netTwo))(r)
			r.Servers[0].Networks = r.DaemonSet.Networks
		}, nil},
		"client without a per-volume network": {func(r *Rollout) { r.Record.VolumeClients = []multus.Attachment{netX} }, []OutOfLine{lacks("node-1"), lacks("node-2")}},
		"headless Service without a network": {func(r *Rollout) {
			r.Record = Record{}
			r.Clients = nil
			r.Services = []rwx.Service{{Name: "v", Volume: "v", ClusterIP: rwx.ClusterIPNone}}
		}, []OutOfLine{{catalog.BlockedByService, "v", "is headless, and no network is applied: nothing is published for it; " + inTurn}}},
		"Service with another address": {func(r *Rollout) {
			r.Volumes, r.Services = []rwx.Volume{{Name: "v", Shared: true, Request: rwx.Request{Identity: multus.Identity{Addresses: "10.0.0.9"}}}}, []rwx.Service{service("v", netOne)}
		}, []OutOfLine{{catalog.BlockedByService, "v", "still has other addresses than its volume asks for; " + inTurn}}},
		"server on the network without a Service": {objects(nil, server("v", netOne)), nil},
		"terminating client":                      {func(r *Rollout) { r.Clients[1].Network, r.Clients[1].Terminating = clusterNet, true }, nil},
		"clients that opt out":                    {func(r *Rollout) { r.Clients[1].Network, r.DaemonSet.OptOut = clusterNet, true }, nil},
		"Service of an attached volume": {func(r *Rollout) {
			v := attached("v", "node-1", "node-2")
			v.Workloads = []string{"default/web-0"}
			r.Services, r.Volumes = []rwx.Service{service("v", clusterNet)}, []rwx.Volume{attached("w", "node-1"), v}
		}, []OutOfLine{onCluster("v", "recreated when the volume is detached: v (node-1, node-2, pod default/web-0)")}},
		"Service of a detached volume with a server": {func(r *Rollout) {
			objects([]rwx.Service{service("v", clusterNet)}, server("v", clusterNet))(r)
			r.Volumes = []rwx.Volume{{Name: "v", Shared: true}}
		}, []OutOfLine{onCluster("v", whenServerIsGone)}},
		"Service that can't be headless": {func(r *Rollout) {
			r.Services = []rwx.Service{service("v", clusterNet)}
			r.Services[0].Fixed = true
		}, []OutOfLine{onCluster("v", "left alone, since it is not of type ClusterIP")}},
		"Service that opts out": {func(r *Rollout) {
			r.Services = []rwx.Service{service("v", clusterNet)}
			r.Services[0].OptOut = true
		}, []OutOfLine{onCluster("v", "left alone, since it opts out by fairlead.io/opt-out")}},
		"Service that is still on the network": {func(r *Rollout) { r.Record.Servers, r.Services = clusterNet, []rwx.Service{service("v", netOne)} },
			[]OutOfLine{{catalog.BlockedByService, "v", "still uses " + one + " instead of the cluster network; " + inTurn}}},
		"headless Service of the storage system follows clients": {
			objects([]rwx.Service{{Name: "v", Volume: "v", ClusterIP: rwx.ClusterIPNone}}, server("v", netOne)), nil},
		"server off the network of its Service": {objects([]rwx.Service{service("v", netOne)}, server("v", clusterNet)), []OutOfLine{lostServer}},
		"terminating server": {func(r *Rollout) {
			objects([]rwx.Service{service("v", netOne)}, server("v", clusterNet))(r)
			r.Servers[0].Terminating = true
		}, nil},
		"server on a network whose Service has a cluster IP": {objects([]rwx.Service{service("v", clusterNet)}, server("v", netOne)),
			[]OutOfLine{{catalog.BlockedByServer, "share-manager-v", "asks for " + one + ", but its Service uses the cluster network; left as it is until the volume is detached"}, onCluster("v", whenServerIsGone)}},
		"server without a Service": {objects(nil, server("v", clusterNet)), nil},
		"several volumes": {objects([]rwx.Service{service("v", netOne), service("w", clusterNet)}, server("w", clusterNet), server("v", netOne)),
			[]OutOfLine{onCluster("w", whenServerIsGone)}},
		"stable order": {func(r *Rollout) {
			r.Clients[0].Network, r.Clients[1].Network = clusterNet, clusterNet
			objects([]rwx.Service{service("w", clusterNet), service("v", netOne)}, server("v", clusterNet))(r)
		}, []OutOfLine{asks("node-1", "the cluster network"), asks("node-2", "the cluster network"), lostServer, onCluster("w", inTurn)}},
	} {
		r := onOne()
		test.change(&r)
		must.Equal(t, FindOutOfLine(r), test.want, "%s", name)
	}
}
