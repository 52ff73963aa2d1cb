package plan

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/fairlead-io/fairlead/internal/settings/catalog"
	"github.com/fairlead-io/fairlead/internal/settings/rollout"
	"github.com/fairlead-io/fairlead/internal/storage"
)

// fleet is a cluster of three nodes at rest, with everything built by the
// defaults and no setting set: two Deployments, two DaemonSets, a backing image
// manager, and an instance manager of v1 on each node.
func fleet() Facts {
	f := Facts{
		Profile: storage.Longhorn(), SystemValues: map[catalog.Name]string{}, Values: catalog.Resolve(nil, nil, "longhorn"), Told: map[catalog.Name]Told{}, Now: midday,
		Held: map[string]Hold{}, Nodes: catalog.Nodes{}, Rollout: settled(storage.Attachment{}),
	}
	for i := 1; i <= 3; i++ {
		f.Nodes[fmt.Sprintf("node-%d", i)] = catalog.Node{Ready: true, Storage: true, AllocatableMilliCPU: 4000, AllocatableHugepagesMiB: 8192}
	}
	f.Components = []catalog.Component{
		{Kind: catalog.InstanceManager, Name: "im-1", Node: "node-1", Engine: catalog.EngineV1},
		{Kind: catalog.InstanceManager, Name: "im-2", Node: "node-2", Engine: catalog.EngineV1},
		{Kind: catalog.InstanceManager, Name: "im-3", Node: "node-3", Engine: catalog.EngineV1},
		{Kind: catalog.BackingImageManager, Name: "bim", Node: "node-1"},
		{Kind: catalog.DaemonSetComponent, Name: "longhorn-csi-plugin", Client: true, Updated: 3, Total: 3},
		{Kind: catalog.DaemonSetComponent, Name: "engine-image-ei-1", Updated: 3, Total: 3},
		{Kind: catalog.Deployment, Name: "csi-provisioner", Updated: 2, Total: 2},
		{Kind: catalog.Deployment, Name: "csi-attacher", Updated: 2, Total: 2},
	}
	for i := range f.Components {
		f.Components[i].UID, f.Components[i].Ready = "uid-"+f.Components[i].Name, true
		f.Components[i].Built = builtBy(f.Values, f.Components[i], f.Nodes)
	}
	for _, d := range catalog.DangerZone() {
		f.rolled(d.Name, d.Default)
	}
	return f
}

// builtBy is how the storage system builds a component by itself.
func builtBy(values catalog.Values, c catalog.Component, nodes catalog.Nodes) map[catalog.Trait]string {
	built := map[catalog.Trait]string{}
	for _, d := range slices.Backward(catalog.All()) { // the first of a trait decides
		if d.Wants == nil {
			continue
		}
		value, err := d.Normalize(values[d.Name].Text)
		if err != nil {
			value, _ = d.Normalize(d.Default)
		}
		if want, ok := d.Wants(value, c, nodes); ok {
			built[d.Trait] = want
		}
	}
	if c.Kind == catalog.InstanceManager {
		built[catalog.DataEngine] = "true" // it is there
	}
	return built
}

// set sets a value in the storage system's group.
func (f *Facts) set(name catalog.Name, value string) {
	f.SystemValues[name] = value
	f.Values = catalog.Resolve(f.OwnValues, f.SystemValues, "longhorn")
}

// setOwn sets a value in Fairlead's group.
func (f *Facts) setOwn(name catalog.Name, value string) {
	f.OwnValues = map[catalog.Name]string{name: value}
	f.Values = catalog.Resolve(f.OwnValues, f.SystemValues, "longhorn")
}

// rolled has a value reported as rolled out.
func (f *Facts) rolled(name catalog.Name, value string) {
	f.Told[name] = Told{Rolled: &value, Applied: true}
}

// underway has a roll-out reported as begun.
func (f *Facts) underway(name catalog.Name) {
	told := f.Told[name]
	told.Applied, told.Underway = false, true
	f.Told[name] = told
}

func (f *Facts) component(name string) *catalog.Component {
	i := slices.IndexFunc(f.Components, func(c catalog.Component) bool { return c.Name == name })
	return &f.Components[i]
}

// addV2 gives every node an instance manager of the v2 data engine.
func (f *Facts) addV2() {
	f.set(catalog.V2DataEngine, "true")
	f.rolled(catalog.V2DataEngine, "true")
	for _, c := range f.Components[:3] {
		c.Name, c.Engine = "v2-"+c.Name, catalog.EngineV2
		c.Built = builtBy(f.Values, c, f.Nodes)
		f.Components = append(f.Components, c)
	}
}

// attach a v1 volume to node-1, with its one replica on node-2.
func (f *Facts) attach() {
	f.Volumes = append(f.Volumes, storage.Volume{Name: "pvc-a", Attached: true, Engine: catalog.EngineV1, Nodes: []string{"node-1"}, Workloads: []string{"default/web-0"}})
	f.component("im-1").Uses = []string{"pvc-a-e-0"}
	f.component("im-2").Uses = []string{"pvc-a-r-1"}
}

// share attaches a shared volume, whose share manager on node-1 is built with a priority class.
func (f *Facts) share(volume, class string) *catalog.Component {
	f.Volumes = append(f.Volumes, storage.Volume{Name: volume, Shared: true, Attached: true, Engine: catalog.EngineV1, Nodes: []string{"node-1"}})
	f.component("im-1").Uses = append(f.component("im-1").Uses, volume+"-e-0")
	c := catalog.Component{Kind: catalog.ShareManager, Name: "share-manager-" + volume, Node: "node-1", Ready: true, Uses: []string{volume}}
	c.Built = with(builtBy(f.Values, c, f.Nodes), catalog.PriorityClassName, class)
	f.Components = append(f.Components, c)
	return f.component(c.Name)
}

// apply does all that is due, everybody doing his part, and returns what was done.
func (f *Facts) apply(t *testing.T) []string {
	t.Helper()
	var done []string
	for range 50 {
		w, due := Make(*f).Next()
		if !due {
			return done
		}
		done = append(done, textOfWork(w))
		for trait, want := range w.Wants {
			f.component(w.Component.Name).Built = with(f.component(w.Component.Name).Built, trait, want.Text)
		}
	}
	t.Fatalf("no end: %v", done)
	return nil
}

