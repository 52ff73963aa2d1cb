package sample

import (
	"fmt"
	"time"

	"github.com/fairlead-io/fairlead/internal/longhorn"
	"github.com/fairlead-io/fairlead/internal/multus"
	"github.com/fairlead-io/fairlead/internal/rwx"
	"github.com/fairlead-io/fairlead/internal/settings/catalog"
	"github.com/fairlead-io/fairlead/internal/settings/planner"
	"github.com/fairlead-io/fairlead/internal/settings/rollout"
)

// Cluster is how large a cluster is that plans are made for.
type Cluster struct{ Volumes, Pods, Nodes int }

// The cluster of the requirement, and a tenth of it.
var (
	Large = Cluster{Volumes: 1000, Pods: 5000, Nodes: 200}
	Tenth = Cluster{Volumes: 100, Pods: 500, Nodes: 20}
)

func (c Cluster) String() string {
	return fmt.Sprintf("%d volumes, %d pods, %d nodes", c.Volumes, c.Pods, c.Nodes)
}

// on is the network that shared volumes are on.
var on = multus.Attachment{Network: multus.Network{Namespace: "kube-system", Name: "storage-net"}, Interface: longhorn.DefaultNames().EndpointInterface}

// Facts of it. Everything is outdated: the priority class that all is to be built
// with waits for volumes, other settings for what runs in a pod. Half of the volumes
// are RWX, each with a Service, and, where attached, a server; half of all are
// attached. Their network is rolled out, so that every Service is looked at. Beside
// the clients, one for each node, the pods are components of every kind.
func (c Cluster) Facts() planner.Facts {
	system := map[catalog.Name]string{
		catalog.PriorityClass: "longhorn-critical", catalog.TaintToleration: "dedicated=storage:NoSchedule",
		catalog.StorageNetwork: "kube-system/storage-net", catalog.GuaranteedCPU: "20",
		catalog.EndpointNetworkForRWX: "kube-system/storage-net",
	}
	f := planner.Facts{
		Names: longhorn.DefaultNames(), SystemValues: system, Values: catalog.Resolve(nil, system),
		Nodes: catalog.Nodes{}, Now: time.Unix(0, 0),
		Rollout: rollout.Rollout{
			MountsFromHost: true, Record: rollout.Record{Clients: on, Servers: on},
			DaemonSet: rollout.DaemonSet{Name: "longhorn-csi-plugin", Found: true, Observed: true, Network: on, Wanted: c.Nodes, MaxUnavailable: 1, Revision: "1"},
		},
	}
	for i := range c.Nodes {
		f.Nodes[c.node(i)] = catalog.Node{Ready: true, Storage: true, AllocatableMilliCPU: 16_000}
		f.Rollout.Clients = append(f.Rollout.Clients, rwx.Client{
			Pod: fmt.Sprintf("longhorn-csi-plugin-%03d", i), Node: c.node(i), Ready: true, Revision: "1", Network: on, Reported: true,
		})
	}
	for i := range c.Volumes {
		f.Rollout.Volumes = append(f.Rollout.Volumes, c.volume(i))
		if v := f.Rollout.Volumes[i]; v.Shared {
			f.Rollout.Services = append(f.Rollout.Services, rwx.Service{Namespace: "longhorn-system", Name: v.Name, Volume: v.Name, ClusterIP: rwx.ClusterIPNone, Recorded: on})
			if v.Attached {
				f.Rollout.Servers = append(f.Rollout.Servers, rwx.Server{Pod: "share-manager-" + v.Name, Volume: v.Name, Node: c.node(i), Network: on, Ready: true})
			}
		}
	}
	for i := range c.Pods - c.Nodes {
		f.Components = append(f.Components, c.component(i))
	}
	return f
}

func (c Cluster) node(i int) string { return fmt.Sprintf("node-%03d", i%c.Nodes) }

func (c Cluster) volume(i int) rwx.Volume {
	return rwx.Volume{
		Name: fmt.Sprintf("pvc-%05d", i), Attached: i%2 == 0, Shared: i%4 < 2, Engine: catalog.EngineV1,
		Nodes: []string{c.node(i)}, Workloads: []string{fmt.Sprintf("default/web-%d", i)},
	}
}

// component is one of every kind that pods are made of, instance managers idle or in use.
func (c Cluster) component(i int) catalog.Component {
	p := catalog.Component{
		Name: fmt.Sprintf("component-%05d", i), UID: fmt.Sprint(i), Node: c.node(i), Engine: catalog.EngineV1, Ready: true,
		Built: map[catalog.Trait]string{
			catalog.PriorityClassName: "", catalog.Tolerations: "", catalog.NodeSelector: "",
			catalog.StorageAttachment: "", catalog.CPURequest: "480m", catalog.DataEngine: "true",
		},
	}
	switch i % 5 {
	case 0:
		p.Kind = catalog.ShareManager
	case 1:
		p.Kind = catalog.BackingImageManager
	default:
		p.Kind = catalog.InstanceManager
	}
	if i%4 != 0 {
		p.Uses = []string{fmt.Sprintf("pvc-%05d-e-0", i), fmt.Sprintf("pvc-%05d-r-0", i)}
	}
	return p
}
