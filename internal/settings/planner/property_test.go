package planner

import (
	"flag"
	"maps"
	"slices"
	"strconv"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"pgregory.net/rapid"

	"github.com/fairlead-io/fairlead/internal/settings/catalog"
	"github.com/fairlead-io/fairlead/internal/testkit/must"
)

// The model is a small cluster whose parts act in random order. Users set and remove values, also
// in the wrong group. Volumes attach and detach, pods crash and restart late, nodes change. The storage
// system creates pods by its own values and rewrites templates. Fairlead's controller decides on
// stale views, crashes between writes, and loses its memory. Checked at every step:
//
//	4  a setting change never restarts a pod that serves an attached volume
//	5  one setting's gate never authorises another's restarts
//	6  applied only after the roll-out is complete
//	7  any crash at any step resumes, to the end, and nothing is restarted twice
//
// The checks use the state of the model, not the code of the plan.

// planValues are the values that users set: valid ones, and an invalid one.
var planValues = map[catalog.Name][]string{
	catalog.TaintToleration:             {"", tolerant, tolerant + ";" + evictable, nowhere, "a=b=c:NoSchedule"},
	catalog.SystemManagedNodeSelector:   {"", zone, zone, "zone:b", "zone"},
	catalog.PriorityClass:               {"", "critical", "installed", "not a name"},
	catalog.StorageNetwork:              {"", "kube-system/a", "kube-system/b", "kube-system/"},
	catalog.StorageNetworkForRWX:        {"true", "false"},
	catalog.EndpointNetworkForRWX:       {"", "kube-system/b"},
	catalog.GuaranteedCPU:               {"12", "20", `{"v1":"5","v2":"30"}`, "lots"},
	catalog.V2GuaranteedCPU:             {"1250", "2000", "1"},
	catalog.V1DataEngine:                {"true", "false", "maybe"},
	catalog.V2DataEngine:                {"true", "false"},
	catalog.DataEngineCPUMask:           {`{"v2":"0x3"}`, `{"v2":"0xf"}`, "{}"},
	catalog.V2CPUMask:                   {"0x1", "0x7"},
	catalog.DataEngineCPUCores:          {`{"v2":"0"}`, `{"v2":"2"}`},
	catalog.DataEngineMemorySize:        {`{"v2":"2048"}`, `{"v2":"4096"}`, "3"},
	catalog.InstanceManagerProbeTimeout: {"10", "20"},
	catalog.EngineImageProbePeriod:      {"5", "10"},
	catalog.CSIResources:                {"", `{"csi-attacher":{"requests":{"cpu":"10m"}}}`, "{"},
	catalog.LogPath:                     {"/var/lib/longhorn/logs/", "/var/log/longhorn"},
	catalog.ReplicaRebuildLimit:         {"5", "1"},
}

// mayApply is the table of gates: whether the setting may be applied to a component now.
func (m *fleetModel) mayApply(name catalog.Name, c catalog.Component) bool {
	idle := len(m.uses(c)) == 0
	switch name { // a pod that does not run serves nothing, but its data engine may
	case catalog.V1DataEngine:
		return c.Engine == catalog.EngineV1 && m.attachedOf(catalog.EngineV1) == 0 && idle
	case catalog.V2DataEngine:
		return c.Engine == catalog.EngineV2 && m.attachedOf(catalog.EngineV2) == 0 && idle
	}
	if c.Stopped {
		return true
	}
	switch name {
	case catalog.TaintToleration, catalog.SystemManagedNodeSelector, catalog.PriorityClass, catalog.StorageNetwork:
		return idle && (c.Kind == catalog.InstanceManager || m.attachedOf("") == 0)
	case catalog.GuaranteedCPU, catalog.V2GuaranteedCPU, catalog.InstanceManagerProbeTimeout, catalog.DataEngineCPUMask, catalog.DataEngineCPUCores, catalog.V2CPUMask, catalog.DataEngineMemorySize, catalog.LogPath:
		return c.Kind == catalog.InstanceManager && idle
	case catalog.EngineImageProbePeriod, catalog.CSIResources:
		return !isPod(c)
	}
	return false
}