func with(built map[catalog.Trait]string, trait catalog.Trait, text string) map[catalog.Trait]string {
	built = maps.Clone(built)
	built[trait] = text
	return built
}

func textOfWork(w Work) string {
	var names []string
	for _, n := range w.Settings {
		names = append(names, string(n))
	}
	return fmt.Sprintf("%s %s for %s", w.Action, w.Component.Name, strings.Join(names, ", "))
}

// textOf writes the plan line by line: what is done now, what later and for
// which blockers, and what is starting.
func textOf(p Plan) []string {
	var lines []string
	for _, w := range p.Now {
		lines = append(lines, textOfWork(w))
	}
	for _, w := range p.Later {
		lines = append(lines, "later "+textOfWork(w)+": "+namesOf(w.Blockers))
	}
	if len(p.Starting) > 0 {
		lines = append(lines, "starting "+namesOf(p.Starting))
	}
	return lines
}

func namesOf(blockers []catalog.Blocker) string {
	var names []string
	for _, b := range blockers {
		names = append(names, b.Name)
	}
	return strings.Join(names, ", ")
}

func statusOf(p Plan, name catalog.Name) string {
	s, _ := p.Of(name)
	return fmt.Sprintf("%s %t: %s", s.Phase, s.Applied, s.Message)
}

const critical = "system-cluster-critical"

