package plan

import (
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/fairlead-io/fairlead/internal/settings/catalog"
	"github.com/fairlead-io/fairlead/internal/settings/rollout"
	"github.com/fairlead-io/fairlead/internal/storage"
)

// change a node of the facts.
func (f *Facts) changeNode(name string, change func(*catalog.Node)) {
	n := f.Nodes[name]
	change(&n)
	f.Nodes[name] = n
}

// A value that was sound when it was accepted may not be when its turn comes.
func TestRegressionNothingIsRestartedThatCannotComeBack(t *testing.T) {
	const (
		ofCPU      = " for guaranteed-instance-manager-cpu"
		ofV2       = " for data-engine-memory-size"
		ofClass    = " for priority-class"
		ofSelector = " for system-managed-components-node-selector"
		ofNetwork  = " for storage-network"
	)
	one := storage.Network{Namespace: "kube-system", Name: "one"}
	labelled := func(f *Facts, names ...string) {
		for _, name := range names {
			f.changeNode(name, func(n *catalog.Node) { n.Labels = map[string]string{"disktype": "ssd"} })
		}
	}
	// Only instance managers, as far as they are not left out.
	three := func(f *Facts) { f.Components = f.Components[:3] }
	for name, test := range map[string]struct {
		but     func(*Facts)
		setting catalog.Name
		status  string
		plan    []string
		next    string
	}{
		"a node that the selector leaves out keeps its instance manager, and is not waited for": {
			but: func(f *Facts) {
				three(f)
				labelled(f, "node-1", "node-3")
				f.set(catalog.SystemManagedNodeSelector, "disktype:ssd")
			}, setting: catalog.SystemManagedNodeSelector,
			status: "Restarting false: being applied now: 2 instance managers restart one by one; left out by the node selector: node-2",
			plan:   []string{"Restart im-1" + ofSelector, "Restart im-3" + ofSelector},
			next:   "Restart im-1" + ofSelector,
		},
		"one that runs something there is waited for": {
			but: func(f *Facts) {
				three(f)
				labelled(f, "node-1", "node-3")
				f.component("im-2").Uses = []string{"pvc-a-r-1"}
				f.set(catalog.SystemManagedNodeSelector, "disktype:ssd")
			}, setting: catalog.SystemManagedNodeSelector,
			status: `Restarting false: 2 instance managers restart one by one now; waiting: instance manager im-2 on node-2 would not come back: the node lacks the labels "disktype:ssd": label it. Then 1 instance manager restarts`,
			plan:   []string{"Restart im-1" + ofSelector, "Restart im-3" + ofSelector, "later Restart im-2" + ofSelector + ": im-2"},
			next:   "Restart im-1" + ofSelector,
		},
		"nor for any other setting": {
			but: func(f *Facts) {
				three(f)
				labelled(f, "node-1")
				f.set(catalog.SystemManagedNodeSelector, "disktype:ssd")
				f.rolled(catalog.SystemManagedNodeSelector, "disktype:ssd")
				for i := range f.Components {
					f.Components[i].Built[catalog.NodeSelector] = "disktype:ssd"
				}
				f.set(catalog.GuaranteedCPU, "20")
			}, setting: catalog.GuaranteedCPU,
			status: "Restarting false: being applied now: 1 instance manager restarts; left out by the node selector: node-2, node-3",
			plan:   []string{"Restart im-1" + ofCPU},
			next:   "Restart im-1" + ofCPU,
		},

		"one that is missing on a node without the labels stops nothing": {
			but: func(f *Facts) {
				three(f)
				labelled(f, "node-1", "node-3")
				f.set(catalog.SystemManagedNodeSelector, "disktype:ssd")
				f.component("im-2").Built, f.component("im-2").Ready, f.component("im-2").Missing = nil, false, true
			}, setting: catalog.SystemManagedNodeSelector,
			status: "Restarting false: being applied now: 2 instance managers restart one by one; left out by the node selector: node-2",
			plan:   []string{"Restart im-1" + ofSelector, "Restart im-3" + ofSelector},
			next:   "Restart im-1" + ofSelector,
		},
		"backing image managers are bound to nodes as well, share managers are not": {
			but: func(f *Facts) {
				labelled(f, "node-2")
				share := *f.component("bim")
				share.Kind, share.Name = catalog.ShareManager, "share"
				share.Built = builtBy(f.Values, share, f.Nodes)
				delete(share.Built, catalog.NodeSelector)
				f.Components = []catalog.Component{*f.component("bim"), share}
				f.set(catalog.SystemManagedNodeSelector, "disktype:ssd")
				f.set(catalog.TaintToleration, "k:NoSchedule")
			}, setting: catalog.SystemManagedNodeSelector,
			status: "Applied true: in effect; left out by the node selector: node-1",
			plan:   []string{"Restart share for taint-toleration"},
			next:   "Restart share for taint-toleration",
		},
		"a template that no node takes would lose its pods": {
			but: func(f *Facts) {
				f.Components = f.Components[4:6]
				f.set(catalog.SystemManagedNodeSelector, "disktype:ssd")
			}, setting: catalog.SystemManagedNodeSelector,
			status: `Waiting false: waiting: no node has the labels "disktype:ssd": label nodes, or change system-managed-components-node-selector. Then 2 DaemonSets roll`,
			plan: []string{
				"later Update engine-image-ei-1" + ofSelector + ": disktype:ssd", "later Update longhorn-csi-plugin" + ofSelector + ": disktype:ssd",
			},
		},
		"a selector and tolerations that leave no node only together": {
			but: func(f *Facts) {
				f.Components = f.Components[5:6]
				f.changeNode("node-1", func(n *catalog.Node) {
					n.Labels = map[string]string{"disktype": "ssd"}
					n.Taints = []corev1.Taint{{Key: "k", Effect: corev1.TaintEffectNoSchedule}}
				})
				f.Components[0].Built[catalog.Tolerations] = "k:NoSchedule"
				f.set(catalog.TaintToleration, "")
				f.set(catalog.SystemManagedNodeSelector, "disktype:ssd")
			}, setting: catalog.SystemManagedNodeSelector,
			status: "Waiting false: waiting: no node takes pods of engine-image-ei-1 (on node-1: the node has taint k:NoSchedule: remove it, or change taint-toleration). Then 1 DaemonSet rolls",
			plan:   []string{"later Update engine-image-ei-1 for taint-toleration: ", "later Update engine-image-ei-1" + ofSelector + ": disktype:ssd"},
		},
		"from one pool of tainted nodes to another: selector and tolerations are judged together": {
			but: func(f *Facts) {
				f.Components = f.Components[5:6]
				for node, pool := range map[string]string{"node-1": "a", "node-2": "b", "node-3": "b"} {
					f.changeNode(node, func(n *catalog.Node) {
						n.Labels = map[string]string{"pool": pool}
						n.Taints = []corev1.Taint{{Key: pool, Effect: corev1.TaintEffectNoSchedule}}
					})
				}
				f.Components[0].Built[catalog.NodeSelector], f.Components[0].Built[catalog.Tolerations] = "pool:a", "a:NoSchedule"
				f.set(catalog.TaintToleration, "b:NoSchedule")
				f.set(catalog.SystemManagedNodeSelector, "pool:b")
			}, setting: catalog.SystemManagedNodeSelector,
			status: "Restarting false: being applied now: 1 DaemonSet rolls",
			plan:   []string{"Update engine-image-ei-1 for taint-toleration, system-managed-components-node-selector"},
			next:   "Update engine-image-ei-1 for taint-toleration, system-managed-components-node-selector",
		},
		"a class that only the storage system's value names, since Fairlead's group has another": {
			but: func(f *Facts) {
				f.Components = f.Components[:1]
				f.Existing.Classes = map[string]bool{"other": true}
				f.set(catalog.PriorityClass, critical)
				f.setOwn(catalog.PriorityClass, "other")
				f.set(catalog.GuaranteedCPU, "20")
			}, setting: catalog.GuaranteedCPU,
			status: "Waiting false: waiting: there is no PriorityClass system-cluster-critical, and pods of it are refused: create it, or change priority-class. Then 1 instance manager restarts",
			plan:   []string{"later Restart im-1" + ofCPU + ": " + critical},
		},
		"a class that is not well formed, which the storage system asks for": {
			but: func(f *Facts) {
				f.Components = f.Components[:1]
				f.Existing.Classes = map[string]bool{}
				f.set(catalog.PriorityClass, "Not a name")
				f.set(catalog.GuaranteedCPU, "20")
			}, setting: catalog.GuaranteedCPU,
			status: "Waiting false: waiting: there is no PriorityClass Not a name, and pods of it are refused: create it, or change priority-class. Then 1 instance manager restarts",
			plan:   []string{"later Restart im-1" + ofCPU + ": Not a name"},
		},
		"a selector that only the storage system's value names, since Fairlead's group has another": {
			but: func(f *Facts) {
				f.Components = f.Components[:2]
				labelled(f, "node-2")
				f.set(catalog.SystemManagedNodeSelector, "disktype:ssd")
				f.setOwn(catalog.SystemManagedNodeSelector, "")
				f.set(catalog.GuaranteedCPU, "20")
			}, setting: catalog.GuaranteedCPU,
			status: "Restarting false: being applied now: 1 instance manager restarts; left out by the node selector: node-1",
			plan:   []string{"Restart im-2" + ofCPU},
			next:   "Restart im-2" + ofCPU,
		},
		"a class that is gone": {
			but: func(f *Facts) {
				f.Components = append(f.Components[:1], f.Components[6:7]...)
				f.Existing.Classes = map[string]bool{"other": true}
				f.set(catalog.PriorityClass, critical)
			}, setting: catalog.PriorityClass,
			status: "Waiting false: waiting: there is no PriorityClass system-cluster-critical, and pods of it are refused: create it, or change priority-class. Then 1 Deployment rolls, 1 instance manager restarts",
			plan:   []string{"later Update csi-provisioner" + ofClass + ": " + critical, "later Restart im-1" + ofClass + ": " + critical},
		},
		"a class that is gone after it was applied keeps all others back, and its replacement does not": {
			but: func(f *Facts) {
				f.Components = append(f.Components[:1], f.Components[5:6]...)
				f.Existing.Classes = map[string]bool{critical: true}
				for i := range f.Components {
					f.Components[i].Built[catalog.PriorityClassName] = "gone"
				}
				f.set(catalog.EngineImageProbePeriod, "30")
				f.set(catalog.PriorityClass, critical)
				f.set(catalog.GuaranteedCPU, "20")
			}, setting: catalog.PriorityClass,
			status: "Restarting false: being applied now: 1 DaemonSet rolls, 1 instance manager restarts",
			plan: []string{
				"Update engine-image-ei-1" + ofClass, "Restart im-1 for priority-class, guaranteed-instance-manager-cpu",
				"later Update engine-image-ei-1 for engine-image-pod-liveness-probe-period: gone",
			},
			next: "Update engine-image-ei-1" + ofClass,
		},

		"one that is missing for want of a class is waited for, and it is said why": {
			but: func(f *Facts) {
				three(f)
				f.Existing.Classes = map[string]bool{}
				f.set(catalog.PriorityClass, critical)
				for i := range f.Components {
					f.Components[i].Built, f.Components[i].Ready, f.Components[i].Missing = nil, false, true
				}
			}, setting: catalog.PriorityClass,
			status: "Restarting false: 0 of 3 instance managers; there is no PriorityClass system-cluster-critical, and pods of it are refused: create it, or change priority-class",
			plan:   []string{"starting " + strings.Join([]string{critical, critical, critical}, ", ")},
		},
		"a network that is gone": {
			but: func(f *Facts) {
				f.Components = append(f.Components[:1], f.Components[6:7]...)
				f.Existing.Networks = map[storage.Network]bool{}
				f.set(catalog.StorageNetwork, one.String())
			}, setting: catalog.StorageNetwork,
			status: "Waiting false: waiting: there is no NetworkAttachmentDefinition kube-system/one, and pods on it do not start: create it, or change storage-network. Then 1 instance manager restarts",
			plan:   []string{"later Restart im-1" + ofNetwork + ": kube-system/one"},
		},
		"a network that is there": {
			but: func(f *Facts) {
				f.Components = f.Components[:1]
				f.Existing.Networks = rollout.NetworksThere([]storage.Network{one})
				f.set(catalog.StorageNetwork, one.String())
			}, setting: catalog.StorageNetwork,
			status: "Restarting false: being applied now: 1 instance manager restarts",
			plan:   []string{"Restart im-1" + ofNetwork}, next: "Restart im-1" + ofNetwork,
		},
		"more huge pages than the node has": {
			but: func(f *Facts) {
				f.addV2()
				f.Components = f.Components[len(f.Components)-3:]
				f.changeNode("node-2", func(n *catalog.Node) { n.AllocatableHugepagesMiB = 4094 })
				f.set(catalog.DataEngineMemorySize, "4096")
			}, setting: catalog.DataEngineMemorySize,
			status: "Restarting false: 2 instance managers restart one by one now; waiting: instance manager v2-im-2 on node-2 would not come back: it asks for 4096 MiB of huge pages and the node has 4094: give it more, or ask for less. Then 1 instance manager restarts",
			plan:   []string{"Restart v2-im-1" + ofV2, "Restart v2-im-3" + ofV2, "later Restart v2-im-2" + ofV2 + ": v2-im-2"},
			next:   "Restart v2-im-1" + ofV2,
		},
		"more huge pages than the node has, and nobody may change how many": {
			but: func(f *Facts) {
				f.addV2()
				f.Components = f.Components[len(f.Components)-1:]
				f.changeNode("node-3", func(n *catalog.Node) { n.AllocatableHugepagesMiB = 1024 })
				f.set(catalog.V2HugepageLimit, "2048")
				f.set(catalog.V2CPUMask, "0x7")
			}, setting: catalog.V2CPUMask,
			status: "Waiting false: waiting: instance manager v2-im-3 on node-3 would not come back: it asks for 2048 MiB of huge pages and the node has 1024: give it more, or ask for less. Then 1 instance manager restarts",
			plan:   []string{"later Restart v2-im-3 for v2-data-engine-cpu-mask: v2-im-3"},
		},
		"more huge pages than the node has, and no setting says how many": {
			but: func(f *Facts) {
				f.addV2()
				f.Components = f.Components[len(f.Components)-1:]
				f.changeNode("node-3", func(n *catalog.Node) { n.AllocatableHugepagesMiB = 1024 })
				f.set(catalog.PriorityClass, critical)
			}, setting: catalog.PriorityClass,
			status: "Waiting false: waiting: instance manager v2-im-3 on node-3 would not come back: it asks for 2048 MiB of huge pages and the node has 1024: give it more, or ask for less. Then 1 instance manager restarts",
			plan:   []string{"later Restart v2-im-3" + ofClass + ": v2-im-3"},
		},
		"memory that is not of huge pages is no matter of the node": {
			but: func(f *Facts) {
				f.addV2()
				f.Components = f.Components[len(f.Components)-1:]
				f.changeNode("node-3", func(n *catalog.Node) { n.AllocatableHugepagesMiB = 0 })
				f.set(catalog.DataEngineHugepages, "false")
				f.set(catalog.DataEngineMemorySize, "4096")
			}, setting: catalog.DataEngineMemorySize,
			status: "Restarting false: being applied now: 1 instance manager restarts",
			plan:   []string{"Restart v2-im-3 for data-engine-memory-size, data-engine-hugepage-enabled"}, next: "Restart v2-im-3 for data-engine-memory-size, data-engine-hugepage-enabled",
		},

		"what is removed need not come back": {
			but: func(f *Facts) {
				f.addV2()
				f.Components = f.Components[len(f.Components)-1:]
				f.changeNode("node-3", func(n *catalog.Node) { n.AllocatableHugepagesMiB = 0 })
				f.Existing = Existing{Classes: map[string]bool{}, Networks: map[storage.Network]bool{}}
				f.set(catalog.V2DataEngine, "false")
			}, setting: catalog.V2DataEngine,
			status: "Restarting false: being applied now: 1 instance manager is removed",
			plan:   []string{"Remove v2-im-3 for v2-data-engine"}, next: "Remove v2-im-3 for v2-data-engine",
		},
	} {
		t.Run(name, func(t *testing.T) {
			f := fleet()
			test.but(&f)
			p := Make(f)
			if got := textOf(p); !slices.Equal(got, test.plan) {
				t.Errorf("plan\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(test.plan, "\n"))
			}
			if got := statusOf(p, test.setting); got != test.status {
				t.Errorf("status %s\nwant   %s", got, test.status)
			}
			next := ""
			if w, due := p.Next(); due {
				next = textOfWork(w)
			}
			if next != test.next {
				t.Errorf("next %q, want %q", next, test.next)
			}
		})
	}
}

// Networks are looked up only where it matters, and looked for again: nobody
// watches a kind that may not be installed.
func TestNetworksAreAskedForWhereTheyMatter(t *testing.T) {
	f := fleet()
	f.set(catalog.StorageNetwork, "kube-system/one")
	if p := Make(f); !p.AsksForNetworks || p.After != 0 {
		t.Errorf("to be restarted: asks %t, after %v", p.AsksForNetworks, p.After)
	}
	f.Existing.Networks = map[storage.Network]bool{}
	if p := Make(f); p.AsksForNetworks || p.After != rollout.MissingNetworkRetry {
		t.Errorf("not there: asks %t, after %v", p.AsksForNetworks, p.After)
	}
	f.Existing.Networks = nil
	for i := range f.Components {
		if _, on := f.Components[i].Built[catalog.StorageAttachment]; on {
			f.Components[i].Built[catalog.StorageAttachment] = "kube-system/one@lhnet1"
		}
	}
	if p := Make(f); p.AsksForNetworks {
		t.Error("asks though nothing is to be restarted")
	}
}