func TestPlanInvariants(t *testing.T) {
	names := slices.Sorted(maps.Keys(planValues))
	fewer(t, 60) // each step makes several plans
	rapid.Check(t, func(t *rapid.T) {
		m := newFleet(rapid.Bool().Draw(t, "v2"))
		if rapid.Bool().Draw(t, "has the newer CPU setting") {
			m.system[catalog.GuaranteedCPU] = "12"
		}
		if rapid.IntRange(0, 3).Draw(t, "without v2 on node-3") == 3 {
			m.changeNode("node-3", func(n *catalog.Node) { n.DisabledV2 = true })
		}
		pod := func() *fleetPod { return m.pods[rapid.SampledFrom(slices.Sorted(maps.Keys(m.pods))).Draw(t, "pod")] }
		template := func() *fleetTemplate {
			return m.templates[rapid.SampledFrom(slices.Sorted(maps.Keys(m.templates))).Draw(t, "template")]
		}
		volume := func() string { return rapid.SampledFrom(slices.Sorted(maps.Keys(m.volumes))).Draw(t, "volume") }
		node := func() string { return rapid.SampledFrom(slices.Sorted(maps.Keys(m.nodes))).Draw(t, "node") }
		value := func(names ...catalog.Name) (catalog.Name, string) {
			name := rapid.SampledFrom(names).Draw(t, "setting")
			return name, rapid.SampledFrom(planValues[name]).Draw(t, "value")
		}
		t.Repeat(map[string]func(*rapid.T){
			"": func(t *rapid.T) {
				m.check(t)
				if m.views = append(m.views, m.view()); len(m.views) > 6 {
					m.views = m.views[1:]
				}
			},
			"set":                    func(*rapid.T) { m.set(value(names...)) },
			"set a second time":      func(*rapid.T) { m.set(value(names...)) },
			"set in the wrong group": func(*rapid.T) { m.setOwn(value(names...)) },
			"set in Fairlead's group": func(*rapid.T) {
				m.setOwn(value(catalog.CSIResources, catalog.EngineImageProbePeriod, catalog.StorageNetworkForRWX, catalog.EndpointNetworkForRWX))
			},
			"remove": func(t *rapid.T) {
				if len(m.own) > 0 {
					delete(m.own, rapid.SampledFrom(slices.Sorted(maps.Keys(m.own))).Draw(t, "setting"))
					m.changes++
				}
			},
			"attach":                       func(*rapid.T) { m.attach(volume(), node()) },
			"detach":                       func(*rapid.T) { m.volumes[volume()].attachedTo = "" },
			"copy":                         func(*rapid.T) { m.copying = !m.copying },
			"kubernetes":                   func(*rapid.T) { m.progress(pod().Name) },
			"template's own controller":    func(*rapid.T) { m.roll(template()) },
			"network of RWX volumes":       func(*rapid.T) { m.rollNetwork() },
			"storage system":               func(*rapid.T) { m.runEngines() },
			"pod crashes":                  func(*rapid.T) { m.lose(pod()) },
			"pod is not Ready for a while": func(*rapid.T) { pod().setReady(m, false) },
			"pods of a template stop":      func(*rapid.T) { template().stop() },
			"opt out":                      func(*rapid.T) { p := pod(); p.OptOut = !p.OptOut },
			"storage system writes a template": func(*rapid.T) {
				x := template()
				x.Built, x.Version, x.revision = m.installed(x.Component), m.next(), x.revision+1
			},
			"node": func(t *rapid.T) {
				m.changeNode(node(), disturb(rapid.SampledFrom(disturbances).Draw(t, "what")))
			},
			"class appears or disappears":   func(*rapid.T) { m.classGone = !m.classGone },
			"network appears or disappears": func(*rapid.T) { m.networkGone = !m.networkGone },
			// Random values seldom name the missing class.
			"set a class that may be missing": func(t *rapid.T) {
				m.set(catalog.PriorityClass, "critical")
				m.classGone = rapid.Bool().Draw(t, "gone")
			},
			"storage system upgrade removes a setting": func(*rapid.T) {
				name, _ := value(catalog.V2GuaranteedCPU, catalog.V2CPUMask)
				delete(m.system, name)
				m.changes++
			},
			"pass time": func(*rapid.T) { m.now = m.now.Add(4 * time.Second) },
			"fairlead":  func(t *rapid.T) { m.act(t, m.view(), 0, nil) },
			"fairlead on a stale cache": func(t *rapid.T) {
				if len(m.views) > 0 {
					m.act(t, m.views[rapid.IntRange(0, len(m.views)-1).Draw(t, "view")], 0, nil)
				}
			},
			"fairlead crashes": func(t *rapid.T) { m.act(t, m.view(), rapid.IntRange(1, 3).Draw(t, "after write"), nil) },
			"fairlead, while a pod progresses": func(t *rapid.T) {
				p, v, n := pod().Name, volume(), node()
				m.act(t, m.view(), 0, func() { m.progress(p); m.attach(v, n) })
			},
			// Random steps seldom complete a roll-out without these.
			"everything works for a while": func(t *rapid.T) {
				for range rapid.IntRange(1, 12).Draw(t, "rounds") {
					m.runRound(t)
				}
			},
			"dedicated nodes": func(t *rapid.T) {
				for _, name := range slices.Sorted(maps.Keys(m.nodes)) {
					dedicated := rapid.Bool().Draw(t, "dedicated")
					m.changeNode(name, func(n *catalog.Node) {
						n.Labels, n.Taints = nil, nil
						if dedicated {
							n.Labels, n.Taints = map[string]string{"zone": "a"}, []corev1.Taint{taints["NoSchedule"]}
						}
					})
				}
				m.set(catalog.SystemManagedNodeSelector, rapid.SampledFrom([]string{"", zone}).Draw(t, "selector"))
				m.set(catalog.TaintToleration, rapid.SampledFrom([]string{"", tolerant}).Draw(t, "tolerations"))
			},
			"malformed class": func(*rapid.T) { m.set(catalog.PriorityClass, "not a name") },
			"template is stopped, all volumes are attached": func(*rapid.T) {
				template().stop()
				for _, name := range slices.Sorted(maps.Keys(m.volumes)) {
					m.attach(name, "node-1")
				}
			},
		})
		m.mustFinish(t)
	})
}

