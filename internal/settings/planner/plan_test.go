package planner

import (
	"strings"
	"testing"
	"time"

	"github.com/fairlead-io/fairlead/internal/rwx"
	"github.com/fairlead-io/fairlead/internal/settings/catalog"
	"github.com/fairlead-io/fairlead/internal/testkit/must"
)

func TestMake(t *testing.T) {
	const (
		templates = "csi-attacher csi-provisioner engine-image-ei-1 longhorn-csi-plugin for priority-class"
		detached  = "when these volumes are detached: pvc-a (node-1, pod default/web-0)"
		hasValue  = "Applied: every component has the value"
		allNow    = "Restarting: being applied now: "
	)
	setClass, setCPU := set(catalog.PriorityClass, critical), set(catalog.GuaranteedCPU, "20")
	hasClass := built(catalog.PriorityClassName, critical)
	checkPlans(t, map[string]planTest{
		"no setting is set": {nil, catalog.PriorityClass, "Applied: default; not set anywhere", ""},
		"no volume attached any more": {[]change{setClass, attach, detach}, catalog.PriorityClass,
			allNow + "2 Deployments and 2 DaemonSets roll, 1 backing image manager and 3 instance managers restart one by one",
			"Update csi-attacher* " + strings.TrimPrefix(templates, "csi-attacher ") + "; Restart bim im-1 im-2 im-3 for priority-class"},
		"volume attached: only the idle instance manager restarts": {[]change{setClass, attach}, catalog.PriorityClass,
			"Restarting: 1 instance manager restarts now; the rest " + detached + ". Then 2 Deployments and 2 DaemonSets roll, 1 backing image manager and 2 instance managers restart one by one",
			"Restart im-3* for priority-class; later Update " + templates + ": pvc-a; later Restart bim im-1 im-2 for priority-class: pvc-a"},
		"volume attached and idle one done: the rest waits": {[]change{setClass, attach, built(catalog.PriorityClassName, critical, "im-3")},
			catalog.PriorityClass,
			"Waiting: will be applied " + detached + ". Then 2 Deployments and 2 DaemonSets roll, 1 backing image manager and 2 instance managers restart one by one; " + "so far 0 of 4 Deployment pods, 0 of 6 DaemonSet pods, 0 of 1 backing image manager, 1 of 3 instance managers",
			"later Update " + templates + ": pvc-a; later Restart bim im-1 im-2 for priority-class: pvc-a"},
		"replica of a detached volume still runs": {[]change{setCPU, uses("im-2", "pvc-a-r-1")}, catalog.GuaranteedCPU,
			"Restarting: 2 instance managers restart one by one now; the rest when these engines and replicas have stopped: pvc-a-r-1 (node-2). Then 1 instance manager restarts",
			"Restart im-1* im-3 for CPU; later Restart im-2 for CPU: im-2"},
		"several settings: one restart": {[]change{setClass, setCPU, set(catalog.StorageNetwork, "kube-system/one"), only("im-1")}, catalog.GuaranteedCPU,
			allNow + "1 instance manager restarts", "Restart im-1* for storage-network, priority-class, CPU"},
		// In Longhorn 1.7, the sync of the RWX setting applies a storage-network that waits.
		"storage network and RWX setting: no pod in use restarts": {
			[]change{set(catalog.StorageNetwork, "kube-system/one"), set(catalog.StorageNetworkForRWX, "true"), attach}, catalog.StorageNetworkForRWX,
			"RollingClients: being applied now: 2 CSI plugin pods restart", "Restart im-3* for storage-network; later Restart bim im-1 im-2 for storage-network: pvc-a"},
		"settings with different gates: each names its own blockers": {[]change{setClass, setCPU, attach, only("im-1")}, catalog.GuaranteedCPU,
			"Waiting: will be applied when these engines and replicas have stopped: pvc-a-e-0 (node-1). Then 1 instance manager restarts",
			"later Restart im-1 for priority-class: pvc-a; later Restart im-1 for CPU: im-1"},
		"template gets only values whose gate is open": {
			[]change{setClass, set(catalog.EngineImageProbePeriod, "30"), attach, only("engine-image-ei-1")}, catalog.EngineImageProbePeriod,
			allNow + "1 DaemonSet rolls", "Update engine-image-ei-1* for probe-period; later Update engine-image-ei-1 for priority-class: pvc-a"},
		"engines in use are named with removals and restarts": {
			[]change{addV2, set(catalog.V2DataEngine, "false"), setCPU, attach, uses("im-2"), uses("im-3", "pvc-a-r-1")}, catalog.GuaranteedCPU,
			"Restarting: 3 instance managers are removed, 1 instance manager restarts now; the rest when these engines and replicas have stopped: pvc-a-e-0 (node-1), pvc-a-r-1 (node-3). Then 2 instance managers restart one by one",
			"Remove v2-im-1* for CPU, v2-data-engine; Restart im-2 for CPU; Remove v2-im-2 v2-im-3 for CPU, v2-data-engine; later Restart im-1 for CPU: im-1; later Restart im-3 for CPU: im-3"},
		"former name in both groups: newer name does not decide": {
			[]change{addV2, only("v2-im-3"), setCPU, set(catalog.V2GuaranteedCPU, "1250"), setOwn(catalog.V2GuaranteedCPU, "2000")}, catalog.GuaranteedCPU,
			"Applied: in effect; no component of this kind exists", ""},
		"starting: next pod waits for the previous pod": {[]change{setCPU, built(catalog.CPURequest, "800m", "im-1"), unready("im-1")}, catalog.GuaranteedCPU,
			allNow + "2 instance managers restart one by one", "Restart im-2 im-3 for CPU; starting im-1"},
		"starting: missing pod": {[]change{setCPU, missing("im-1")}, catalog.GuaranteedCPU,
			allNow + "2 instance managers restart one by one", "Restart im-2 im-3 for CPU; starting im-1"},
		"starting: terminating pod": {[]change{setCPU, terminating("im-1")}, catalog.GuaranteedCPU,
			"Restarting: 2 instance managers restart one by one now; waiting: instance manager im-1 on node-1 is still terminating. Then 1 instance manager restarts",
			"Restart im-2 im-3 for CPU; later Restart im-1 for CPU: im-1; starting im-1"},
		"starting: terminating pod that has the value": {[]change{setCPU, only("im-1"), built(catalog.CPURequest, "800m"), terminating()},
			catalog.GuaranteedCPU, "Restarting: 0 of 1 instance manager; instance manager im-1 on node-1 is still terminating", "starting im-1"},
		"starting: held pod that restarted without the value": {[]change{setCPU, unready("im-1"), hold("im-1", time.Minute)}, catalog.GuaranteedCPU,
			"Restarting: 2 instance managers restart one by one now; waiting: instance manager im-1 on node-1 was reverted; its cpuRequest is \"480m\", not \"800m\". Then 1 instance manager restarts",
			"Restart im-2 im-3 for CPU; later Restart im-1 for CPU: im-1; starting im-1"},
		"starting: pod that another setting restarted": {[]change{setCPU, setClass, hasClass, unready("bim")}, catalog.GuaranteedCPU,
			allNow + "3 instance managers restart one by one; backing image manager bim on node-1 is not Ready yet", "Restart im-1 im-2 im-3 for CPU; starting bim"},
		"corrected value: pod that could not start goes first": {
			[]change{setClass, setCPU, only("im-1", "im-2", "im-3"), hasClass, built(catalog.CPURequest, "4000m", "im-2"), unready("im-2")}, catalog.GuaranteedCPU,
			allNow + "3 instance managers restart one by one; instance manager im-2 on node-2 is not Ready yet", "Restart im-1 im-2* im-3 for CPU; starting im-2"},
		"component with the value is not Ready": {
			[]change{setClass, hasClass, unready("csi-attacher"), edit(func(c *catalog.Component) { c.Updated = 1 }, "csi-attacher")}, catalog.PriorityClass,
			"Restarting: 3 of 4 Deployment pods, 6 of 6 DaemonSet pods, 1 of 1 backing image manager, 3 of 3 instance managers; Deployment csi-attacher has 1 of 2 pods updated and available", ""},
		"applied stays when a pod is not Ready later": {[]change{setClass, rolled(catalog.PriorityClass, critical), hasClass, unready("im-1")}, catalog.PriorityClass, hasValue, ""},
		"nodes that are down or gone are not waited for": {
			[]change{set(catalog.InstanceManagerProbeTimeout, "20"), built(catalog.LivenessTimeout, "20", "im-1", "im-2", "im-3"), unready("im-1"), missing("im-2"), onNode("node-1", func(n *catalog.Node) { n.Ready = false }), func(f *Facts) { delete(f.Nodes, "node-2") }},
			catalog.InstanceManagerProbeTimeout, hasValue, ""},
		"unscheduled pod is waited for": {
			[]change{set(catalog.SystemManagedNodeSelector, "no:where"), built(catalog.NodeSelector, "no:where"), unready("bim"), edit(func(c *catalog.Component) { c.Node = "" }, "bim")},
			catalog.SystemManagedNodeSelector,
			"Restarting: 4 of 4 Deployment pods, 6 of 6 DaemonSet pods, 0 of 1 backing image manager; backing image manager bim is not Ready yet; excluded by the node selector: node-1, node-2, node-3",
			"starting bim"},
		"held until its time": {[]change{setCPU, hold("im-1", time.Minute), hold("im-2", 0)}, catalog.GuaranteedCPU,
			"Restarting: 2 instance managers restart one by one now; waiting: instance manager im-1 on node-1 was reverted; its cpuRequest is \"480m\", not \"800m\". Then 1 instance manager restarts",
			"Restart im-2* im-3 for CPU; later Restart im-1 for CPU: im-1"},
		"invalid value changes nothing": {[]change{set(catalog.GuaranteedCPU, "lots")}, catalog.GuaranteedCPU,
			`Invalid: not applied until the value is corrected: value "lots" must be a number from 0 to 40, or one for each data engine as {"v1":"12","v2":"12"}`, ""},
		"unset setting keeps what was installed": {[]change{built(catalog.PriorityClassName, "installed", "im-1")}, catalog.PriorityClass, "Applied: default; not set anywhere", ""},
		"default that the storage system's group sets": {
			[]change{set(catalog.PriorityClass, ""), built(catalog.PriorityClassName, "installed", "im-1")}, catalog.PriorityClass,
			allNow + "1 instance manager restarts; so far 4 of 4 Deployment pods, 6 of 6 DaemonSet pods, 1 of 1 backing image manager, 2 of 3 instance managers",
			"Restart im-1* for priority-class"},
		"removed after it was applied: default": {
			[]change{rolled(catalog.EngineImageProbePeriod, "20"), built(catalog.ProbePeriod, "20", "engine-image-ei-1")}, catalog.EngineImageProbePeriod,
			allNow + "1 DaemonSet rolls", "Update engine-image-ei-1* for probe-period"},
		"removed half-way: default": {[]change{underway(catalog.EngineImageProbePeriod), built(catalog.ProbePeriod, "20", "engine-image-ei-1")},
			catalog.EngineImageProbePeriod, allNow + "1 DaemonSet rolls", "Update engine-image-ei-1* for probe-period"},
		"removed before a component changed: no change": {
			[]change{func(f *Facts) { f.Reported[catalog.EngineImageProbePeriod] = Reported{} }, built(catalog.ProbePeriod, "20", "engine-image-ei-1")},
			catalog.EngineImageProbePeriod, "Applied: default; not set anywhere", ""},
		"two settings of one trait: first in the catalog decides": {
			[]change{addV2, only("v2-im-3"), set(catalog.DataEngineCPUMask, `{"v2":"0x7"}`), set(catalog.V2CPUMask, "0xf")}, catalog.V2CPUMask,
			"Applied: in effect; no component of this kind exists", "Restart v2-im-3* for data-engine-cpu-mask"},
		"data engine off: instance managers are removed": {[]change{addV2, set(catalog.V2DataEngine, "false"), attach}, catalog.V2DataEngine,
			allNow + "3 instance managers are removed", "Remove v2-im-1* v2-im-2 v2-im-3 for v2-data-engine"},
		"data engine off: stopped pod stays while a volume is attached": {
			[]change{attach, set(catalog.V1DataEngine, "false"), only("im-3"), edit(func(c *catalog.Component) { c.Ready, c.Stopped = false, true })}, catalog.V1DataEngine,
			"Waiting: will be applied " + detached + ". Then 1 instance manager is removed", "later Remove im-3 for v1-data-engine: pvc-a; starting im-3"},
		"data engine off: waits while another setting restarts the pod": {
			[]change{set(catalog.V1DataEngine, "false"), setCPU, attach, only("im-3")}, catalog.V1DataEngine,
			"Waiting: will be applied " + detached + ". Then 1 instance manager is removed", "Restart im-3* for CPU; later Remove im-3 for v1-data-engine: pvc-a"},
		"data engine off: missing pod is not waited for": {
			[]change{set(catalog.V1DataEngine, "false"), only("im-1"), missing("im-1")}, catalog.V1DataEngine, "Applied: in effect; no component of this kind exists", ""},
		"data engine on: needs an instance manager on every node": {
			[]change{addV2, rolled(catalog.V2DataEngine, "false"), onNode("node-3", func(n *catalog.Node) { n.DisabledV2 = true }), func(f *Facts) { f.Components = f.Components[:len(f.Components)-2] }},
			catalog.V2DataEngine,
			"Restarting: 1 of 2 instance managers; the storage system has not started an instance manager of the v2 data engine on node-2", ""},
		"data engine on: no instance manager where the storage system is down or the node is cordoned": {
			[]change{addV2, rolled(catalog.V2DataEngine, "false"), func(f *Facts) { f.Components = f.Components[:len(f.Components)-2] }, onNode("node-2", func(n *catalog.Node) { n.Cordoned = true }), onNode("node-3", func(n *catalog.Node) { n.StorageDown = true })},
			catalog.V2DataEngine, hasValue, ""},
		"no component has the setting": {[]change{set(catalog.ReplicaRebuildLimit, "7")}, catalog.ReplicaRebuildLimit, "Applied: in effect", ""},
	})
}

