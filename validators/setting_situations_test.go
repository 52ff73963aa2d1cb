package validators

import (
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/fairlead-io/fairlead/internal/settings/catalog"
	"github.com/fairlead-io/fairlead/internal/settings/plan"
	"github.com/fairlead-io/fairlead/internal/settings/rollout"
	"github.com/fairlead-io/fairlead/internal/storage"
)

// The names of what a change of a setting is judged by.
const (
	// idle is Longhorn 1.7 on three nodes, as it is installed, with the v2 data
	// engine on. No volume is attached.
	idle = "idle"
	// attached: a v1 volume is attached on node-1, its replica is on node-2.
	attached = "volume attached"
	// attachedV2: a volume of the v2 data engine is attached on node-3, where its replica is.
	attachedV2 = "v2 volume attached"
	// attachedRWX: an RWX volume is attached and used on node-2.
	attachedRWX = "RWX volume attached"
	// networkWaits: kube-system/storage-net is set, and waits for a v1 volume on node-1 with its replica on node-2.
	networkWaits = "storage network waits"
	// networkWaitsGuarding: so it is where Fairlead only guards.
	networkWaitsGuarding = "storage network waits, Fairlead only guards"
	// detaching: no volume is attached any more, but on node-1 both instance managers still end what they run.
	detaching = "volume just detached"
	// cordoned is node-3.
	cordoned = "node cordoned"
	// optedOut is the instance manager of v1 on node-3, by annotation.
	optedOut = "pod opted out"
	// onNetwork: the older setting has put RWX volumes on the storage network, kube-system/storage-net.
	onNetwork = "RWX volumes on the storage network"
	// networkAttached: so it has, and one is attached.
	networkAttached = "RWX volume attached on the storage network"
	// endpointSet: the newer setting asks for kube-system/backup-net, and an attached RWX volume is waited for.
	endpointSet = "endpoint network set, RWX volume attached"
	// probeSet: Fairlead's own group has a probe of engine images.
	probeSet = "probe of engine images set"
	// noCleanup: auto-cleanup-system-generated-snapshot is off.
	noCleanup = "snapshots are not cleaned up"
	// noV2: the v2 data engine is off.
	noV2 = "v2 data engine off"
	// guarding: Fairlead judges and Longhorn applies, and a volume is attached.
	guarding = "Fairlead only guards"
	// malformedBefore: a value of before Fairlead's webhooks is not well formed.
	malformedBefore = "another value is malformed"
	// manyAttached: ten v1 volumes are attached, on every node.
	manyAttached = "ten volumes attached"
	// hostNetwork: the CSI plugin is on it.
	hostNetwork = "CSI plugin on the host network"
)

// situation returns facts by name. Each is the idle cluster and one thing more.
func situation(name string) SettingFacts {
	f := idleCluster()
	rwx := func() {
		f.Volumes = append(f.Volumes, storage.Volume{Name: "pvc-rwx", Shared: true, Attached: true, Engine: catalog.EngineV1, Nodes: []string{"node-2"}, Workloads: []string{"default/web-0"}})
		f.use("im-v1-node-2", "pvc-rwx-e-0")
		f.add(catalog.Component{Kind: catalog.ShareManager, Name: "share-manager-pvc-rwx", Node: "node-2", Uses: []string{"pvc-rwx"}})
	}
	switch name {
	case idle:
	case attached, guarding:
		f.attach("pvc-1", catalog.EngineV1, "node-1", "node-2")
		f.Applies = name == attached
	case networkWaits, networkWaitsGuarding:
		f.attach("pvc-1", catalog.EngineV1, "node-1", "node-2")
		f.SystemValues[catalog.StorageNetwork] = "kube-system/storage-net"
		f.Applies = name == networkWaits
	case attachedV2:
		f.attach("pvc-2", catalog.EngineV2, "node-3", "node-3")
	case attachedRWX:
		rwx()
	case detaching:
		f.use("im-v1-node-1", "pvc-1-e-0")
		f.use("im-v2-node-1", "pvc-2-e-0")
	case cordoned:
		node := f.Nodes["node-3"]
		node.Cordoned = true
		f.Nodes["node-3"] = node
	case optedOut:
		f.component("im-v1-node-3").OptOut = true
	case onNetwork, networkAttached:
		f.SystemValues[catalog.StorageNetwork], f.SystemValues[catalog.StorageNetworkForRWX] = "kube-system/storage-net", "true"
		f.Rollout.Record = rollout.Record{Clients: storageNet, Servers: storageNet}
		for i := range f.Components {
			if _, joins := f.Components[i].Built[catalog.StorageAttachment]; joins {
				f.Components[i].Built[catalog.StorageAttachment] = storageNet.String()
			}
		}
		if name == networkAttached {
			rwx()
		}
	case endpointSet:
		f.OwnValues[catalog.EndpointNetworkForRWX] = "kube-system/backup-net"
		rwx()
	case noCleanup:
		f.SystemValues[catalog.AutoCleanup] = "false"
	case probeSet:
		f.OwnValues[catalog.EngineImageProbePeriod] = "10"
	case noV2:
		f.SystemValues[catalog.V2DataEngine] = "false"
		f.Components = slices.DeleteFunc(f.Components, func(c catalog.Component) bool { return c.Engine == catalog.EngineV2 })
	case malformedBefore:
		f.SystemValues[catalog.StorageNetwork] = "ns/"
	case manyAttached:
		for i := range 10 {
			f.attach(fmt.Sprintf("pvc-%02d", i), catalog.EngineV1, fmt.Sprintf("node-%d", i%3+1), fmt.Sprintf("node-%d", (i+1)%3+1))
		}
	case hostNetwork:
		f.Rollout.DaemonSet.HostNetwork = true
	default:
		panic("no situation is called " + name)
	}
	f.Values = catalog.Resolve(f.OwnValues, f.SystemValues, f.Profile.Name)
	return f.SettingFacts
}

