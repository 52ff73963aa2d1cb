package planner

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/fairlead-io/fairlead/internal/settings/catalog"
	"github.com/fairlead-io/fairlead/internal/settings/rollout"
)

// Make returns the plan: the work that the values in effect require, and what each part waits
// for. The cost is linear in volumes and components.
//
// Source: proposal "Support non-disruptive volume-related setting updates". Each setting waits
// for its own gate only, and its gate opens nothing for other settings. In Longhorn 1.7, the sync
// of one network setting deletes instance-manager pods for another setting that waits.
func Make(f Facts) Plan { return newMaker(f).make() }

// Foresee returns the plan for people. Make tells a controller the next step of the network for RWX volumes, and the first
// steps disturb no workload; Foresee tells what follows these steps.
func Foresee(f Facts) Plan {
	m := newMaker(f)
	if step := &m.plan.Network; !step.Applied && step.Phase != rollout.PhaseInvalid {
		o := rollout.Foresee(m.Rollout)
		m.plan.Outlook, step.Blockers = o, o.Blockers
		if o.Waits() {
			step.Action, step.Phase, step.Message = rollout.Nothing, rollout.PhaseWaiting, o.Reason()
		} else {
			step.Action, step.Message = rollout.RestartClients, o.Message()
		}
	}
	return m.make()
}

func (m *maker) make() Plan {
	for _, c := range sortComponents(m.Components) {
		m.visit(c)
	}
	m.addMissingEngines()
	p := m.plan
	for i := range m.tracks {
		p.Settings = append(p.Settings, m.tracks[i].settled(m))
	}
	for i := range p.Settings {
		m.addNetwork(&p.Settings[i])
	}
	return p
}

// maker builds the plan in one pass over the components.
type maker struct {
	Facts
	plan    Plan
	demands []demand
	tracks  []track
	// index of each setting in tracks
	index map[catalog.Name]int
	// attached volumes, which close gates
	attached []catalog.Blocker
	byEngine map[string][]catalog.Blocker
	byVolume map[string]int // index in attached
	// windowOpensIn is 0 while a maintenance window is open, or none is configured.
	windowOpensIn time.Duration
	// absent shares one slice of blockers among all components that miss the same object.
	absent map[string][]catalog.Blocker
	// excluded are the nodes that the node selector does not match.
	excluded map[string]bool
}

// track collects the state of one setting.
type track struct {
	catalog.Definition
	value    catalog.Value
	invalid  error
	demanded bool // the value applies to components
	pending  bool // a component does not have the value
	now      bool // a component may be changed now
	closed   bool // a gate is closed
	rolling  bool // the value has not been seen rolled out
	excluded bool // the node selector excludes the node of a component
	blockers []catalog.Blocker
	listed   map[*catalog.Blocker]bool // by the first element of a shared slice
	progress []KindProgress
}

func newMaker(f Facts) *maker {
	m := &maker{
		Facts: f, demands: f.allDemands(), index: map[catalog.Name]int{}, byEngine: map[string][]catalog.Blocker{}, byVolume: map[string]int{},
		absent: map[string][]catalog.Blocker{}, excluded: map[string]bool{}, windowOpensIn: f.Rollout.Windows.Closed(f.Now),
	}
	for _, d := range catalog.All() {
		if !d.DangerZone {
			continue
		}
		t := track{Definition: d, value: f.Values[d.Name]}
		normal, err := f.Values.Normal(d)
		t.invalid = err
		t.rolling = !f.Reported[d.Name].rolledOut(d, normal)
		m.index[d.Name] = len(m.tracks)
		m.tracks = append(m.tracks, t)
	}
	for _, s := range m.demands {
		m.tracks[m.index[s.Name]].demanded = true
	}
	for _, v := range AttachedVolumes(f.Rollout.Volumes) {
		m.byVolume[v.Name] = len(m.attached)
		m.attached = append(m.attached, v)
	}
	m.Rollout.Desired, m.Rollout.Invalid = catalog.SharedVolumeNetwork(f.Values, f.Names)
	m.plan.Network = rollout.Next(m.Rollout)
	m.plan.After = m.plan.Network.After
	return m
}

// visit compares the traits of a component with the settings.
func (m *maker) visit(c catalog.Component) {
	var open Work
	var closed []Work // one for each gate
	decided := map[catalog.Trait]bool{}
	starting := false
	podBlockers := sync.OnceValue(func() []catalog.Blocker { return m.podBlockers(c) })
	excluded := m.isExcluded(c)
	for _, s := range m.demands {
		built, exists := c.Built[s.Trait]
		if !exists && !c.Missing || decided[s.Trait] {
			continue
		}
		want, applies := s.want(c, m.Nodes)
		if !applies {
			continue
		}
		decided[s.Trait] = true
		if s.invalid || c.Missing && s.Trait == catalog.DataEngine && want == "false" { // removed already
			continue
		}
		t := &m.tracks[m.index[s.Name]]
		if excluded && s.Trait != catalog.DataEngine {
			t.excluded = true
			continue
		}
		done, total := rolledOutPods(c)
		awaited := t.rolling && m.nodeIsUp(c) && !isRunning(c)
		starting = starting || awaited
		switch {
		case built == want && isRunning(c):
			t.count(c.Kind, total, total)
		case c.Missing, built == want:
			t.count(c.Kind, done, total)
			if awaited {
				t.pending = true
				t.block(m.notReady(c))
			}
		default:
			t.count(c.Kind, 0, total)
			t.pending = true
			blockers, window := m.gate(s, want, c, podBlockers), m.closedWindow(s, c)
			t.block(window)
			if len(blockers) == 0 {
				blockers, window = window, nil
			}
			if len(blockers) > 0 {
				t.block(blockers)
				t.closed = true
				closed = addClosed(closed, Work{
					Component: c, Settings: []catalog.Name{s.Name}, Wants: map[catalog.Trait]Want{s.Trait: {s.Name, want}}, Blockers: blockers, Window: window,
				})
			} else {
				t.now = true
				open.add(s, want)
			}
		}
	}
	m.assign(c, open, closed)
	// Share managers start and end with their volumes.
	if isPod(c) && c.Kind != catalog.ShareManager && m.nodeIsUp(c) && (starting || c.Terminating) {
		m.plan.Starting = append(m.plan.Starting, m.notReady(c)...)
	}
}