func TestHoldSaysWhenToPlanAgain(t *testing.T) {
	must.Equal(t, Make(fleet(set(catalog.GuaranteedCPU, "20"), hold("im-1", time.Minute), hold("im-2", time.Second))).After, time.Second)
}

// apply does all work that is due, as if every part of the cluster worked, and returns it.
func apply(t *testing.T, f *Facts) []string {
	t.Helper()
	var done []string
	for range 50 {
		w, due := Make(*f).Next()
		if !due {
			return done
		}
		done = append(done, textOfWork(w))
		for trait, want := range w.Wants {
			built(trait, want.Text, w.Component.Name)(f)
		}
	}
	t.Fatalf("no end: %v", done)
	return nil
}

func TestWorkIsDoneInOrderAndAppliedWhenReady(t *testing.T) {
	f := fleet(set(catalog.PriorityClass, critical), set(catalog.GuaranteedCPU, "20"))
	must.Equal(t, apply(t, &f), []string{
		"Update csi-attacher for priority-class", "Update csi-provisioner for priority-class",
		"Update engine-image-ei-1 for priority-class", "Update longhorn-csi-plugin for priority-class", "Restart bim for priority-class",
		"Restart im-1 for priority-class, CPU", "Restart im-2 for priority-class, CPU", "Restart im-3 for priority-class, CPU",
	}, "work")
	edit(func(c *catalog.Component) { c.Ready, c.Updated = false, 0 })(&f)
	for i := range f.Components {
		s, _ := Make(f).Setting(catalog.PriorityClass)
		must.True(t, !s.Applied, "applied with %d of %d components Ready", i, len(f.Components))
		f.Components[i].Ready, f.Components[i].Updated = true, f.Components[i].Total
	}
	for _, s := range Make(f).Settings {
		must.Check(t, s.Applied, "%s is not applied: %s", s.Name, s.Message)
	}
}

