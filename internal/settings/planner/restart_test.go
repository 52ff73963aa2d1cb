package planner

import (
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/fairlead-io/fairlead/internal/multus"
	"github.com/fairlead-io/fairlead/internal/settings/catalog"
	"github.com/fairlead-io/fairlead/internal/settings/rollout"
	"github.com/fairlead-io/fairlead/internal/testkit/must"
)

// Nodes, classes and networks may change between the acceptance of a value and the restart.
func TestNoPodRestartsThatCannotStartAgain(t *testing.T) {
	const (
		selector  = catalog.SystemManagedNodeSelector
		restarts1 = "Restarting: being applied now: 1 instance manager restarts"
		restarts2 = "Restarting: being applied now: 2 instance managers restart one by one"
		noClass   = "there is no PriorityClass system-cluster-critical, and pods of it are refused: create it, or change priority-class"
		noPages   = "instance manager v2-im-3 on node-3 cannot restart: the pod requests 2048 MiB of huge pages and the node has 1024: add huge pages, or reduce the request"
		noCores   = "Waiting: waiting: instance manager v2-im-1 on node-1 cannot restart: the pod requests 5000m of CPU and the node has 4000m: reduce the request. Then 1 instance manager restarts"
		then1     = ". Then 1 instance manager restarts"
	)
	one := multus.Network{Namespace: "kube-system", Name: "one"}
	setSelector, setClass, setCPU := set(selector, "disktype:ssd"), set(catalog.PriorityClass, critical), set(catalog.GuaranteedCPU, "20")
	onNetwork := set(catalog.StorageNetwork, one.String())
	managers := only("im-1", "im-2", "im-3")
	labelled := func(names ...string) change {
		return func(f *Facts) {
			for _, name := range names {
				onNode(name, func(n *catalog.Node) { n.Labels = map[string]string{"disktype": "ssd"} })(f)
			}
		}
	}
	classes := func(there map[string]bool) change { return func(f *Facts) { f.Classes = there } }
	networks := func(there ...multus.Network) change {
		return func(f *Facts) {
			f.Rollout.Networks = map[multus.Network]bool{}
			for _, n := range there {
				f.Rollout.Networks[n] = true
			}
		}
	}
	pages := func(node string, mib int64) change {
		return onNode(node, func(n *catalog.Node) { n.AllocatableHugepagesMiB = mib })
	}
	tainted := func(node, pool string) change {
		return onNode(node, func(n *catalog.Node) {
			n.Labels, n.Taints = map[string]string{"pool": pool}, []corev1.Taint{{Key: pool, Effect: corev1.TaintEffectNoSchedule}}
		})
	}
	v2 := func(names ...string) change {
		return func(f *Facts) {
			addV2(f)
			only(names...)(f)
		}
	}
	cores := func(built string, changes ...change) []change {
		return append([]change{v2("v2-im-1"), edit(func(c *catalog.Component) { c.Built[catalog.CPUCores] = built })}, changes...)
	}
	setCores, share := set(catalog.DataEngineCPUCores, "5"), set(catalog.GuaranteedCPU, "12")
	checkPlans(t, map[string]planTest{
		"idle instance manager on an excluded node stays": {
			[]change{managers, labelled("node-1", "node-3"), setSelector}, selector, restarts2 + "; excluded by the node selector: node-2", "Restart im-1* im-3 for node-selector"},
		"instance manager in use on an excluded node waits": {
			[]change{managers, labelled("node-1", "node-3"), uses("im-2", "pvc-a-r-1"), setSelector}, selector,
			`Restarting: 2 instance managers restart one by one now; waiting: instance manager im-2 on node-2 cannot restart: the node lacks the labels "disktype:ssd": label the node, or change system-managed-components-node-selector` + then1,
			"Restart im-1* im-3 for node-selector; later Restart im-2 for node-selector: node-2"},
		"other settings skip excluded nodes too": {
			[]change{managers, labelled("node-1"), setSelector, rolled(selector, "disktype:ssd"), built(catalog.NodeSelector, "disktype:ssd"), setCPU}, catalog.GuaranteedCPU,
			restarts1 + "; excluded by the node selector: node-2, node-3", "Restart im-1* for CPU"},
		"missing instance manager on an excluded node": {
			[]change{managers, labelled("node-1", "node-3"), setSelector, missing("im-2")}, selector, restarts2 + "; excluded by the node selector: node-2", "Restart im-1* im-3 for node-selector"},
		"backing image managers are bound to nodes, share managers are not": {
			[]change{
				labelled("node-2"), only("bim"), func(f *Facts) {
					share := f.Components[0]
					share.Kind, share.Name = catalog.ShareManager, "share"
					share.Built = builtBy(f.Values, share, f.Nodes)
					delete(share.Built, catalog.NodeSelector)
					f.Components = append(f.Components, share)
				}, setSelector, set(catalog.TaintToleration, "k:NoSchedule"),
			}, selector, "Applied: in effect; excluded by the node selector: node-1", "Restart share* for taint-toleration"},
		"template that no node accepts": {[]change{only("longhorn-csi-plugin", "engine-image-ei-1"), setSelector}, selector,
			`Waiting: waiting: no node has the labels "disktype:ssd": label nodes, or change system-managed-components-node-selector. Then 2 DaemonSets roll`,
			"later Update engine-image-ei-1 longhorn-csi-plugin for node-selector: disktype:ssd"},
		"selector and tolerations together match no node": {
			[]change{
				only("engine-image-ei-1"), tainted("node-1", "a"), built(catalog.Tolerations, "a:NoSchedule"), set(catalog.TaintToleration, ""), set(selector, "pool:a"),
			}, selector,
			"Waiting: waiting: no node accepts pods of engine-image-ei-1 (on node-1: the node has taint a:NoSchedule: remove the taint, or change taint-toleration). Then 1 DaemonSet rolls",
			"later Update engine-image-ei-1 for taint-toleration: ; later Update engine-image-ei-1 for node-selector: pool:a"},
		"selector and tolerations move to another pool together": {
			[]change{
				only("engine-image-ei-1"), tainted("node-1", "a"), tainted("node-2", "b"), tainted("node-3", "b"), built(catalog.NodeSelector, "pool:a"),
				built(catalog.Tolerations, "a:NoSchedule"), set(catalog.TaintToleration, "b:NoSchedule"), set(selector, "pool:b"),
			}, selector, "Restarting: being applied now: 1 DaemonSet rolls", "Update engine-image-ei-1* for taint-toleration, node-selector"},
		"missing class of the storage system's value, which Fairlead's value hides": {
			[]change{only("im-1"), classes(map[string]bool{"other": true}), setClass, setOwn(catalog.PriorityClass, "other"), setCPU}, catalog.GuaranteedCPU,
			"Waiting: waiting: " + noClass + then1, "later Restart im-1 for CPU: " + critical},
		"malformed class of the storage system": {
			[]change{only("im-1"), classes(map[string]bool{}), set(catalog.PriorityClass, "Not a name"), setCPU}, catalog.GuaranteedCPU,
			"Waiting: waiting: there is no PriorityClass Not a name, and pods of it are refused: create it, or change priority-class" + then1, "later Restart im-1 for CPU: Not a name"},
		"selector of the storage system, which Fairlead's value hides": {
			[]change{only("im-1", "im-2"), labelled("node-2"), setSelector, setOwn(selector, ""), setCPU}, catalog.GuaranteedCPU,
			restarts1 + "; excluded by the node selector: node-1", "Restart im-2* for CPU"},
		"missing class": {[]change{only("im-1", "csi-provisioner"), classes(map[string]bool{"other": true}), setClass}, catalog.PriorityClass,
			"Waiting: waiting: " + noClass + ". Then 1 Deployment rolls, 1 instance manager restarts",
			"later Update csi-provisioner for priority-class: " + critical + "; later Restart im-1 for priority-class: " + critical},
		"class deleted after the roll-out blocks other settings, not a new class": {
			[]change{
				only("im-1", "engine-image-ei-1"), classes(map[string]bool{critical: true}), built(catalog.PriorityClassName, "gone"), set(catalog.EngineImageProbePeriod, "30"), setClass, setCPU,
			}, catalog.PriorityClass, "Restarting: being applied now: 1 DaemonSet rolls, 1 instance manager restarts",
			"Update engine-image-ei-1* for priority-class; Restart im-1 for priority-class, CPU; later Update engine-image-ei-1 for probe-period: gone"},
		"pods are missing for lack of a class": {
			[]change{managers, classes(map[string]bool{}), setClass, missing()}, catalog.PriorityClass, "Restarting: 0 of 3 instance managers; " + noClass, "starting " + critical + ", " + critical + ", " + critical},
		"missing network": {[]change{only("im-1", "csi-provisioner"), networks(), onNetwork}, catalog.StorageNetwork,
			"Waiting: waiting: there is no NetworkAttachmentDefinition kube-system/one, and pods on it do not start: create it, or choose another network" + then1,
			"later Restart im-1 for storage-network: kube-system/one"},
		"existing network": {[]change{only("im-1"), networks(one), onNetwork}, catalog.StorageNetwork, restarts1, "Restart im-1* for storage-network"},
		"too few huge pages": {
			[]change{v2("v2-im-1", "v2-im-2", "v2-im-3"), pages("node-2", 4094), set(catalog.DataEngineMemorySize, "4096")}, catalog.DataEngineMemorySize,
			"Restarting: 2 instance managers restart one by one now; waiting: instance manager v2-im-2 on node-2 cannot restart: the pod requests 4096 MiB of huge pages and the node has 4094: add huge pages, or reduce the request" + then1,
			"Restart v2-im-1* v2-im-3 for data-engine-memory-size; later Restart v2-im-2 for data-engine-memory-size: node-2"},
		"too few huge pages for the default": {
			[]change{v2("v2-im-3"), pages("node-3", 1024), setClass}, catalog.PriorityClass, "Waiting: waiting: " + noPages + then1, "later Restart v2-im-3 for priority-class: node-3"},
		"memory without huge pages": {
			[]change{v2("v2-im-3"), pages("node-3", 0), set(catalog.DataEngineHugepages, "false"), set(catalog.DataEngineMemorySize, "4096")}, catalog.DataEngineMemorySize,
			restarts1, "Restart v2-im-3* for data-engine-memory-size, data-engine-hugepage-enabled"},
		"removed pods need not start again": {
			[]change{v2("v2-im-3"), pages("node-3", 0), classes(map[string]bool{}), networks(), set(catalog.V2DataEngine, "false")}, catalog.V2DataEngine,
			"Restarting: being applied now: 1 instance manager is removed", "Remove v2-im-3* for v2-data-engine"},
		"cordoned node: no instance manager": {
			[]change{only("im-1", "bim"), setClass, onNode("node-1", func(n *catalog.Node) { n.Cordoned = true })}, catalog.PriorityClass,
			"Restarting: 1 backing image manager restarts now; waiting: instance manager im-1 on node-1 cannot restart: the node is cordoned: uncordon the node" + then1,
			"Restart bim* for priority-class; later Restart im-1 for priority-class: node-1"},
		"node that is not Ready": {
			[]change{only("im-1", "im-2", "bim"), setClass, onNode("node-1", func(n *catalog.Node) { n.Ready = false })}, catalog.PriorityClass,
			"Restarting: 1 instance manager restarts now; waiting: backing image manager bim on node-1 cannot restart while its node is down: start the node; only if the machine is off for good, delete its Node object, and 1 more. " +
				"Then 1 backing image manager and 1 instance manager restart one by one",
			"Restart im-2* for priority-class; later Restart bim for priority-class: bim; later Restart im-1 for priority-class: im-1"},
		"node where the storage system is down": {
			[]change{only("bim"), setClass, onNode("node-1", func(n *catalog.Node) { n.StorageDown = true })}, catalog.PriorityClass,
			"Waiting: waiting: backing image manager bim on node-1 cannot restart while its node is down: start the node; only if the machine is off for good, delete its Node object. Then 1 backing image manager restarts",
			"later Restart bim for priority-class: bim"},
		"as many cores as the node has": {cores("0", set(catalog.DataEngineCPUCores, "4")), catalog.DataEngineCPUCores, restarts1, "Restart v2-im-1* for data-engine-number-of-cpu-cores"},
		"more cores than the node has":  {cores("0", setCores), catalog.DataEngineCPUCores, noCores, "later Restart v2-im-1 for data-engine-number-of-cpu-cores: node-1"},
		"more cores than the node has, and a CPU share": {
			cores("0", setCores, share), catalog.DataEngineCPUCores, noCores, "later Restart v2-im-1 for CPU, data-engine-number-of-cpu-cores: node-1"},
		"fewer cores than a number that the node did not have": {
			cores("8", set(catalog.DataEngineCPUCores, "2"), share), catalog.DataEngineCPUCores, restarts1, "Restart v2-im-1* for CPU, data-engine-number-of-cpu-cores"},
	})
}

// Without Multus, networks cannot be watched.
func TestMissingNetworkIsLookedForAgain(t *testing.T) {
	f := fleet(set(catalog.StorageNetwork, "kube-system/one"))
	must.Equal(t, Make(f).After, 0, "networks are not known")
	f.Rollout.Networks = map[multus.Network]bool{}
	must.Equal(t, Make(f).After, rollout.MissingNetworkRetry, "the network is missing")
	for i := range f.Components {
		if _, on := f.Components[i].Built[catalog.StorageAttachment]; on {
			f.Components[i].Built[catalog.StorageAttachment] = "kube-system/one@lhnet1"
		}
	}
	must.Equal(t, Make(f).After, 0, "no pod restarts")
}
