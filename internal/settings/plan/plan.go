package plan

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/fairlead-io/fairlead/internal/settings/catalog"
	"github.com/fairlead-io/fairlead/internal/settings/rollout"
)

// Make returns the plan: what the values in force ask of the cluster, what of
// it may be done now, and what the rest waits for. It is linear in volumes and components.
//
// Source: proposal "Support non-disruptive volume-related setting updates". A
// setting is held back by its own gate only, and its gate opens nothing for
// another (in Longhorn 1.7 the sync of one network setting deletes
// instance-manager pods for another that waits). What may be done to one pod is
// done at once for all settings.
func Make(f Facts) Plan {
	m := newMaker(f)
	for _, c := range inOrder(f.Components) {
		m.visit(c)
	}
	m.enginesToCome()
	p := m.plan
	for i := range m.tracks {
		p.Settings = append(p.Settings, m.tracks[i].settled(m))
	}
	for i := range p.Settings {
		m.addNetwork(&p.Settings[i])
	}
	return p
}

// maker gathers the plan in one pass over the components.
type maker struct {
	Facts
	plan   Plan
	asking []asking
	tracks []track
	// index of the track of each setting
	index map[catalog.Name]int
	// what the gates are closed by
	attached   []catalog.Blocker
	byEngine   map[string][]catalog.Blocker
	byVolume   map[string]int // index in attached
	networkErr error
	// comeback of the pod that is being looked at
	comeback comeback
	// absent keeps one slice of blockers for all components that lack the same.
	absent map[string][]catalog.Blocker
	// leftOut are the nodes that the node selector in force does not want.
	leftOut map[string]bool
}

// track is what is found out of one setting on the way.
type track struct {
	catalog.Definition
	value    catalog.Value
	invalid  error
	asks     bool // of components, to be built with it
	pending  bool // one is not yet
	now      bool // and may be changed
	closed   bool // a gate is
	rolling  bool // not yet seen rolled out
	leftOut  bool // one stays as it is, on a node that the node selector does not want
	blockers []catalog.Blocker
	listed   map[*catalog.Blocker]bool // by the first of those that many share
	progress []KindProgress
}

func newMaker(f Facts) *maker {
	m := &maker{
		Facts: f, asking: f.allAsking(), index: map[catalog.Name]int{}, byEngine: map[string][]catalog.Blocker{}, byVolume: map[string]int{},
		absent: map[string][]catalog.Blocker{}, leftOut: map[string]bool{},
	}
	for _, d := range catalog.All() {
		if !d.DangerZone {
			continue
		}
		t := track{Definition: d, value: f.Values[d.Name]}
		normal, err := f.Values.Normal(d)
		t.invalid = err
		t.rolling = !f.Told[d.Name].rolledOut(d, normal)
		m.index[d.Name] = len(m.tracks)
		m.tracks = append(m.tracks, t)
	}
	for _, s := range m.asking {
		m.tracks[m.index[s.Name]].asks = true
	}
	for _, v := range AttachedVolumes(f.Volumes) {
		m.byVolume[v.Name] = len(m.attached)
		m.attached = append(m.attached, v)
	}
	m.Rollout.Desired, m.networkErr = catalog.SharedVolumeNetwork(f.Values, f.Profile)
	m.Rollout.Networks = m.Existing.Networks
	if m.networkErr == nil {
		m.plan.Network = rollout.Next(m.Rollout)
		m.plan.After = m.plan.Network.After
	}
	return m
}

// visit compares what a component is built with to what is wanted.
func (m *maker) visit(c catalog.Component) {
	var open Work
	var closed []Work // each with the gate of its own setting
	decided := map[catalog.Trait]bool{}
	starting := false
	m.comeback = comeback{}
	leftOut := m.isLeftOut(c)
	for _, s := range m.asking {
		built, exists := c.Built[s.Trait]
		if !exists && !c.Missing || decided[s.Trait] {
			continue
		}
		want, concerns := s.asks(c, m.Nodes)
		if !concerns {
			continue
		}
		decided[s.Trait] = true
		if s.unclear || c.Missing && s.Trait == catalog.DataEngine && want == "false" { // the pod is going away
			continue
		}
		t := &m.tracks[m.index[s.Name]]
		if leftOut && s.Trait != catalog.DataEngine {
			t.leftOut = true
			continue
		}
		done, total := partOf(c)
		waited := t.rolling && m.nodeIsUp(c) && !back(c)
		starting = starting || waited
		switch {
		case built == want && back(c):
			t.count(c.Kind, total, total)
		case c.Missing, built == want:
			t.count(c.Kind, done, total)
			if waited {
				t.pending = true
				t.block(m.notReady(c))
			}
		default:
			t.count(c.Kind, 0, total)
			t.pending = true
			if blockers := m.gate(s, want, c); len(blockers) > 0 {
				t.block(blockers)
				t.closed = true
				closed = addClosed(closed, Work{
					Component: c, Settings: []catalog.Name{s.Name}, Wants: map[catalog.Trait]Want{s.Trait: {s.Name, want}}, Blockers: blockers,
				})
			} else {
				t.now = true
				open.add(s, want)
			}
		}
	}
	m.place(c, open, closed)
	// Share managers come and go with their volumes.
	if isPod(c) && c.Kind != catalog.ShareManager && m.nodeIsUp(c) && (starting || c.Terminating) {
		m.plan.Starting = append(m.plan.Starting, m.notReady(c)...)
	}
}