func TestRegressionWaitingSettingsNameTheirBlockers(t *testing.T) {
	for _, d := range catalog.DangerZone() {
		value, tested := map[catalog.Name]string{
			catalog.StorageNetwork: "kube-system/one", catalog.EndpointNetworkForRWX: "kube-system/one", catalog.StorageNetworkForRWX: "true",
			catalog.TaintToleration: "a=b:NoSchedule", catalog.SystemManagedNodeSelector: "a:b", catalog.PriorityClass: critical,
			catalog.GuaranteedCPU: "20", catalog.V2GuaranteedCPU: "2000", catalog.InstanceManagerProbeTimeout: "20", catalog.V1DataEngine: "false", catalog.V2DataEngine: "false",
			catalog.DataEngineCPUMask: `{"v2":"0x7"}`, catalog.DataEngineMemorySize: `{"v2":"4096"}`, catalog.DataEngineHugepages: `{"v2":"false"}`,
			catalog.DataEngineInterrupts: `{"v2":"true"}`, catalog.V2CPUMask: "0x7", catalog.V2HugepageLimit: "4096", catalog.LogPath: "/var/log/longhorn",
			catalog.DataEngineCPUCores: "2", catalog.DataEngineCPUIsolation: "true", catalog.DataEngineLargePool: "4096", catalog.DataEngineSmallPool: "16384",
		}[d.Name]
		if !tested {
			must.Equal(t, d.Gate, catalog.AtOnce, "%s is not tested", d.Name)
			continue
		}
		f := fleet(addV2, set(d.Name, value), edit(func(c *catalog.Component) { c.Uses = []string{"pvc-a-e-0"} }))
		for node := range f.Nodes {
			onNode(node, func(n *catalog.Node) { n.Labels = map[string]string{"a": "b"} })(&f)
		}
		if d.Name == catalog.StorageNetworkForRWX {
			set(catalog.StorageNetwork, "kube-system/one")(&f)
		}
		f.Rollout.Volumes = []rwx.Volume{{Name: "pvc-a", Attached: true, Shared: true, Engine: catalog.EngineV1}, {Name: "pvc-a-of-v2", Attached: true, Engine: catalog.EngineV2}}
		s, _ := Make(f).Setting(d.Name)
		must.Check(t, !s.Applied && strings.Contains(s.Message, "pvc-a") && len(s.Blockers) != 0,
			"%s: applied %t, %q, blockers %v", d.Name, s.Applied, s.Message, s.Blockers)
	}
}

