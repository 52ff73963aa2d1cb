package planner

import (
	"maps"
	"slices"
	"strings"
	"time"

	"pgregory.net/rapid"

	"github.com/fairlead-io/fairlead/internal/longhorn"
	"github.com/fairlead-io/fairlead/internal/settings/catalog"
	"github.com/fairlead-io/fairlead/internal/settings/rollout"
	"github.com/fairlead-io/fairlead/internal/testkit/must"
)

// This file has Fairlead's controller in the random model, and the checks of its steps.

// view is a state of the controller's caches.
type view struct {
	facts   Facts
	written map[catalog.Name]int
}

func (m *fleetModel) view() view { return view{m.facts(), maps.Clone(m.written)} }

// Points at which the controller may crash.
const (
	crashAfterReport = iota + 1
	crashAfterWork
	crashInReport
)

// act is Fairlead's controller. It decides on a view that may be stale, writes the status, decides
// again on live facts, and does one piece of work.
func (m *fleetModel) act(t *rapid.T, v view, crash int, meanwhile func()) {
	if crash > 0 {
		defer func() { m.held = map[string]Hold{} }()
	}
	p := Make(v.facts)
	if slices.ContainsFunc(p.Settings, func(s SettingPlan) bool { return s.Applied && !isReported(v.facts.Reported[s.Name], s) }) {
		v = m.view()
		p = Make(v.facts)
	}
	if behind := m.report(t, p, v, crash); behind || crash == crashAfterReport || crash == crashInReport {
		return
	}
	if _, due := p.Next(); !due {
		return
	}
	w, due := Make(m.facts()).Next()
	if !due || slices.ContainsFunc(w.Settings, func(name catalog.Name) bool { return !m.reported[name].Underway }) {
		return
	}
	m.mustBeRight(t, w)
	if meanwhile != nil {
		meanwhile()
	}
	if m.do(w) && crash != crashAfterWork {
		hold := Hold{Wants: map[catalog.Trait]string{}, Seen: w.Component.Seen(), Until: m.now.Add(10 * time.Second), Message: "was just changed"}
		for trait, want := range w.Wants {
			hold.Wants[trait] = want.Text
		}
		m.held[w.Component.Name] = hold
	}
}

func isReported(reported Reported, s SettingPlan) bool {
	return reported.Applied && reported.Rolled != nil && *reported.Rolled == s.Value.Text
}

// report writes the status of each setting, if the view has its newest version.
func (m *fleetModel) report(t *rapid.T, p Plan, v view, crash int) (behind bool) {
	m.collect()
	for i, s := range p.Settings {
		if crash == crashInReport && i > len(p.Settings)/2 {
			return true
		}
		if m.written[s.Name] != v.written[s.Name] {
			behind = true
			continue
		}
		if s.Applied && !isReported(m.reported[s.Name], s) {
			m.mustBeApplied(t, s)
		}
		was := m.reported[s.Name]
		begins, _ := p.WorkFor(s.Name)
		is := Reported{Rolled: was.Rolled, Applied: s.Applied, Underway: !s.Applied && (was.Underway || len(begins) > 0)}
		if s.Applied {
			d, _ := catalog.Lookup(string(s.Name))
			is.Rolled, m.touched[s.Name] = &s.Value.Text, !d.Same(s.Value.Text, d.Default)
		}
		if was != is && !(s.Applied && isReported(was, s)) {
			m.reported[s.Name] = is
			m.written[s.Name]++
		}
	}
	return behind
}

// mustBeRight checks a piece of work against the state of the cluster.
func (m *fleetModel) mustBeRight(t *rapid.T, w Work) {
	m.collect()
	must.True(t, len(w.Settings) != 0, "invariant 5: %s for no setting", textOfWork(w))
	for _, name := range w.Settings {
		d, _ := catalog.Lookup(string(name))
		must.True(t, slices.Contains(d.Kinds(), w.Component.Kind), "%s: %s is not about its kind", textOfWork(w), name)
	}
	if w.Action == UpdateComponent {
		m.mustRoll(t, w, m.component(m.templates[w.Component.Name]))
		return
	}
	pod := m.pods[w.Component.Name]
	switch {
	case pod.Missing || pod.Terminating && w.Action == RestartComponent:
		t.Fatalf("invariant 7: %s: deleted twice", textOfWork(w))
	case len(m.uses(pod.Component)) > 0 && !pod.Stopped:
		t.Fatalf("invariant 4: %s: it runs %v", textOfWork(w), m.uses(pod.Component))
	}
	m.mustBeAuthorised(t, w, pod.Component)
	if pod.Ready {
		m.mustBeAlone(t, w)
	}
	if w.Action == RemoveComponent {
		return
	}
	m.mustComeBack(t, w, pod.Component)
	must.True(t, !m.isExcluded(pod.Component), "invariant 4: %s: the selector leaves its node out", textOfWork(w))
	at, again := m.restarted[pod.Name]
	must.True(t, !again || at != m.changes, "invariant 7: %s: restarted twice for the same values", textOfWork(w))
}

