package validators

import (
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/fairlead-io/fairlead/internal/longhorn"
	"github.com/fairlead-io/fairlead/internal/multus"
	"github.com/fairlead-io/fairlead/internal/rwx"
	"github.com/fairlead-io/fairlead/internal/settings"
	"github.com/fairlead-io/fairlead/internal/settings/catalog"
	"github.com/fairlead-io/fairlead/internal/settings/planner"
	"github.com/fairlead-io/fairlead/internal/settings/rollout"
)

// situation is the idle cluster with a change.
type situation struct {
	name   string
	change func(*cluster)
}

func with(name string, change func(*cluster)) situation { return situation{name, change} }

func (s situation) facts() SettingFacts {
	c := idleCluster()
	s.change(c)
	c.Values = catalog.Resolve(c.OwnValues, c.SystemValues)
	return c.SettingFacts
}

var webVolume = rwx.Volume{Name: "pvc-117d3553", Shared: true, Attached: true, Nodes: []string{"node-2"}, Workloads: []string{"default/web-0"}}

var (
	// idle is Longhorn 1.7 on three nodes as it is installed, with the v2 data engine on. No volume is attached.
	idle = with("idle", func(*cluster) {})
	// attached has a v1 volume on node-1, with its replica on node-2.
	attached = with("volume attached", func(c *cluster) { c.attach("pvc-1", catalog.EngineV1, "node-1", "node-2") })
	guarding = with("Fairlead only guards, volume attached", func(c *cluster) {
		attached.change(c)
		c.Applies = false
	})
	attachedV2  = with("v2 volume attached", func(c *cluster) { c.attach("pvc-2", catalog.EngineV2, "node-3", "node-3") })
	attachedRWX = with("RWX volume attached", func(c *cluster) {
		c.Rollout.Volumes = append(c.Rollout.Volumes, rwx.Volume{Name: "pvc-rwx", Shared: true, Attached: true, Engine: catalog.EngineV1, Nodes: []string{"node-2"}, Workloads: []string{"default/web-0"}})
		c.use("im-v1-node-2", "pvc-rwx-e-0")
		c.add(catalog.Component{Kind: catalog.ShareManager, Name: "share-manager-pvc-rwx", Node: "node-2", Uses: []string{"pvc-rwx"}})
	})
	manyAttached = with("ten volumes attached", func(c *cluster) {
		for i := range 10 {
			c.attach(fmt.Sprintf("pvc-%02d", i), catalog.EngineV1, fmt.Sprintf("node-%d", i%3+1), fmt.Sprintf("node-%d", (i+1)%3+1))
		}
	})
	// detaching: no volume is attached any more. Both instance managers on node-1 still end an engine.
	detaching = with("volume just detached", func(c *cluster) {
		c.use("im-v1-node-1", "pvc-1-e-0")
		c.use("im-v2-node-1", "pvc-2-e-0")
	})
	gatedByNode = with("gate per node, RWX volume attached", func(c *cluster) {
		attachedRWX.change(c)
		c.Rollout.Gate = rollout.GateNode
	})
	noV2 = with("v2 data engine off", func(c *cluster) {
		c.SystemValues[catalog.V2DataEngine] = "false"
		c.Components = slices.DeleteFunc(c.Components, func(c catalog.Component) bool { return c.Engine == catalog.EngineV2 })
	})
	// strict refuses networks that do not exist. None does.
	strict = with("strict, network missing", func(c *cluster) { c.MissingPolicy = settings.Refuse })

	noNode        = with("no node", func(c *cluster) { c.Nodes = nil })
	effectOmitted = with("effects omitted", func(c *cluster) { c.OmitEffect = true })

	// networkSet: storage-network is set, and waits for an attached v1 volume.
	networkSet = with("storage network waits", func(c *cluster) {
		attached.change(c)
		c.SystemValues[catalog.StorageNetwork] = "kube-system/storage-net"
	})
	networkSetGuarding = with("storage network waits, Fairlead only guards", func(c *cluster) {
		networkSet.change(c)
		c.Applies = false
	})
	// onNetwork: the older setting has put RWX volumes on the storage network.
	onNetwork = with("RWX volumes on the storage network", func(c *cluster) {
		c.SystemValues[catalog.StorageNetwork], c.SystemValues[catalog.StorageNetworkForRWX] = "kube-system/storage-net", "true"
		c.join(storageNet)
		for i := range c.Components {
			if _, joins := c.Components[i].Built[catalog.StorageAttachment]; joins {
				c.Components[i].Built[catalog.StorageAttachment] = storageNet.String()
			}
		}
	})
	networkAttached = with("RWX volume attached on the storage network", func(c *cluster) {
		onNetwork.change(c)
		attachedRWX.change(c)
	})
	// leavingNetwork: RWX volumes are to leave the storage network, and wait for an attached one.
	leavingNetwork = with("RWX volumes leave the storage network", func(c *cluster) {
		networkAttached.change(c)
		c.SystemValues[catalog.StorageNetworkForRWX] = "false"
	})
	// endpointSet: the newer setting asks for another network, and waits for an attached RWX volume.
	endpointSet = with("endpoint network set, RWX volume attached", func(c *cluster) {
		attachedRWX.change(c)
		c.OwnValues[catalog.EndpointNetworkForRWX] = "kube-system/backup-net"
	})
	// malformedNetwork was stored before Fairlead's webhooks were installed.
	malformedNetwork    = with("storage network malformed", func(c *cluster) { c.SystemValues[catalog.StorageNetwork] = "ns/" })
	malformedRWXNetwork = with("storage network malformed, for RWX volumes", func(c *cluster) {
		malformedNetwork.change(c)
		c.SystemValues[catalog.StorageNetworkForRWX] = "true"
	})
)