func TestDescribe(t *testing.T) {
	const (
		detached  = "will be applied when these volumes are detached: "
		volumeA   = "pvc-a (node-1, pod default/web-0)"
		remove    = " opts out by " + rwx.OptOutAnnotation + ": remove the annotation"
		shareName = "share-manager-pvc-c"
	)
	setClass, noClass := set(catalog.PriorityClass, critical), set(catalog.PriorityClass, "")
	classOf := func(name string) change { return built(catalog.PriorityClassName, critical, name) }
	for name, test := range map[string]struct {
		changes []change
		text    string
	}{
		"no work": {nil, ""},
		"several opt out": {[]change{setClass, only("im-1", "im-2", "im-3"), optOut("im-1", "im-2")},
			"1 instance manager restarts now; waiting: instance manager im-1 on node-1" + remove + ", and 1 more. Then 2 instance managers restart one by one"},
		"volumes and an opt-out": {[]change{setClass, attach, only("im-1", "im-2"), optOut("im-1")},
			detached + volumeA + "; also waiting: instance manager im-1 on node-1" + remove + ". Then 2 instance managers restart one by one"},
		// Share managers in use get the value when they start the next time.
		"share manager with an older value": {[]change{share("pvc-a", critical), underway(catalog.PriorityClass), noClass}, detached + "pvc-a (node-1)"},
		"share managers wait for their own volumes": {
			[]change{attach, share("pvc-c", critical), share("pvc-b", critical), share("pvc-d", ""), noClass}, detached + "pvc-b (node-1), pvc-c (node-1)"},
		"share manager waits, instance manager restarts": {
			[]change{share("pvc-c", critical), classOf("im-3"), noClass}, "1 instance manager restarts now; the rest when these volumes are detached: pvc-c (node-1)"},
		"share manager and instance manager wait": {
			[]change{attach, share("pvc-c", critical), classOf("im-1"), noClass}, detached + volumeA + ", pvc-c (node-1). Then 1 instance manager restarts"},
		"share manager in use that opts out": {[]change{attach, share("pvc-c", critical), optOut(shareName), noClass}, detached + "pvc-c (node-1)"},
		"idle share manager that opts out": {
			[]change{share("pvc-c", critical), optOut(shareName), uses(shareName), noClass}, "waiting: share manager share-manager-pvc-c on node-1" + remove + ". Then 1 share manager restarts"},
		"share manager of an unknown volume": {
			[]change{attach, share("pvc-c", critical), uses(shareName, "pvc-x"), func(f *Facts) { f.Rollout.Volumes = f.Rollout.Volumes[:1] }, noClass},
			"waiting: share manager share-manager-pvc-c on node-1 runs 1 instance: pvc-x"},
	} {
		t.Run(name, func(t *testing.T) {
			p := Make(fleet(test.changes...))
			must.Equal(t, p.describe(catalog.PriorityClass), test.text)
			must.Equal(t, p.Waits(catalog.PriorityClass), test.text != "", "waits")
		})
	}
}