// do makes the write with its preconditions, like the API server.
func (m *fleetModel) do(w Work) bool {
	for trait, want := range w.Wants {
		d, _ := catalog.Lookup(string(want.Setting))
		if byDefault, ok := d.Wants(d.Default, w.Component, m.nodes); ok && byDefault != want.Text {
			m.touched[want.Setting] = true
		}
		if w.Action == UpdateComponent {
			m.templates[w.Component.Name].Built[trait] = want.Text
		}
	}
	if w.Action == UpdateComponent {
		x := m.templates[w.Component.Name]
		x.Version, x.revision = m.next(), x.revision+1
		return true
	}
	pod := m.pods[w.Component.Name]
	switch {
	case pod == nil || pod.UID != w.Component.UID || pod.leaves:
		return false
	case w.Action == RestartComponent && w.Component.Stopped:
		if pod.Version != w.Component.Version {
			return false
		}
	case pod.Kind == catalog.InstanceManager && len(m.uses(pod.Component)) > 0: // the live read
		return false
	}
	pod.Terminating, pod.leaves, pod.Version = true, w.Action == RemoveComponent, m.next()
	if w.Action == RestartComponent {
		m.restarted[pod.Name] = m.changes
	}
	return true
}

// modelDemand is a setting that decides a trait, also by its default.
type modelDemand struct {
	catalog.Definition
	normal string
	// invalid: the storage system uses the value, and Fairlead does nothing until it is corrected.
	invalid bool
}

// collect parses all values once, for decides.
func (m *fleetModel) collect() {
	m.demands, m.seen = map[catalog.Trait][]modelDemand{}, m.components()
	for _, d := range catalog.All() {
		if d.Wants == nil {
			continue
		}
		text, has := m.system[d.Name]
		misplaced := m.isMisplaced(d)
		if own, set := m.own[d.Name]; set && !has && !misplaced {
			text = own
		} else if !has {
			reported := m.reported[d.Name]
			if misplaced || !d.ByFairlead || !reported.Underway && (reported.Rolled == nil || d.Same(*reported.Rolled, d.Default)) {
				continue
			}
			text = d.Default
		}
		normal, err := normalOrDefault(d, text)
		m.demands[d.Trait] = append(m.demands[d.Trait], modelDemand{d, normal, err != nil || misplaced})
	}
}

// decides returns the setting that decides a trait of a component, and its value.
func (m *fleetModel) decides(c catalog.Component, trait catalog.Trait) (catalog.Name, string) {
	for _, a := range m.demands[trait] {
		if text, ok := a.Wants(a.normal, c, m.nodes); ok {
			if a.invalid {
				return "", ""
			}
			return a.Name, text
		}
	}
	return "", ""
}

// mustBeAuthorised: each setting of the work requires it, and its own gate is open.
func (m *fleetModel) mustBeAuthorised(t *rapid.T, w Work, c catalog.Component) {
	must.True(t, !c.OptOut, "%s: it opts out", textOfWork(w))
	must.True(t, len(w.Settings) == len(w.Wants), "invariant 5: %s, but wants %v", textOfWork(w), w.Wants)
	hold := m.held[c.Name]
	for trait, want := range w.Wants {
		name, text := m.decides(c, trait)
		must.True(t, name == want.Setting && text == want.Text && c.Built[trait] != text && slices.Contains(w.Settings, name),
			"invariant 5: %s: wants %v, built %q, %s decides %q", textOfWork(w), want, c.Built[trait], name, text)
		must.True(t, m.mayApply(name, c), "invariant 5: %s: the gate of %s is closed", textOfWork(w), name)
		was, changed := hold.Wants[trait]
		must.True(t, !changed || was != text || !hold.Until.After(m.now) || hold.Seen == c.Seen(), "%s: it is held", textOfWork(w))
	}
	removes := w.Wants[catalog.DataEngine].Text == "false"
	must.True(t, removes == (w.Action == RemoveComponent), "%s: wants %v", textOfWork(w), w.Wants)
}