// builder is facts on their way.
type builder struct{ SettingFacts }

func idleCluster() *builder {
	f := &builder{SettingFacts{
		Facts: plan.Facts{
			OwnValues: values{}, SystemValues: values{catalog.AutoCleanup: "true", catalog.V2DataEngine: "true", catalog.PriorityClass: "longhorn-critical"},
			Profile: storage.Longhorn(), Now: time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC), Nodes: catalog.Nodes{}, Told: map[catalog.Name]plan.Told{},
			Rollout: rollout.Rollout{
				DaemonSet: rollout.DaemonSet{Name: "longhorn-csi-plugin", Found: true, Observed: true, Wanted: 3, MaxUnavailable: 1},
				Clients:   make([]storage.Client, 3),
			},
		},
		Applies: true, MissingPolicy: Warn,
		Networks: []storage.Network{storageNet.Network, backupNet.Network}, NetworksKnown: true,
		PriorityClasses: []string{"longhorn-critical", "system-cluster-critical", "system-node-critical"},
	}}
	for _, d := range catalog.DangerZone() {
		if _, set := f.SystemValues[d.Name]; !set && in17(d) {
			f.SystemValues[d.Name] = d.Default
		}
	}
	f.Values = catalog.Resolve(f.OwnValues, f.SystemValues, f.Profile.Name)
	for name, value := range f.Values {
		f.Told[name] = plan.Told{Rolled: &value.Text, Applied: true}
	}
	for i := 1; i <= 3; i++ {
		name := fmt.Sprintf("node-%d", i)
		f.Nodes[name] = catalog.Node{Ready: true, Storage: true, AllocatableMilliCPU: 4000, AllocatableHugepagesMiB: 8192, Labels: map[string]string{"kubernetes.io/hostname": name, "disktype": "ssd"}}
	}
	labelled := f.Nodes["node-1"]
	labelled.Labels["rack"], labelled.Taints = "a", []corev1.Taint{{Key: "dedicated", Value: "storage", Effect: "NoSchedule"}}
	f.Nodes["node-1"] = labelled
	for _, name := range []string{"csi-attacher", "csi-provisioner", "csi-resizer", "csi-snapshotter"} {
		f.add(catalog.Component{Kind: catalog.Deployment, Name: name, Updated: 3, Total: 3})
	}
	f.add(catalog.Component{Kind: catalog.DaemonSetComponent, Name: "longhorn-csi-plugin", Client: true, Updated: 3, Total: 3})
	f.add(catalog.Component{Kind: catalog.DaemonSetComponent, Name: "engine-image-ei-1", Updated: 3, Total: 3})
	f.add(catalog.Component{Kind: catalog.BackingImageManager, Name: "backing-image-manager-1", Node: "node-1"})
	for i := 1; i <= 3; i++ {
		for _, engine := range []string{catalog.EngineV1, catalog.EngineV2} {
			f.add(catalog.Component{Kind: catalog.InstanceManager, Name: fmt.Sprintf("im-%s-node-%d", engine, i), Node: fmt.Sprintf("node-%d", i), Engine: engine})
		}
	}
	return f
}

// in17 tells whether Longhorn 1.7 has the setting.
func in17(d catalog.Definition) bool {
	switch d.Since {
	case "1.8", "1.10", "1.11", "1.12":
		return false
	}
	return true
}

// add a component that is built by the values in force, and Ready.
func (f *builder) add(c catalog.Component) {
	c.Ready, c.Built = true, map[catalog.Trait]string{}
	for _, d := range slices.Backward(catalog.All()) { // the first of a trait decides
		if d.Wants == nil {
			continue
		}
		if want, asked := d.Wants(f.Values[d.Name].Text, c, f.Nodes); asked {
			c.Built[d.Trait] = want
		}
	}
	f.Components = append(f.Components, c)
}

// attach a volume on a node, with its one replica on another or the same.
func (f *builder) attach(volume, engine, node, replica string) {
	f.Volumes = append(f.Volumes, storage.Volume{Name: volume, Attached: true, Engine: engine, Nodes: []string{node}, Workloads: []string{"default/db-0"}})
	f.use(fmt.Sprintf("im-%s-%s", engine, node), volume+"-e-0")
	f.use(fmt.Sprintf("im-%s-%s", engine, replica), volume+"-r-0")
}

func (f *builder) use(component, instance string) {
	c := f.component(component)
	c.Uses = append(c.Uses, instance)
}

func (f *builder) component(name string) *catalog.Component {
	i := slices.IndexFunc(f.Components, func(c catalog.Component) bool { return c.Name == name })
	return &f.Components[i]
}