// addClosed merges work on one component with the same blockers.
func addClosed(works []Work, w Work) []Work {
	for i := range works {
		if &works[i].Blockers[0] == &w.Blockers[0] {
			works[i].Settings = append(works[i].Settings, w.Settings...)
			maps.Copy(works[i].Wants, w.Wants)
			return works
		}
	}
	return append(works, w)
}

// assign adds the work on a component to the plan. A pod restarts with all values, a template
// gets only those whose gates are open.
func (m *maker) assign(c catalog.Component, open Work, closed []Work) {
	if len(open.Settings) > 0 {
		open.Component, open.Action = c, action(c, open.Wants)
		m.plan.Now = append(m.plan.Now, open)
	}
	for _, w := range closed {
		w.Action = action(c, w.Wants)
		switch {
		case w.Action == RestartComponent && len(open.Settings) > 0: // the restart applies all values
		case endsWithVolume(c):
			m.plan.Ending = append(m.plan.Ending, w)
		default:
			m.plan.Later = append(m.plan.Later, w)
		}
	}
}

// endsWithVolume: a share manager in use ends when its volume is detached. The next one has the values.
func endsWithVolume(c catalog.Component) bool {
	return c.Kind == catalog.ShareManager && len(c.Uses) > 0
}

func action(c catalog.Component, wants map[catalog.Trait]Want) WorkAction {
	if !isPod(c) {
		return UpdateComponent
	}
	if wants[catalog.DataEngine].Text == "false" {
		return RemoveComponent
	}
	return RestartComponent
}

func (w *Work) add(s demand, want string) {
	if w.Wants == nil {
		w.Wants = map[catalog.Trait]Want{}
	}
	w.Settings = append(w.Settings, s.Name)
	w.Wants[s.Trait] = Want{s.Name, want}
}

// addMissingEngines counts the instance managers that the storage system has not created for an
// enabled data engine. On a cordoned node it creates none.
func (m *maker) addMissingEngines() {
	for _, s := range m.demands {
		if s.Trait != catalog.DataEngine || s.normal != "true" || s.invalid {
			continue
		}
		t := &m.tracks[m.index[s.Name]]
		engine := EngineOf(s.Name)
		has := map[string]bool{}
		for _, c := range m.Components {
			if c.Kind == catalog.InstanceManager && c.Engine == engine {
				has[c.Node] = true
			}
		}
		for _, name := range slices.Sorted(maps.Keys(m.Nodes)) {
			node := m.Nodes[name]
			if !node.Storage || !node.Ready || node.StorageDown || node.Cordoned || has[name] || engine == catalog.EngineV2 && node.DisabledV2 || m.excluded[name] {
				continue
			}
			t.count(catalog.InstanceManager, 0, 1)
			if t.rolling {
				t.pending = true
				t.blockers = append(t.blockers, catalog.Blocker{Kind: catalog.BlockedByComponent, Name: name, Nodes: []string{name},
					Message: fmt.Sprintf("the storage system has not started an instance manager of the %s data engine on %s", engine, name)})
			}
		}
	}
}

// EngineOf returns the data engine of a setting named v2-... or other.
func EngineOf(name catalog.Name) string {
	if strings.HasPrefix(string(name), "v2-") {
		return catalog.EngineV2
	}
	return catalog.EngineV1
}

// order of work: first the components that serve no volumes.
var order = map[catalog.ComponentKind]int{catalog.Deployment: 0, catalog.DaemonSetComponent: 1, catalog.BackingImageManager: 2, catalog.ShareManager: 3, catalog.InstanceManager: 4}

func sortComponents(components []catalog.Component) []catalog.Component {
	sorted := slices.Clone(components)
	slices.SortStableFunc(sorted, func(a, b catalog.Component) int {
		return cmp.Or(order[a.Kind]-order[b.Kind], strings.Compare(a.Node, b.Node), strings.Compare(a.Name, b.Name))
	})
	return sorted
}

func isPod(c catalog.Component) bool {
	return c.Kind != catalog.Deployment && c.Kind != catalog.DaemonSetComponent
}

// nodeIsUp reports whether a pod can become Ready without the user: its node is up for Kubernetes
// and the storage system, and accepts the pod if it is missing. An unscheduled pod counts as well.
func (m *maker) nodeIsUp(c catalog.Component) bool {
	node := m.Nodes[c.Node]
	return !isPod(c) || c.Node == "" || node.Ready && !node.StorageDown && !(c.Missing && refusalOf(node, m.requestOf(c)) != nil)
}

// isRunning reports whether a component runs. A DaemonSet that matches no node does not.
func isRunning(c catalog.Component) bool {
	return c.Ready && !c.Terminating && !c.Missing && !(c.Kind == catalog.DaemonSetComponent && c.Total == 0)
}

// rolledOutPods counts the pods of a component that are rolled out.
func rolledOutPods(c catalog.Component) (done, total int) {
	if isPod(c) {
		return 0, 1
	}
	if c.Ready {
		return c.Total, c.Total
	}
	return min(c.Updated, max(0, c.Total-1)), c.Total
}
