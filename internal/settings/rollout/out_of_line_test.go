package rollout

import (
	"slices"
	"testing"

	"github.com/fairlead-io/fairlead/internal/settings/catalog"
	"github.com/fairlead-io/fairlead/internal/storage"
)

func TestWhatIsOutOfLineIsFound(t *testing.T) {
	server := func(volume string, on storage.Attachment) storage.Server {
		return storage.Server{Pod: "share-manager-" + volume, Volume: volume, Node: "node-1", Network: on}
	}
	const one, two = "kube-system/one@lhnet1", "kube-system/two@lhnet2"
	for name, test := range map[string]struct {
		but  func(*Rollout)
		want []OutOfLine
	}{
		"nothing, at rest": {},
		"nothing, with volumes on the network": {
			but: func(r *Rollout) {
				r.Services, r.Servers = []storage.Service{service("v", netOne)}, []storage.Server{server("v", netOne)}
			},
		},
		"a client that came up while the webhooks were away": {
			but: func(r *Rollout) { r.Clients[1].Network = clusterNet },
			want: []OutOfLine{{catalog.BlockedByClient, "csi-node-2", "asks for the cluster network instead of " + one +
				"; restarted when no RWX volume is attached on node-2"}},
		},
		"a client on another network": {
			but: func(r *Rollout) { r.Clients[0].Network = netTwo },
			want: []OutOfLine{{catalog.BlockedByClient, "csi-node-1", "asks for " + two + " instead of " + one +
				"; restarted when no RWX volume is attached on node-1"}},
		},
		"nothing, with two networks on template, clients and servers": {
			but: func(r *Rollout) {
				both := []storage.Attachment{netTwo, netOne}
				r.Services, r.Servers = []storage.Service{service("v", netOne)}, []storage.Server{server("v", netTwo)}
				r.Servers[0].Networks = both
				for i := range r.Clients {
					r.Clients[i].Network, r.Clients[i].Networks = netTwo, both
				}
			},
		},
		"a client that is going anyway": {but: func(r *Rollout) { r.Clients[1].Network, r.Clients[1].Terminating = clusterNet, true }},
		"clients that opt out":          {but: func(r *Rollout) { r.Clients[1].Network, r.DaemonSet.OptOut = clusterNet, true }},
		"a Service of an attached volume": {
			but: func(r *Rollout) {
				r.Services = []storage.Service{service("v", clusterNet)}
				v := attached("v", "node-1", "node-2")
				v.Workloads = []string{"default/web-0"}
				r.Volumes = []storage.Volume{attached("w", "node-1"), v}
			},
			want: []OutOfLine{{catalog.BlockedByService, "v", "is for the cluster network, its server would be on " + one + " now" +
				"; replaced when the volume is detached: v (node-1, node-2, pod default/web-0)"}},
		},
		"a Service of a detached volume whose server lingers": {
			but: func(r *Rollout) {
				r.Services, r.Servers = []storage.Service{service("v", clusterNet)}, []storage.Server{server("v", clusterNet)}
				r.Volumes = []storage.Volume{{Name: "v", Shared: true}}
			},
			want: []OutOfLine{{catalog.BlockedByService, "v", "is for the cluster network, its server would be on " + one + " now; replaced when its server pod is gone"}},
		},
		"a Service that can't be headless": {
			but: func(r *Rollout) {
				r.Services = []storage.Service{service("v", clusterNet)}
				r.Services[0].Fixed = true
			},
			want: []OutOfLine{{catalog.BlockedByService, "v", "is for the cluster network, its server would be on " + one + " now; left alone, since it is not of type ClusterIP"}},
		},
		"a Service that opts out": {
			but: func(r *Rollout) {
				r.Services = []storage.Service{service("v", clusterNet)}
				r.Services[0].OptOut = true
			},
			want: []OutOfLine{{catalog.BlockedByService, "v", "is for the cluster network, its server would be on " + one + " now; left alone, since it opts out by fairlead.io/opt-out"}},
		},
		"a Service that is left on the network": {
			but:  func(r *Rollout) { r.Record.Servers, r.Services = clusterNet, []storage.Service{service("v", netOne)} },
			want: []OutOfLine{{catalog.BlockedByService, "v", "is for " + one + ", its server would be on the cluster network now; replaced when its server pod is gone"}},
		},
		"a headless Service of the storage system's own follows the clients": {
			but: func(r *Rollout) {
				r.Services = []storage.Service{{Name: "v", Volume: "v", ClusterIP: storage.ClusterIPNone}}
				r.Servers = []storage.Server{server("v", netOne)}
			},
		},
		"a server that its clients look for elsewhere": {
			but: func(r *Rollout) {
				r.Services, r.Servers = []storage.Service{service("v", netOne)}, []storage.Server{server("v", clusterNet)}
			},
			want: []OutOfLine{{catalog.BlockedByServer, "share-manager-v", "asks for the cluster network, its Service is for " + one +
				"; restarted when no started workload uses volume v"}},
		},
		"a server that is going anyway": {
			but: func(r *Rollout) {
				r.Services, r.Servers = []storage.Service{service("v", netOne)}, []storage.Server{server("v", clusterNet)}
				r.Servers[0].Terminating = true
			},
		},
		"a server on a network whose Service has a cluster IP is reached by that": {
			but: func(r *Rollout) {
				r.Services, r.Servers = []storage.Service{service("v", clusterNet)}, []storage.Server{server("v", netOne)}
			},
			want: []OutOfLine{
				{catalog.BlockedByServer, "share-manager-v", "asks for " + one + ", its Service is for the cluster network; left as it is until the volume is detached"},
				{catalog.BlockedByService, "v", "is for the cluster network, its server would be on " + one + " now; replaced when its server pod is gone"},
			},
		},
		"a server without a Service has nothing to be in line with": {
			but: func(r *Rollout) { r.Servers = []storage.Server{server("v", clusterNet)} },
		},
		"a server is held against its own Service, not another's": {
			but: func(r *Rollout) {
				r.Services = []storage.Service{service("v", netOne), service("w", clusterNet)}
				r.Servers = []storage.Server{server("w", clusterNet), server("v", netOne)}
			},
			want: []OutOfLine{{catalog.BlockedByService, "w", "is for the cluster network, its server would be on " + one + " now; replaced when its server pod is gone"}},
		},
		"all at once, in an order that does not flicker": {
			but: func(r *Rollout) {
				r.Clients[0].Network, r.Clients[1].Network = clusterNet, clusterNet
				r.Services = []storage.Service{service("w", clusterNet), service("v", netOne)}
				r.Servers = []storage.Server{server("v", clusterNet)}
			},
			want: []OutOfLine{
				{catalog.BlockedByClient, "csi-node-1", "asks for the cluster network instead of " + one + "; restarted when no RWX volume is attached on node-1"},
				{catalog.BlockedByClient, "csi-node-2", "asks for the cluster network instead of " + one + "; restarted when no RWX volume is attached on node-2"},
				{catalog.BlockedByServer, "share-manager-v", "asks for the cluster network, its Service is for " + one + "; restarted when no started workload uses volume v"},
				{catalog.BlockedByService, "w", "is for the cluster network, its server would be on " + one + " now; replaced when its server pod is gone"},
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			r := atRest(netOne)
			if test.but != nil {
				test.but(&r)
			}
			if got := FindOutOfLine(r); !slices.Equal(got, test.want) {
				t.Fatalf("got  %q\nwant %q", got, test.want)
			}
		})
	}
}