// cluster builds facts.
type cluster struct{ SettingFacts }

func idleCluster() *cluster {
	c := &cluster{SettingFacts{
		Facts: planner.Facts{
			OwnValues: values{}, SystemValues: values{catalog.AutoCleanup: "true", catalog.V2DataEngine: "true", catalog.PriorityClass: "longhorn-critical"},
			Names: longhorn.DefaultNames(), Now: time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC), Nodes: catalog.Nodes{}, Reported: map[catalog.Name]planner.Reported{},
			Rollout: rollout.Rollout{
				DaemonSet: rollout.DaemonSet{Name: "longhorn-csi-plugin", Found: true, Observed: true, Wanted: 3, MaxUnavailable: 1, Revision: "1"},
				Networks:  map[multus.Network]bool{storageNet.Network: true, backupNet.Network: true},
			},
			Classes: map[string]bool{"longhorn-critical": true, "system-cluster-critical": true, "system-node-critical": true},
		},
		Applies: true, MissingPolicy: settings.Warn,
	}}
	for _, d := range catalog.DangerZone() {
		if _, set := c.SystemValues[d.Name]; !set && in17(d) {
			c.SystemValues[d.Name] = d.Default
		}
	}
	c.Values = catalog.Resolve(c.OwnValues, c.SystemValues)
	for name, value := range c.Values {
		c.Reported[name] = planner.Reported{Rolled: &value.Text, Applied: true}
	}
	for i := 1; i <= 3; i++ {
		name := fmt.Sprintf("node-%d", i)
		c.Rollout.Clients = append(c.Rollout.Clients, rwx.Client{Pod: "csi-" + name, Node: name, Ready: true, Revision: "1"})
		c.Nodes[name] = catalog.Node{Ready: true, Storage: true, AllocatableMilliCPU: 4000, AllocatableHugepagesMiB: 8192, Labels: map[string]string{"kubernetes.io/hostname": name, "disktype": "ssd"}}
	}
	labelled := c.Nodes["node-1"]
	labelled.Labels["rack"], labelled.Taints = "a", []corev1.Taint{{Key: "dedicated", Value: "storage", Effect: "NoSchedule"}}
	c.Nodes["node-1"] = labelled
	for _, name := range []string{"csi-attacher", "csi-provisioner", "csi-resizer", "csi-snapshotter"} {
		c.add(catalog.Component{Kind: catalog.Deployment, Name: name, Updated: 3, Total: 3})
	}
	c.add(catalog.Component{Kind: catalog.DaemonSetComponent, Name: "longhorn-csi-plugin", Client: true, Updated: 3, Total: 3})
	c.add(catalog.Component{Kind: catalog.DaemonSetComponent, Name: "engine-image-ei-1", Updated: 3, Total: 3})
	c.add(catalog.Component{Kind: catalog.BackingImageManager, Name: "backing-image-manager-1", Node: "node-1"})
	for i := 1; i <= 3; i++ {
		for _, engine := range []string{catalog.EngineV1, catalog.EngineV2} {
			c.add(catalog.Component{Kind: catalog.InstanceManager, Name: fmt.Sprintf("im-%s-node-%d", engine, i), Node: fmt.Sprintf("node-%d", i), Engine: engine})
		}
	}
	return c
}

// in17 reports whether Longhorn 1.7 has the setting.
func in17(d catalog.Definition) bool {
	return !slices.Contains([]string{"1.8", "1.10", "1.11", "1.12"}, d.Since)
}

// add a Ready component that is built with the values in effect.
func (c *cluster) add(component catalog.Component) {
	component.Ready, component.Built = true, map[catalog.Trait]string{}
	for _, d := range slices.Backward(catalog.All()) { // the first of a trait decides
		if d.Wants == nil {
			continue
		}
		if want, asked := d.Wants(c.Values[d.Name].Text, component, c.Nodes); asked {
			component.Built[d.Trait] = want
		}
	}
	c.Components = append(c.Components, component)
}

// attach a volume on a node, with its one replica on another or the same.
func (c *cluster) attach(volume, engine, node, replica string) {
	c.Rollout.Volumes = append(c.Rollout.Volumes, rwx.Volume{Name: volume, Attached: true, Engine: engine, Nodes: []string{node}, Workloads: []string{"default/db-0"}})
	c.use(fmt.Sprintf("im-%s-%s", engine, node), volume+"-e-0")
	c.use(fmt.Sprintf("im-%s-%s", engine, replica), volume+"-r-0")
}

func (c *cluster) use(component, instance string) {
	i := slices.IndexFunc(c.Components, func(c catalog.Component) bool { return c.Name == component })
	c.Components[i].Uses = append(c.Components[i].Uses, instance)
}

// join puts clients and servers on a network.
func (c *cluster) join(network multus.Attachment) {
	c.Rollout.Record = rollout.Record{Clients: network, Servers: network}
	c.Rollout.DaemonSet.Network = network
	for i := range c.Rollout.Clients {
		c.Rollout.Clients[i].Network, c.Rollout.Clients[i].Reported = network, true
	}
}