func TestMake(t *testing.T) {
	everything := []string{
		"Update csi-attacher for priority-class", "Update csi-provisioner for priority-class",
		"Update engine-image-ei-1 for priority-class", "Update longhorn-csi-plugin for priority-class",
		"Restart bim for priority-class",
		"Restart im-1 for priority-class", "Restart im-2 for priority-class", "Restart im-3 for priority-class",
	}
	const (
		allDone = "every component is built with it"
	)
	for name, test := range map[string]struct {
		but     func(*Facts)
		setting catalog.Name
		status  string
		plan    []string
		next    string // "" is nothing
	}{
		"at rest": {
			but: func(*Facts) {}, setting: catalog.PriorityClass,
			status: "Applied true: default; not set anywhere",
		},
		"no volume attached: everything is due now, in order": {
			but: func(f *Facts) { f.set(catalog.PriorityClass, critical) }, setting: catalog.PriorityClass,
			status: "Restarting false: being applied now: 2 Deployments and 2 DaemonSets roll, 1 backing image manager and 3 instance managers restart one by one", plan: everything, next: everything[0],
		},
		"a volume attached: only the idle instance manager": {
			but: func(f *Facts) { f.set(catalog.PriorityClass, critical); f.attach() }, setting: catalog.PriorityClass,
			status: "Restarting false: 1 instance manager restarts now; the rest when these volumes are detached: pvc-a (node-1, pod default/web-0). Then 2 Deployments and 2 DaemonSets roll, 1 backing image manager and 2 instance managers restart one by one",
			plan: []string{
				"Restart im-3 for priority-class",
				"later Update csi-attacher for priority-class: pvc-a", "later Update csi-provisioner for priority-class: pvc-a",
				"later Update engine-image-ei-1 for priority-class: pvc-a", "later Update longhorn-csi-plugin for priority-class: pvc-a",
				"later Restart bim for priority-class: pvc-a",
				"later Restart im-1 for priority-class: pvc-a", "later Restart im-2 for priority-class: pvc-a",
			},
			next: "Restart im-3 for priority-class",
		},
		"a volume attached, the idle one done: the rest waits, and for what is said": {
			but: func(f *Facts) {
				f.set(catalog.PriorityClass, critical)
				f.attach()
				f.component("im-3").Built[catalog.PriorityClassName] = critical
			}, setting: catalog.PriorityClass,
			status: "Waiting false: will be applied when these volumes are detached: pvc-a (node-1, pod default/web-0). Then 2 Deployments and 2 DaemonSets roll, 1 backing image manager and 2 instance managers restart one by one; so far 0 of 4 Deployment pods, 0 of 6 DaemonSet pods, 0 of 1 backing image manager, 1 of 3 instance managers",
			plan: []string{
				"later Update csi-attacher for priority-class: pvc-a", "later Update csi-provisioner for priority-class: pvc-a",
				"later Update engine-image-ei-1 for priority-class: pvc-a", "later Update longhorn-csi-plugin for priority-class: pvc-a",
				"later Restart bim for priority-class: pvc-a",
				"later Restart im-1 for priority-class: pvc-a", "later Restart im-2 for priority-class: pvc-a",
			},
		},
		"an instance manager that still runs a replica of a detached volume waits": {
			but: func(f *Facts) { f.set(catalog.GuaranteedCPU, "20"); f.component("im-2").Uses = []string{"pvc-a-r-1"} }, setting: catalog.GuaranteedCPU,
			status: "Restarting false: 2 instance managers restart one by one now; the rest when these engines and replicas have stopped: pvc-a-r-1 (node-2). Then 1 instance manager restarts",
			plan:   []string{"Restart im-1 for guaranteed-instance-manager-cpu", "Restart im-3 for guaranteed-instance-manager-cpu", "later Restart im-2 for guaranteed-instance-manager-cpu: im-2"},
			next:   "Restart im-1 for guaranteed-instance-manager-cpu",
		},
		"several settings: one restart for all": {
			but: func(f *Facts) {
				f.set(catalog.PriorityClass, critical)
				f.set(catalog.GuaranteedCPU, "20")
				f.set(catalog.StorageNetwork, "kube-system/one")
				f.Components = f.Components[:1]
			}, setting: catalog.GuaranteedCPU,
			status: "Restarting false: being applied now: 1 instance manager restarts",
			plan:   []string{"Restart im-1 for storage-network, priority-class, guaranteed-instance-manager-cpu"},
			next:   "Restart im-1 for storage-network, priority-class, guaranteed-instance-manager-cpu",
		},
		"what waits for a pod's own work does not say what another setting waits for": {
			but: func(f *Facts) {
				f.set(catalog.PriorityClass, critical)
				f.set(catalog.GuaranteedCPU, "20")
				f.attach()
				f.Components = f.Components[:1]
			}, setting: catalog.GuaranteedCPU,
			status: "Waiting false: will be applied when these engines and replicas have stopped: pvc-a-e-0 (node-1). Then 1 instance manager restarts",
			plan:   []string{"later Restart im-1 for priority-class: pvc-a", "later Restart im-1 for guaranteed-instance-manager-cpu: im-1"},
		},
		"a template gets what is open, no more": {
			but: func(f *Facts) {
				f.set(catalog.PriorityClass, critical)
				f.set(catalog.EngineImageProbePeriod, "30")
				f.attach()
				f.Components = []catalog.Component{*f.component("engine-image-ei-1")}
			}, setting: catalog.EngineImageProbePeriod,
			status: "Restarting false: being applied now: 1 DaemonSet rolls",
			plan:   []string{"Update engine-image-ei-1 for engine-image-pod-liveness-probe-period", "later Update engine-image-ei-1 for priority-class: pvc-a"},
			next:   "Update engine-image-ei-1 for engine-image-pod-liveness-probe-period",
		},
		"v1 idle does not open the way to v2": {
			but: func(f *Facts) {
				f.addV2()
				f.set(catalog.GuaranteedCPU, "20")
				f.set(catalog.V2GuaranteedCPU, "2000")
				for i := range f.Components {
					if f.Components[i].Engine == catalog.EngineV2 {
						f.Components[i].Uses = []string{"pvc-b-e-0"}
					}
				}
			}, setting: catalog.V2GuaranteedCPU,
			status: "Waiting false: will be applied when these engines and replicas have stopped: pvc-b-e-0 (node-1), pvc-b-e-0 (node-2), pvc-b-e-0 (node-3). Then 3 instance managers restart one by one",
			plan: []string{
				"Restart im-1 for guaranteed-instance-manager-cpu", "Restart im-2 for guaranteed-instance-manager-cpu", "Restart im-3 for guaranteed-instance-manager-cpu",
				"later Restart v2-im-1 for v2-data-engine-guaranteed-instance-manager-cpu: v2-im-1",
				"later Restart v2-im-2 for v2-data-engine-guaranteed-instance-manager-cpu: v2-im-2",
				"later Restart v2-im-3 for v2-data-engine-guaranteed-instance-manager-cpu: v2-im-3",
			},
			next: "Restart im-1 for guaranteed-instance-manager-cpu",
		},
		"a former name in both groups: the newer one does not decide in its place": {
			but: func(f *Facts) {
				f.addV2()
				f.Components = f.Components[len(f.Components)-1:]
				f.set(catalog.GuaranteedCPU, "20")
				f.set(catalog.V2GuaranteedCPU, "1250")
				f.setOwn(catalog.V2GuaranteedCPU, "2000")
			}, setting: catalog.GuaranteedCPU,
			status: "Applied true: in effect; no component of this kind exists",
		},
		"a data engine that is off and has an attached volume keeps its pods, running or not": {
			but: func(f *Facts) {
				f.attach()
				f.set(catalog.V1DataEngine, "false")
				f.Components = f.Components[2:3]
				f.component("im-3").Ready, f.component("im-3").Stopped = false, true
			}, setting: catalog.V1DataEngine,
			status: "Waiting false: will be applied when these volumes are detached: pvc-a (node-1, pod default/web-0). Then 1 instance manager is removed",
			plan:   []string{"later Remove im-3 for v1-data-engine: pvc-a", "starting im-3"},
		},
		"CPU for v1 leaves v2 alone": {
			but: func(f *Facts) {
				f.addV2()
				f.set(catalog.GuaranteedCPU, `{"v1":"20","v2":"12"}`)
				for i := range f.Components {
					if f.Components[i].Engine == catalog.EngineV2 {
						f.Components[i].Built[catalog.CPURequest] = "480m"
					}
				}
			}, setting: catalog.GuaranteedCPU,
			status: "Restarting false: being applied now: 3 instance managers restart one by one; so far 3 of 6 instance managers",
			plan:   []string{"Restart im-1 for guaranteed-instance-manager-cpu", "Restart im-2 for guaranteed-instance-manager-cpu", "Restart im-3 for guaranteed-instance-manager-cpu"},
			next:   "Restart im-1 for guaranteed-instance-manager-cpu",
		},
		"CPU follows the node": {
			but: func(f *Facts) {
				f.set(catalog.GuaranteedCPU, "12")
				for name, change := range map[string]func(*catalog.Node){
					"node-1": func(n *catalog.Node) { n.InstanceManagerMilliCPU = 480 }, // as it is built
					"node-2": func(n *catalog.Node) { n.InstanceManagerMilliCPU = 700 },
					"node-3": func(n *catalog.Node) { n.AllocatableMilliCPU = 8000 },
				} {
					n := f.Nodes[name]
					change(&n)
					f.Nodes[name] = n
				}
			}, setting: catalog.GuaranteedCPU,
			status: "Restarting false: being applied now: 2 instance managers restart one by one; so far 1 of 3 instance managers",
			plan:   []string{"Restart im-2 for guaranteed-instance-manager-cpu", "Restart im-3 for guaranteed-instance-manager-cpu"},
			next:   "Restart im-2 for guaranteed-instance-manager-cpu",
		},
		"starting: the next pod waits for the one before it": {
			but: func(f *Facts) {
				f.set(catalog.GuaranteedCPU, "20")
				f.component("im-1").Built[catalog.CPURequest] = "800m"
				f.component("im-1").Ready = false
			}, setting: catalog.GuaranteedCPU,
			status: "Restarting false: being applied now: 2 instance managers restart one by one",
			plan:   []string{"Restart im-2 for guaranteed-instance-manager-cpu", "Restart im-3 for guaranteed-instance-manager-cpu", "starting im-1"},
		},
		"starting: and for one that is yet to be made": {
			but: func(f *Facts) {
				f.set(catalog.GuaranteedCPU, "20")
				f.component("im-1").Built, f.component("im-1").Ready, f.component("im-1").Missing = nil, false, true
			}, setting: catalog.GuaranteedCPU,
			status: "Restarting false: being applied now: 2 instance managers restart one by one",
			plan:   []string{"Restart im-2 for guaranteed-instance-manager-cpu", "Restart im-3 for guaranteed-instance-manager-cpu", "starting im-1"},
		},
		"starting: and for one that is terminating": {
			but: func(f *Facts) {
				f.set(catalog.GuaranteedCPU, "20")
				f.component("im-1").Terminating = true
			}, setting: catalog.GuaranteedCPU,
			status: "Restarting false: 2 instance managers restart one by one now; waiting: instance manager im-1 on node-1 is still terminating. Then 1 instance manager restarts",
			plan: []string{
				"Restart im-2 for guaranteed-instance-manager-cpu", "Restart im-3 for guaranteed-instance-manager-cpu",
				"later Restart im-1 for guaranteed-instance-manager-cpu: im-1", "starting im-1",
			},
		},
		"starting: also one that has the value and is terminating": {
			but: func(f *Facts) {
				f.set(catalog.GuaranteedCPU, "20")
				f.Components = f.Components[:1]
				f.component("im-1").Built[catalog.CPURequest] = "800m"
				f.component("im-1").Terminating = true
			}, setting: catalog.GuaranteedCPU,
			status: "Restarting false: 0 of 1 instance manager; instance manager im-1 on node-1 is still terminating",
			plan:   []string{"starting im-1"},
		},
		"starting: one that came back without the value, while it is left alone": {
			but: func(f *Facts) {
				f.set(catalog.GuaranteedCPU, "20")
				f.component("im-1").Ready = false
				f.Held["im-1"] = Hold{Wants: map[catalog.Trait]string{catalog.CPURequest: "800m"}, Seen: "before", Until: midday.Add(time.Minute), Message: "is as it was"}
			}, setting: catalog.GuaranteedCPU,
			status: "Restarting false: 2 instance managers restart one by one now; waiting: instance manager im-1 on node-1 is as it was. Then 1 instance manager restarts",
			plan: []string{
				"Restart im-2 for guaranteed-instance-manager-cpu", "Restart im-3 for guaranteed-instance-manager-cpu",
				"later Restart im-1 for guaranteed-instance-manager-cpu: im-1", "starting im-1",
			},
		},
		"starting: a setting that waits for another's pods says so": {
			but: func(f *Facts) {
				f.set(catalog.GuaranteedCPU, "20")
				f.set(catalog.PriorityClass, critical)
				for i := range f.Components {
					f.Components[i].Built[catalog.PriorityClassName] = critical
				}
				f.component("bim").Ready = false
			}, setting: catalog.GuaranteedCPU,
			status: "Restarting false: being applied now: 3 instance managers restart one by one; backing image manager bim on node-1 is not Ready yet",
			plan: []string{
				"Restart im-1 for guaranteed-instance-manager-cpu", "Restart im-2 for guaranteed-instance-manager-cpu", "Restart im-3 for guaranteed-instance-manager-cpu",
				"starting bim",
			},
		},
		"a value that no pod starts with stops at the first; corrected, that one goes first": {
			but: func(f *Facts) {
				f.set(catalog.PriorityClass, critical)
				f.set(catalog.GuaranteedCPU, "20") // corrected from one that no node has room for
				f.Components = f.Components[:3]
				for i := range f.Components {
					f.Components[i].Built[catalog.PriorityClassName] = critical
				}
				f.component("im-2").Built[catalog.CPURequest] = "4000m"
				f.component("im-2").Ready = false
			}, setting: catalog.GuaranteedCPU,
			status: "Restarting false: being applied now: 3 instance managers restart one by one; instance manager im-2 on node-2 is not Ready yet",
			plan: []string{
				"Restart im-1 for guaranteed-instance-manager-cpu", "Restart im-2 for guaranteed-instance-manager-cpu", "Restart im-3 for guaranteed-instance-manager-cpu",
				"starting im-2",
			},
			next: "Restart im-2 for guaranteed-instance-manager-cpu",
		},
		"built with it and not Ready is not applied": {
			but: func(f *Facts) {
				f.set(catalog.PriorityClass, critical)
				for i := range f.Components {
					f.Components[i].Built[catalog.PriorityClassName] = critical
				}
				f.component("csi-attacher").Ready, f.component("csi-attacher").Updated = false, 1
			}, setting: catalog.PriorityClass,
			status: "Restarting false: 3 of 4 Deployment pods, 6 of 6 DaemonSet pods, 1 of 1 backing image manager, 3 of 3 instance managers; Deployment csi-attacher has 1 of 2 pods updated and available",
		},
		"built with it and Ready is applied": {
			but: func(f *Facts) {
				f.set(catalog.PriorityClass, critical)
				for i := range f.Components {
					f.Components[i].Built[catalog.PriorityClassName] = critical
				}
			}, setting: catalog.PriorityClass,
			status: "Applied true: " + allDone,
		},
		"applied stays when a pod is not Ready later": {
			but: func(f *Facts) {
				f.set(catalog.PriorityClass, critical)
				f.rolled(catalog.PriorityClass, critical)
				for i := range f.Components {
					f.Components[i].Built[catalog.PriorityClassName] = critical
				}
				f.component("im-1").Ready = false
			}, setting: catalog.PriorityClass,
			status: "Applied true: " + allDone,
		},
		"a node that is down is not waited for": {
			but: func(f *Facts) {
				f.set(catalog.InstanceManagerProbeTimeout, "20")
				for _, name := range []string{"im-1", "im-2", "im-3"} {
					f.component(name).Built[catalog.LivenessTimeout] = "20"
				}
				f.component("im-1").Ready = false
				f.component("im-2").Built, f.component("im-2").Ready, f.component("im-2").Missing = nil, false, true
				n := f.Nodes["node-1"]
				n.Ready = false
				f.Nodes["node-1"] = n
				delete(f.Nodes, "node-2")
			}, setting: catalog.InstanceManagerProbeTimeout,
			status: "Applied true: " + allDone,
		},
		"a pod that no node takes is waited for": {
			but: func(f *Facts) {
				f.set(catalog.SystemManagedNodeSelector, "no:where")
				for i := range f.Components {
					f.Components[i].Built[catalog.NodeSelector] = "no:where"
				}
				f.component("bim").Node, f.component("bim").Ready = "", false
			}, setting: catalog.SystemManagedNodeSelector,
			status: "Restarting false: 4 of 4 Deployment pods, 6 of 6 DaemonSet pods, 0 of 1 backing image manager; backing image manager bim is not Ready yet; left out by the node selector: node-1, node-2, node-3",
			plan:   []string{"starting bim"},
		},
		"held: left alone until then": {
			but: func(f *Facts) {
				f.set(catalog.GuaranteedCPU, "20")
				f.Held["im-1"] = Hold{Wants: map[catalog.Trait]string{catalog.CPURequest: "800m"}, Seen: "before", Until: midday.Add(time.Minute), Message: "is as it was"}
				f.Held["im-2"] = Hold{Wants: map[catalog.Trait]string{catalog.CPURequest: "800m"}, Seen: "before", Until: midday, Message: "over"}
			}, setting: catalog.GuaranteedCPU,
			status: "Restarting false: 2 instance managers restart one by one now; waiting: instance manager im-1 on node-1 is as it was. Then 1 instance manager restarts",
			plan: []string{
				"Restart im-2 for guaranteed-instance-manager-cpu", "Restart im-3 for guaranteed-instance-manager-cpu",
				"later Restart im-1 for guaranteed-instance-manager-cpu: im-1",
			},
			next: "Restart im-2 for guaranteed-instance-manager-cpu",
		},
		"opted out: left alone, and said": {
			but: func(f *Facts) {
				f.set(catalog.GuaranteedCPU, "20")
				f.Components = f.Components[:1]
				f.component("im-1").OptOut = true
			}, setting: catalog.GuaranteedCPU,
			status: "Waiting false: waiting: instance manager im-1 on node-1 opts out by fairlead.io/opt-out: remove the annotation. Then 1 instance manager restarts",
			plan:   []string{"later Restart im-1 for guaranteed-instance-manager-cpu: im-1"},
		},
		"an invalid value in force changes nothing": {
			but: func(f *Facts) { f.set(catalog.GuaranteedCPU, "lots") }, setting: catalog.GuaranteedCPU,
			status: `Invalid false: nothing is applied until this is corrected: value "lots" ` + invalid(catalog.GuaranteedCPU, "lots"),
		},
		"defaults are not enforced on what was installed otherwise": {
			but: func(f *Facts) { f.component("im-1").Built[catalog.PriorityClassName] = "installed" }, setting: catalog.PriorityClass,
			status: "Applied true: default; not set anywhere",
		},
		"a default that the storage system's own setting says is": {
			but: func(f *Facts) {
				f.set(catalog.PriorityClass, "")
				f.component("im-1").Built[catalog.PriorityClassName] = "installed"
			}, setting: catalog.PriorityClass,
			status: "Restarting false: being applied now: 1 instance manager restarts; so far 4 of 4 Deployment pods, 6 of 6 DaemonSet pods, 1 of 1 backing image manager, 2 of 3 instance managers",
			plan:   []string{"Restart im-1 for priority-class"}, next: "Restart im-1 for priority-class",
		},
		"taken away after it was applied: the default": {
			but: func(f *Facts) {
				f.rolled(catalog.EngineImageProbePeriod, "20")
				f.component("engine-image-ei-1").Built[catalog.ProbePeriod] = "20"
			}, setting: catalog.EngineImageProbePeriod,
			status: "Restarting false: being applied now: 1 DaemonSet rolls",
			plan:   []string{"Update engine-image-ei-1 for engine-image-pod-liveness-probe-period"}, next: "Update engine-image-ei-1 for engine-image-pod-liveness-probe-period",
		},
		"taken away half-way: the default as well": {
			but: func(f *Facts) {
				f.underway(catalog.EngineImageProbePeriod)
				f.component("engine-image-ei-1").Built[catalog.ProbePeriod] = "20"
			}, setting: catalog.EngineImageProbePeriod,
			status: "Restarting false: being applied now: 1 DaemonSet rolls",
			plan:   []string{"Update engine-image-ei-1 for engine-image-pod-liveness-probe-period"}, next: "Update engine-image-ei-1 for engine-image-pod-liveness-probe-period",
		},
		"taken away before a component was changed: what was installed stays": {
			but: func(f *Facts) {
				f.Told[catalog.EngineImageProbePeriod] = Told{}
				f.component("engine-image-ei-1").Built[catalog.ProbePeriod] = "20"
			}, setting: catalog.EngineImageProbePeriod,
			status: "Applied true: default; not set anywhere",
		},
		"two names of one trait: the first of the catalog decides": {
			but: func(f *Facts) {
				f.addV2()
				f.Components = f.Components[len(f.Components)-1:]
				f.set(catalog.DataEngineCPUMask, `{"v2":"0x7"}`)
				f.set(catalog.V2CPUMask, "0xf")
			}, setting: catalog.V2CPUMask,
			status: "Applied true: in effect; no component of this kind exists",
			plan:   []string{"Restart v2-im-3 for data-engine-cpu-mask"}, next: "Restart v2-im-3 for data-engine-cpu-mask",
		},
		"data engine off: its instance managers go for good": {
			but: func(f *Facts) { f.addV2(); f.set(catalog.V2DataEngine, "false"); f.attach() }, setting: catalog.V2DataEngine,
			status: "Restarting false: being applied now: 3 instance managers are removed",
			plan:   []string{"Remove v2-im-1 for v2-data-engine", "Remove v2-im-2 for v2-data-engine", "Remove v2-im-3 for v2-data-engine"},
			next:   "Remove v2-im-1 for v2-data-engine",
		},
		"data engine off: not while one volume of it is attached, wherever": {
			but: func(f *Facts) { f.set(catalog.V1DataEngine, "false"); f.attach() }, setting: catalog.V1DataEngine,
			status: "Waiting false: will be applied when these volumes are detached: pvc-a (node-1, pod default/web-0). Then 3 instance managers are removed",
			plan:   []string{"later Remove im-1 for v1-data-engine: pvc-a", "later Remove im-2 for v1-data-engine: pvc-a", "later Remove im-3 for v1-data-engine: pvc-a"},
		},
		"data engine off: waits on, though the pod restarts for another setting": {
			but: func(f *Facts) {
				f.set(catalog.V1DataEngine, "false")
				f.set(catalog.GuaranteedCPU, "20")
				f.attach()
				f.Components = f.Components[2:3]
			}, setting: catalog.V1DataEngine,
			status: "Waiting false: will be applied when these volumes are detached: pvc-a (node-1, pod default/web-0). Then 1 instance manager is removed",
			plan:   []string{"Restart im-3 for guaranteed-instance-manager-cpu", "later Remove im-3 for v1-data-engine: pvc-a"},
			next:   "Restart im-3 for guaranteed-instance-manager-cpu",
		},
		"data engine off: one that is gone already is nothing to wait for": {
			but: func(f *Facts) {
				f.set(catalog.V1DataEngine, "false")
				f.Components = f.Components[:1]
				f.component("im-1").Built, f.component("im-1").Ready, f.component("im-1").Missing = nil, false, true
			}, setting: catalog.V1DataEngine,
			status: "Applied true: in effect; no component of this kind exists",
		},
		"data engine on: until an instance manager is on every node": {
			but: func(f *Facts) {
				f.addV2()
				f.rolled(catalog.V2DataEngine, "false")
				f.Components = f.Components[:len(f.Components)-2]
				n := f.Nodes["node-3"]
				n.DisabledV2 = true
				f.Nodes["node-3"] = n
			}, setting: catalog.V2DataEngine,
			status: "Restarting false: 1 of 2 instance managers; the storage system has yet to start an instance manager of the v2 data engine on node-2",
		},
		"data engine on: not on a node where the storage system is down": {
			but: func(f *Facts) {
				f.addV2()
				f.rolled(catalog.V2DataEngine, "false")
				f.Components = f.Components[:len(f.Components)-1]
				f.changeNode("node-3", func(n *catalog.Node) { n.StorageDown = true })
			}, setting: catalog.V2DataEngine,
			status: "Applied true: every component is built with it",
		},
		"data engine on: not on a node that is cordoned": {
			but: func(f *Facts) {
				f.addV2()
				f.rolled(catalog.V2DataEngine, "false")
				f.Components = f.Components[:len(f.Components)-1]
				f.changeNode("node-3", func(n *catalog.Node) { n.Cordoned = true })
			}, setting: catalog.V2DataEngine,
			status: "Applied true: every component is built with it",
		},
		"nothing is built with it": {
			but: func(f *Facts) { f.set(catalog.ReplicaRebuildLimit, "7") }, setting: catalog.ReplicaRebuildLimit,
			status: "Applied true: in effect",
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

func invalid(name catalog.Name, value string) string {
	d, _ := catalog.Lookup(string(name))
	return d.Parse(value).Error()
}

func TestAHoldSaysWhenToLookAgain(t *testing.T) {
	f := fleet()
	f.set(catalog.GuaranteedCPU, "20")
	wants := map[catalog.Trait]string{catalog.CPURequest: "800m"}
	f.Held["im-1"] = Hold{Wants: wants, Seen: "before", Until: midday.Add(time.Minute)}
	f.Held["im-2"] = Hold{Wants: wants, Seen: "before", Until: midday.Add(time.Second)}
	if got := Make(f).After; got != time.Second {
		t.Fatalf("after %v", got)
	}
}

func TestApplyingDoesAllInOrderAndEachOnce(t *testing.T) {
	f := fleet()
	f.set(catalog.PriorityClass, critical)
	f.set(catalog.GuaranteedCPU, "20")
	want := []string{
		"Update csi-attacher for priority-class", "Update csi-provisioner for priority-class",
		"Update engine-image-ei-1 for priority-class", "Update longhorn-csi-plugin for priority-class",
		"Restart bim for priority-class",
		"Restart im-1 for priority-class, guaranteed-instance-manager-cpu", "Restart im-2 for priority-class, guaranteed-instance-manager-cpu",
		"Restart im-3 for priority-class, guaranteed-instance-manager-cpu",
	}
	if got := f.apply(t); !slices.Equal(got, want) {
		t.Fatalf("did\n%s", strings.Join(got, "\n"))
	}
	for _, s := range Make(f).Settings {
		if !s.Applied {
			t.Errorf("%s is not applied: %s", s.Name, s.Message)
		}
	}
}

// In Longhorn 1.7, a storage-network that waits goes along with the sync of the
// setting of the network for RWX volumes, whose gate RWO volumes do not close.
func TestRegressionAPendingStorageNetworkRestartsNothingInUse(t *testing.T) {
	f := fleet()
	f.set(catalog.StorageNetwork, "kube-system/one")
	f.set(catalog.StorageNetworkForRWX, "true")
	f.attach()
	p := Make(f)
	want := []string{
		"Restart im-3 for storage-network", "later Restart bim for storage-network: pvc-a",
		"later Restart im-1 for storage-network: pvc-a", "later Restart im-2 for storage-network: pvc-a",
	}
	if got := textOf(p); !slices.Equal(got, want) {
		t.Fatalf("plan\n%s", strings.Join(got, "\n"))
	}
	if p.Network.Action != rollout.RecordClients {
		t.Fatalf("the network of RWX volumes waits for an RWO volume: %+v", p.Network)
	}
}

func TestRegressionIssuedIsNotApplied(t *testing.T) {
	f := fleet()
	f.set(catalog.PriorityClass, critical)
	f.apply(t)
	for i := range f.Components {
		f.Components[i].Ready, f.Components[i].Updated = false, 0
	}
	for i := range f.Components {
		if s, _ := Make(f).Of(catalog.PriorityClass); s.Applied {
			t.Fatalf("applied with %d of %d components back", i, len(f.Components))
		}
		f.Components[i].Ready, f.Components[i].Updated = true, f.Components[i].Total
	}
	if got := statusOf(Make(f), catalog.PriorityClass); got != "Applied true: every component is built with it" {
		t.Fatal(got)
	}
}

func TestRegressionTheLastDetachIsEnough(t *testing.T) {
	f := fleet()
	f.set(catalog.PriorityClass, critical)
	f.attach()
	f.apply(t)
	if w, due := Make(f).Next(); due {
		t.Fatalf("due while attached: %s", textOfWork(w))
	}
	f.Volumes[0].Attached, f.component("im-1").Uses, f.component("im-2").Uses = false, nil, nil
	p := Make(f)
	if w, due := p.Next(); !due || textOfWork(w) != "Update csi-attacher for priority-class" {
		t.Fatalf("after the last detach: %s", textOfWork(w))
	}
	if done := f.apply(t); len(done) != 7 {
		t.Fatalf("did\n%s", strings.Join(done, "\n"))
	}
}

func TestRegressionEverySettingThatWaitsSaysForWhat(t *testing.T) {
	for _, d := range catalog.DangerZone() {
		value, other := map[catalog.Name]string{
			catalog.StorageNetwork: "kube-system/one", catalog.EndpointNetworkForRWX: "kube-system/one", catalog.StorageNetworkForRWX: "true",
			catalog.TaintToleration: "a=b:NoSchedule", catalog.SystemManagedNodeSelector: "a:b", catalog.PriorityClass: critical,
			catalog.GuaranteedCPU: "20", catalog.V2GuaranteedCPU: "2000", catalog.InstanceManagerProbeTimeout: "20", catalog.V1DataEngine: "false", catalog.V2DataEngine: "false",
			catalog.DataEngineCPUMask: `{"v2":"0x7"}`, catalog.DataEngineMemorySize: `{"v2":"4096"}`, catalog.DataEngineHugepages: `{"v2":"false"}`,
			catalog.DataEngineInterrupts: `{"v2":"true"}`, catalog.V2CPUMask: "0x7", catalog.V2HugepageLimit: "4096", catalog.LogPath: "/var/log/longhorn",
			catalog.DataEngineCPUCores: "2", catalog.DataEngineCPUIsolation: "true", catalog.DataEngineLargePool: "4096", catalog.DataEngineSmallPool: "16384",
		}[d.Name]
		if !other {
			if d.Gate != catalog.AtOnce {
				t.Errorf("%s is not tested", d.Name)
			}
			continue
		}
		f := fleet()
		f.addV2()
		for node := range f.Nodes {
			f.changeNode(node, func(n *catalog.Node) { n.Labels = map[string]string{"a": "b"} })
		}
		f.set(d.Name, value)
		if d.Name == catalog.StorageNetworkForRWX {
			f.set(catalog.StorageNetwork, "kube-system/one")
		}
		for i := range f.Components {
			f.Components[i].Uses = []string{"pvc-a-e-0"}
		}
		f.Volumes = []storage.Volume{{Name: "pvc-a", Attached: true, Shared: true, Engine: catalog.EngineV1}, {Name: "pvc-a-of-v2", Attached: true, Engine: catalog.EngineV2}}
		f.Rollout.Volumes = f.Volumes
		s, _ := Make(f).Of(d.Name)
		if s.Applied || !strings.Contains(s.Message, "pvc-a") || len(s.Blockers) == 0 {
			t.Errorf("%s: applied %t, %q, blockers %v", d.Name, s.Applied, s.Message, s.Blockers)
		}
	}
}

func TestDescribe(t *testing.T) {
	for name, test := range map[string]struct {
		but     func(*Facts)
		setting catalog.Name // "" is PriorityClass
		pending bool
		text    string
	}{
		"nothing to do": {but: func(*Facts) {}},
		"all at once": {
			but:  func(f *Facts) { f.set(catalog.PriorityClass, critical) },
			text: "being applied now: 2 Deployments and 2 DaemonSets roll, 1 backing image manager and 3 instance managers restart one by one",
		},
		"some of it": {
			but:     func(f *Facts) { f.set(catalog.PriorityClass, critical); f.attach() },
			pending: true,
			text: "1 instance manager restarts now; the rest when these volumes are detached: pvc-a (node-1, pod default/web-0). " +
				"Then 2 Deployments and 2 DaemonSets roll, 1 backing image manager and 2 instance managers restart one by one",
		},
		"nothing of it": {
			but: func(f *Facts) {
				f.set(catalog.PriorityClass, critical)
				f.attach()
				f.Components = f.Components[:2]
			},
			pending: true,
			text:    "will be applied when these volumes are detached: pvc-a (node-1, pod default/web-0). Then 2 instance managers restart one by one",
		},
		"not for volumes": {
			but: func(f *Facts) {
				f.set(catalog.PriorityClass, critical)
				f.Components = f.Components[:3]
				f.component("im-1").OptOut, f.component("im-2").OptOut = true, true
			},
			pending: true,
			text: "1 instance manager restarts now; waiting: instance manager im-1 on node-1 opts out by " + storage.OptOutAnnotation +
				": remove the annotation, and 1 more. Then 2 instance managers restart one by one",
		},
		"for volumes and more: only volumes are to be detached": {
			but: func(f *Facts) {
				f.set(catalog.PriorityClass, critical)
				f.attach()
				f.Components = f.Components[:2]
				f.component("im-1").OptOut = true
			},
			pending: true,
			text: "will be applied when these volumes are detached: pvc-a (node-1, pod default/web-0); also waiting: instance manager im-1 on node-1 opts out by " +
				storage.OptOutAnnotation + ": remove the annotation. Then 2 instance managers restart one by one",
		},
		// Nothing is done to a share manager in use, which comes back with the value by itself.
		"a share manager of before, and the value is set back": {
			but: func(f *Facts) {
				f.share("pvc-a", critical)
				f.underway(catalog.PriorityClass)
				f.set(catalog.PriorityClass, "")
			},
			pending: true,
			text:    "will be applied when these volumes are detached: pvc-a (node-1)",
		},
		"each share manager by its own volume, not by what else is attached": {
			but: func(f *Facts) {
				f.attach()
				f.share("pvc-c", critical)
				f.share("pvc-b", critical)
				f.share("pvc-d", "")
				f.set(catalog.PriorityClass, "")
			},
			pending: true,
			text:    "will be applied when these volumes are detached: pvc-b (node-1), pvc-c (node-1)",
		},
		"and the rest of it now": {
			but: func(f *Facts) {
				f.share("pvc-c", critical)
				f.component("im-3").Built[catalog.PriorityClassName] = critical
				f.set(catalog.PriorityClass, "")
			},
			pending: true,
			text:    "1 instance manager restarts now; the rest when these volumes are detached: pvc-c (node-1)",
		},
		"all volumes where more than share managers wait": {
			but: func(f *Facts) {
				f.attach()
				f.share("pvc-c", critical)
				f.component("im-1").Built[catalog.PriorityClassName] = critical
				f.set(catalog.PriorityClass, "")
			},
			pending: true,
			text:    "will be applied when these volumes are detached: pvc-a (node-1, pod default/web-0), pvc-c (node-1). Then 1 instance manager restarts",
		},
		// It ends with its volume, whether it opts out or not.
		"a share manager that is left alone": {
			but: func(f *Facts) {
				f.attach()
				f.share("pvc-c", critical).OptOut = true
				f.set(catalog.PriorityClass, "")
			},
			pending: true,
			text:    "will be applied when these volumes are detached: pvc-c (node-1)",
		},
		"a share manager that is left alone, and has no volume any more": {
			but: func(f *Facts) {
				share := f.share("pvc-c", critical)
				share.OptOut, share.Uses = true, nil
				f.set(catalog.PriorityClass, "")
			},
			pending: true,
			text: "waiting: share manager share-manager-pvc-c on node-1 opts out by " + storage.OptOutAnnotation +
				": remove the annotation. Then 1 share manager restarts",
		},
		"a share manager whose volume nobody knows": {
			but: func(f *Facts) {
				f.attach()
				f.share("pvc-c", critical).Uses = []string{"pvc-x"}
				f.Volumes = f.Volumes[:1]
				f.set(catalog.PriorityClass, "")
			},
			pending: true,
			text:    "waiting: share manager share-manager-pvc-c on node-1 runs 1 instance: pvc-x",
		},
	} {
		t.Run(name, func(t *testing.T) {
			f := fleet()
			test.but(&f)
			name := catalog.PriorityClass
			if test.setting != "" {
				name = test.setting
			}
			p := Make(f)
			pending, text := p.Waits(name), p.describe(name)
			if pending != test.pending || text != test.text {
				t.Fatalf("pending %t, %s\nwant %t, %s", pending, text, test.pending, test.text)
			}
		})
	}
}

// A share manager in use ends with its own volume, and nothing else is waited for;
// one that opts out does too.
func TestAShareManagerWaitsForItsOwnVolume(t *testing.T) {
	f := fleet()
	f.attach()
	f.share("pvc-c", critical)
	f.share("pvc-b", critical).OptOut = true
	f.set(catalog.PriorityClass, "")
	p := Make(f)
	s, _ := p.Of(catalog.PriorityClass)
	if got := namesOf(s.Blockers); got != "pvc-b, pvc-c" || !strings.HasPrefix(s.Message, "will be applied when these volumes are detached: pvc-b (node-1), pvc-c (node-1); so far") {
		t.Errorf("waits for %s: %s", got, s.Message)
	}
	if got := textOf(p); len(got) > 0 {
		t.Errorf("plan\n%s", strings.Join(got, "\n"))
	}
	f.component("im-2").Built[catalog.PriorityClassName] = critical // in use, so for all volumes
	s, _ = Make(f).Of(catalog.PriorityClass)
	if got := namesOf(s.Blockers); got != "pvc-a, pvc-b, pvc-c" {
		t.Errorf("with an instance manager, waits for %s", got)
	}
}

// The newer setting of the network for RWX volumes wins over the older one,
// which waits for nothing then; and where it is not set, it waits for nothing either.
func TestOnlyWhatChoosesTheNetworkWaitsForIt(t *testing.T) {
	const one, two = "kube-system/one", "kube-system/two"
	for name, test := range map[string]struct {
		but             func(*Facts)
		older, endpoint string
	}{
		"the newer one is set": {
			but:   func(f *Facts) { f.set(catalog.EndpointNetworkForRWX, two) },
			older: "Applied true: of no effect: endpoint-network-for-rwx-volume decides", endpoint: "Waiting false: 1 RWX volume attached: pvc-a",
		},
		"the older one is set": {
			but:   func(f *Facts) { f.set(catalog.StorageNetworkForRWX, "true") },
			older: "Waiting false: 1 RWX volume attached: pvc-a", endpoint: "Applied true: in effect",
		},
		"both": {
			but:   func(f *Facts) { f.set(catalog.StorageNetworkForRWX, "true"); f.set(catalog.EndpointNetworkForRWX, two) },
			older: "Applied true: of no effect: endpoint-network-for-rwx-volume decides", endpoint: "Waiting false: 1 RWX volume attached: pvc-a",
		},
		"the newer one is taken back, and clients are on their way": {
			but: func(f *Facts) {
				f.set(catalog.EndpointNetworkForRWX, "")
				f.rolled(catalog.EndpointNetworkForRWX, two)
				f.set(catalog.StorageNetworkForRWX, "true")
			},
			older: "Waiting false: 1 RWX volume attached: pvc-a", endpoint: "Waiting false: 1 RWX volume attached: pvc-a",
		},
	} {
		t.Run(name, func(t *testing.T) {
			f := fleet()
			f.set(catalog.StorageNetwork, one)
			f.Volumes = []storage.Volume{{Name: "pvc-a", Attached: true, Shared: true, Engine: catalog.EngineV1, Nodes: []string{"node-1"}}}
			f.Rollout.Volumes = f.Volumes
			test.but(&f)
			p := Make(f)
			if older, endpoint := statusOf(p, catalog.StorageNetworkForRWX), statusOf(p, catalog.EndpointNetworkForRWX); older != test.older || endpoint != test.endpoint {
				t.Errorf("older %s\nnewer %s", older, endpoint)
			}
		})
	}
}

func TestDescribeDataEngineAndCPU(t *testing.T) {
	f := fleet()
	f.addV2()
	f.set(catalog.V2DataEngine, "false")
	f.set(catalog.PriorityClass, critical)
	f.set(catalog.GuaranteedCPU, "20")
	f.attach()
	f.component("im-2").Uses, f.component("im-3").Uses = nil, []string{"pvc-a-r-1"}
	p := Make(f)
	if text := p.describe(catalog.V2DataEngine); text != "being applied now: 3 instance managers are removed" {
		t.Error(text)
	}
	want := "3 instance managers are removed, 1 instance manager restarts now; the rest when these engines and replicas have stopped: pvc-a-e-0 (node-1), pvc-a-r-1 (node-3). Then 2 instance managers restart one by one"
	if text := p.describe(catalog.GuaranteedCPU); text != want {
		t.Error(text)
	}
}