// fewer divides the number of runs, for the rest of the test.
func fewer(t *testing.T, times int) {
	checks := flag.Lookup("rapid.checks").Value.String()
	n, err := strconv.Atoi(checks)
	must.Do(t, err)
	must.Do(t, flag.Set("rapid.checks", strconv.Itoa(max(1, n/times))))
	t.Cleanup(func() { must.Do(t, flag.Set("rapid.checks", checks)) })
}

// runRound lets every part act once.
func (m *fleetModel) runRound(t *rapid.T) {
	m.now = m.now.Add(4 * time.Second)
	m.act(t, m.view(), 0, nil)
	for _, name := range slices.Sorted(maps.Keys(m.pods)) {
		m.progress(name)
	}
	for _, x := range m.templates {
		m.roll(x)
	}
	m.runEngines()
	m.rollNetwork()
	m.check(t)
}

// mustFinish ends all disturbances, corrects values, and expects that everything is applied in the end.
func (m *fleetModel) mustFinish(t *rapid.T) {
	m.copying, m.classGone, m.networkGone = false, false, false
	for _, v := range m.volumes {
		v.attachedTo = ""
	}
	for _, p := range m.pods {
		p.OptOut = false
	}
	for _, name := range slices.Sorted(maps.Keys(m.nodes)) {
		m.changeNode(name, nodeAtRest)
	}
	if rapid.Bool().Draw(t, "the selector excludes node-2 for good") {
		m.changeNode("node-2", disturb("label"))
	}
	for name := range planValues {
		d, _ := catalog.Lookup(string(name))
		if m.isMisplaced(d) {
			delete(m.own, name)
		}
		for _, where := range []map[catalog.Name]string{m.own, m.system} {
			if text, set := where[name]; set && (d.Parse(text) != nil || text == nowhere || text == "zone:b") {
				where[name] = d.Default
			}
		}
	}
	m.changes++
	for range 150 {
		m.runRound(t)
		_, due := Make(m.facts()).Next()
		if p := Make(m.facts()); !due && !slices.ContainsFunc(p.Settings, func(s SettingPlan) bool { return !s.Applied || !m.reported[s.Name].Applied }) {
			return
		}
	}
	p := Make(m.facts())
	t.Fatalf("invariant 7: stuck at %s: %+v", textOf(p), p.Settings)
}