// addClosed joins works of one component that wait for the same.
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

// place puts work on a component where it belongs. A pod is restarted for all
// settings whose gates are open; of a template only their part is written.
func (m *maker) place(c catalog.Component, open Work, closed []Work) {
	if len(open.Settings) > 0 {
		open.Component, open.Action = c, action(c, open.Wants)
		m.plan.Now = append(m.plan.Now, open)
	}
	for _, w := range closed {
		w.Action = action(c, w.Wants)
		switch {
		case w.Action == RestartComponent && len(open.Settings) > 0: // the pod comes back with all values
		case ends(c):
			m.plan.Ending = append(m.plan.Ending, w)
		default:
			m.plan.Later = append(m.plan.Later, w)
		}
	}
}

// ends: a share manager in use ends with its volume's attachment, and is built by
// the settings when it comes again.
func ends(c catalog.Component) bool { return c.Kind == catalog.ShareManager && len(c.Uses) > 0 }

func action(c catalog.Component, wants map[catalog.Trait]Want) WorkAction {
	if !isPod(c) {
		return UpdateComponent
	}
	if want, asked := wants[catalog.DataEngine]; asked && want.Text == "false" {
		return RemoveComponent
	}
	return RestartComponent
}

func (w *Work) add(s asking, want string) {
	if w.Wants == nil {
		w.Wants = map[catalog.Trait]Want{}
	}
	w.Settings = append(w.Settings, s.Name)
	w.Wants[s.Trait] = Want{s.Name, want}
}

// enginesToCome: an engine that is on has an instance manager on every node that
// the storage system works on. It makes them itself, but none on a node that is cordoned.
func (m *maker) enginesToCome() {
	for _, s := range m.asking {
		if s.Trait != catalog.DataEngine || s.normal != "true" || s.unclear {
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
			if !node.Storage || !node.Ready || node.StorageDown || node.Cordoned || has[name] || engine == catalog.EngineV2 && node.DisabledV2 || m.leftOut[name] {
				continue
			}
			t.count(catalog.InstanceManager, 0, 1)
			if t.rolling {
				t.pending = true
				t.blockers = append(t.blockers, catalog.Blocker{Kind: catalog.BlockedByComponent, Name: name, Nodes: []string{name},
					Message: fmt.Sprintf("the storage system has yet to start an instance manager of the %s data engine on %s", engine, name)})
			}
		}
	}
}

// EngineOf is the data engine that a setting of the form v2-... is about.
func EngineOf(name catalog.Name) string {
	if strings.HasPrefix(string(name), "v2-") {
		return catalog.EngineV2
	}
	return catalog.EngineV1
}

// order in which components come: what serves nothing by itself first.
var order = map[catalog.ComponentKind]int{catalog.Deployment: 0, catalog.DaemonSetComponent: 1, catalog.BackingImageManager: 2, catalog.ShareManager: 3, catalog.InstanceManager: 4}

func inOrder(components []catalog.Component) []catalog.Component {
	sorted := slices.Clone(components)
	slices.SortStableFunc(sorted, func(a, b catalog.Component) int {
		if a.Kind != b.Kind {
			return order[a.Kind] - order[b.Kind]
		}
		if a.Node != b.Node {
			return strings.Compare(a.Node, b.Node)
		}
		return strings.Compare(a.Name, b.Name)
	})
	return sorted
}

func isPod(c catalog.Component) bool {
	return c.Kind != catalog.Deployment && c.Kind != catalog.DaemonSetComponent
}

// nodeIsUp tells whether a pod will come back by itself: not on a node that is
// down or gone, for Kubernetes or the storage system, or, once the pod is gone, that
// does not take it. A pod that has no node yet is waited for.
func (m *maker) nodeIsUp(c catalog.Component) bool {
	node := m.Nodes[c.Node]
	return !isPod(c) || c.Node == "" || node.Ready && !node.StorageDown && !(c.Missing && refusalOf(node, m.requestOf(c)) != nil)
}

// back tells whether a component runs. A DaemonSet that no node is to run does not.
func back(c catalog.Component) bool {
	return c.Ready && !c.Terminating && !c.Missing && !(c.Kind == catalog.DaemonSetComponent && c.Total == 0)
}

// partOf is how much of a component is rolled out, in pods.
func partOf(c catalog.Component) (done, total int) {
	if isPod(c) {
		return 0, 1
	}
	if c.Ready {
		return c.Total, c.Total
	}
	return min(c.Updated, max(0, c.Total-1)), c.Total
}