// mustBeAlone: no pod restarts while another pod of the same settings is not Ready.
func (m *fleetModel) mustBeAlone(t *rapid.T, w Work) {
	for _, p := range m.pods {
		if p.Name == w.Component.Name || p.Kind == catalog.ShareManager || p.leaves || runs(p.Component) || !m.isUp(p.Component) || m.isExcluded(p.Component) {
			continue
		}
		for trait, want := range w.Wants {
			name, _ := m.decides(p.Component, trait)
			must.True(t, name != want.Setting || want.Text == "false", "%s while %s is not running", textOfWork(w), p.Name)
		}
	}
}

// mustBeApplied checks a setting that is reported as applied against the cluster.
func (m *fleetModel) mustBeApplied(t *rapid.T, s SettingPlan) {
	d, _ := catalog.Lookup(string(s.Name))
	must.True(t, !m.isMisplaced(d), "invariant 6: %s applied, and it has a value in the wrong group", s.Name)
	if m.choosesRWX(s.Name) {
		desired, err := catalog.SharedVolumeNetwork(m.values(), longhorn.DefaultNames())
		must.True(t, err == nil && desired == m.network, "invariant 6: %s applied, RWX volumes are on %q (%v)", s.Name, m.network, err)
	}
	normal, err := d.Normalize(s.Value.Text)
	must.True(t, err == nil, "invariant 6: %s applied, and invalid: %v", s.Name, err)
	if d.Wants == nil {
		return
	}
	reported := m.reported[s.Name]
	rolling := reported.Underway || reported.Rolled == nil || !d.Same(*reported.Rolled, s.Value.Text)
	if d.Trait == catalog.DataEngine && normal == "true" && rolling && s.Value.Source != catalog.SourceDefault {
		m.mustHaveEngines(t, s.Name)
	}
	for _, c := range m.seen {
		if m.isExcluded(c) && d.Trait != catalog.DataEngine {
			continue
		}
		name, text := m.decides(c, d.Trait)
		built, exists := c.Built[d.Trait]
		byDefault, concerns := d.Wants(d.Default, c, m.nodes)
		waited := rolling && m.isUp(c)
		switch {
		case !exists && !c.Missing || d.Trait == catalog.DataEngine && text == "false" && c.Missing:
		case s.Value.Source == catalog.SourceDefault && d.ByFairlead && m.touched[s.Name] && concerns && built != byDefault:
			t.Fatalf("invariant 6: %s is removed, but %s is built with %q", s.Name, c.Name, built)
		case name != s.Name:
		case c.Missing && waited:
			t.Fatalf("invariant 6: %s applied, %s is missing", s.Name, c.Name)
		case !c.Missing && built != text:
			t.Fatalf("invariant 6: %s applied, %s is built with %q", s.Name, c.Name, built)
		case waited && !runs(c):
			t.Fatalf("invariant 6: %s applied, %s is not running", s.Name, c.Name)
		}
	}
}

// mustHaveEngines: an enabled data engine has an instance manager on every node.
func (m *fleetModel) mustHaveEngines(t *rapid.T, name catalog.Name) {
	engine := map[catalog.Name]string{catalog.V1DataEngine: catalog.EngineV1, catalog.V2DataEngine: catalog.EngineV2}[name]
	for node, n := range m.nodes {
		excluded := m.isExcluded(catalog.Component{Kind: catalog.InstanceManager, Node: node})
		must.True(t, !n.Ready || n.StorageDown || n.Cordoned || excluded || m.pods[engine+"-"+node] != nil || engine != catalog.EngineV1 && n.DisabledV2,
			"invariant 6: %s applied, %s has no instance manager of it", name, node)
	}
}

// choosesRWX: the newer setting decides if it is set, otherwise the older setting.
func (m *fleetModel) choosesRWX(name catalog.Name) bool {
	endpoint := strings.TrimSpace(m.values()[catalog.EndpointNetworkForRWX].Text) != ""
	return name == catalog.StorageNetworkForRWX && !endpoint || name == catalog.EndpointNetworkForRWX && endpoint
}

// check compares a plan on live facts with the cluster.
func (m *fleetModel) check(t *rapid.T) {
	m.collect()
	for _, s := range Make(m.facts()).Settings {
		if s.Applied {
			m.mustBeApplied(t, s)
		} else if s.Message == "" || s.Phase == "" || s.Phase == rollout.PhaseApplied || s.Phase == rollout.PhaseWaiting && len(s.Blockers) == 0 {
			t.Fatalf("%s is not applied without a reason: %+v", s.Name, s)
		}
	}
}