func TestShareManagerWaitsForItsOwnVolume(t *testing.T) {
	f := fleet(attach, share("pvc-c", critical), share("pvc-b", critical), optOut("share-manager-pvc-b"), set(catalog.PriorityClass, ""))
	check := func(want string) {
		s, _ := Make(f).Setting(catalog.PriorityClass)
		must.Equal(t, namesOf(s.Blockers), want, "waits for")
	}
	check("pvc-b, pvc-c")
	must.Equal(t, textOf(Make(f)), "", "plan")
	built(catalog.PriorityClassName, critical, "im-2")(&f) // an instance manager in use waits for all volumes
	check("pvc-a, pvc-b, pvc-c")
}

func TestOnlyNetworkSettingsWaitForRWXVolumes(t *testing.T) {
	const (
		two     = "kube-system/two"
		waiting = "Waiting: 1 RWX volume attached: pvc-a"
		unused  = "Applied: no effect: endpoint-network-for-rwx-volume takes precedence"
	)
	older := set(catalog.StorageNetworkForRWX, "true")
	for name, test := range map[string]struct {
		changes         []change
		older, endpoint string
	}{
		"newer setting": {[]change{set(catalog.EndpointNetworkForRWX, two)}, unused, waiting},
		"older setting": {[]change{older}, waiting, "Applied: in effect"},
		"both":          {[]change{older, set(catalog.EndpointNetworkForRWX, two)}, unused, waiting},
		"newer setting was removed while clients moved": {
			[]change{set(catalog.EndpointNetworkForRWX, ""), rolled(catalog.EndpointNetworkForRWX, two), older}, waiting, waiting},
	} {
		t.Run(name, func(t *testing.T) {
			f := fleet(append(test.changes, set(catalog.StorageNetwork, "kube-system/one"))...)
			f.Rollout.Volumes = []rwx.Volume{{Name: "pvc-a", Attached: true, Shared: true, Engine: catalog.EngineV1, Nodes: []string{"node-1"}}}
			p := Make(f)
			older, endpoint := statusOf(p, catalog.StorageNetworkForRWX), statusOf(p, catalog.EndpointNetworkForRWX)
			must.Check(t, older == test.older && endpoint == test.endpoint, "older %s\nnewer %s", older, endpoint)
		})
	}
}
