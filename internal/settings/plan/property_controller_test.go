package plan

import (
	"maps"
	"slices"
	"strings"
	"time"

	"pgregory.net/rapid"

	"github.com/fairlead-io/fairlead/internal/settings/catalog"
	"github.com/fairlead-io/fairlead/internal/settings/rollout"
	"github.com/fairlead-io/fairlead/internal/storage"
)

// Fairlead's controller in the random model, and what is held against each step of it.

// view is what the controller's caches may show.
type view struct {
	facts   Facts
	written map[catalog.Name]int
}

func (m *fleetModel) view() view { return view{m.facts(), maps.Clone(m.written)} }

// Where the controller may crash.
const (
	crashAfterReport = iota + 1
	crashAfterWork
	crashInReport
)

// act is Fairlead's controller. It decides on a view that may be stale, reports
// what is pending, decides again on live facts, and does one piece of work.
func (m *fleetModel) act(t *rapid.T, v view, crash int, meanwhile func()) {
	if crash > 0 {
		defer func() { m.held = map[string]Hold{} }()
	}
	p := Make(v.facts)
	if slices.ContainsFunc(p.Settings, func(s SettingPlan) bool { return s.Applied && !isReported(v.facts.Told[s.Name], s) }) {
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
	if !due || slices.ContainsFunc(w.Settings, func(name catalog.Name) bool { return !m.told[name].Underway }) {
		return
	}
	m.mustBeRight(t, w)
	if meanwhile != nil {
		meanwhile()
	}
	if m.do(t, w) && crash != crashAfterWork {
		hold := Hold{Wants: map[catalog.Trait]string{}, Seen: w.Component.Seen(), Until: m.now.Add(10 * time.Second), Message: "was just changed"}
		for trait, want := range w.Wants {
			hold.Wants[trait] = want.Text
		}
		m.held[w.Component.Name] = hold
	}
}

func isReported(told Told, s SettingPlan) bool {
	return told.Applied && told.Rolled != nil && *told.Rolled == s.Value.Text
}

// report writes the status of each setting, if the view has its newest version.
func (m *fleetModel) report(t *rapid.T, p Plan, v view, crash int) (behind bool) {
	m.look()
	for i, s := range p.Settings {
		if crash == crashInReport && i > len(p.Settings)/2 {
			return true
		}
		if m.written[s.Name] != v.written[s.Name] {
			behind = true
			continue
		}
		if s.Applied && !isReported(m.told[s.Name], s) {
			m.mustBeApplied(t, s)
		}
		was := m.told[s.Name]
		begins, _ := p.For(s.Name)
		is := Told{Rolled: was.Rolled, Applied: s.Applied, Underway: !s.Applied && (was.Underway || len(begins) > 0)}
		if s.Applied {
			d, _ := catalog.Lookup(string(s.Name))
			is.Rolled, m.touched[s.Name] = &s.Value.Text, !d.Same(s.Value.Text, d.Default)
		}
		if was != is && !(s.Applied && isReported(was, s)) {
			m.told[s.Name] = is
			m.written[s.Name]++
		}
	}
	return behind
}

// mustBeRight holds a piece of work against the cluster that it was decided upon.
func (m *fleetModel) mustBeRight(t *rapid.T, w Work) {
	m.look()
	if len(w.Settings) == 0 {
		t.Fatalf("invariant 5: %s for no setting", textOfWork(w))
	}
	if w.Action == UpdateComponent {
		c := m.component(m.templates[w.Component.Name])
		m.mustBeAuthorised(t, w, c)
		m.mustRoll(t, w, c)
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
	if m.isLeftOut(pod.Component) {
		t.Fatalf("invariant 4: %s: the selector leaves its node out", textOfWork(w))
	}
	if at, again := m.restarted[pod.Name]; again && at == m.changes {
		t.Fatalf("invariant 7: %s: restarted twice for the same values", textOfWork(w))
	}
}

// do makes the write, as the API server takes it: with preconditions.
func (m *fleetModel) do(t *rapid.T, w Work) bool {
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
	case pod.Kind == catalog.InstanceManager && len(m.uses(pod.Component)) > 0: // looked at once more
		return false
	}
	if pod.Kind == catalog.InstanceManager && !pod.Stopped && len(m.uses(pod.Component)) > 0 {
		t.Fatalf("invariant 4: %s: it has just come to run %v", textOfWork(w), m.uses(pod.Component))
	}
	pod.Terminating, pod.leaves, pod.Version = true, w.Action == RemoveComponent, m.next()
	if w.Action == RestartComponent {
		m.restarted[pod.Name] = m.changes
	}
	return true
}

// demand is a setting that decides a trait, explicitly or not.
type demand struct {
	catalog.Definition
	normal string
	// mute: the storage system goes by it, and Fairlead does nothing for it until it is corrected.
	mute bool
}

// look gathers who asks for what, so that decides need not parse for each component.
func (m *fleetModel) look() {
	m.asked, m.seen = map[catalog.Trait][]demand{}, m.components()
	for _, d := range catalog.All() {
		if d.Wants == nil {
			continue
		}
		text, has := m.system[d.Name]
		misplaced := m.isMisplaced(d)
		if own, set := m.own[d.Name]; set && !has && !misplaced {
			text = own
		} else if !has {
			told := m.told[d.Name]
			if misplaced || !d.ByFairlead || !told.Underway && (told.Rolled == nil || d.Same(*told.Rolled, d.Default)) {
				continue
			}
			text = d.Default
		}
		normal, err := d.Normalize(text)
		if err != nil {
			normal, _ = d.Normalize(d.Default)
		}
		m.asked[d.Trait] = append(m.asked[d.Trait], demand{d, normal, err != nil || misplaced})
	}
}

// decides is the setting that decides a trait of a component, and how.
func (m *fleetModel) decides(c catalog.Component, trait catalog.Trait) (catalog.Name, string) {
	for _, a := range m.asked[trait] {
		if text, ok := a.Wants(a.normal, c, m.nodes); ok {
			if a.mute {
				return "", ""
			}
			return a.Name, text
		}
	}
	return "", ""
}

// mustBeAuthorised: each setting that work is done for asks for it, and its own gate is open.
func (m *fleetModel) mustBeAuthorised(t *rapid.T, w Work, c catalog.Component) {
	if c.OptOut {
		t.Fatalf("%s: it opts out", textOfWork(w))
	}
	if len(w.Settings) != len(w.Wants) {
		t.Fatalf("invariant 5: %s, but wants %v", textOfWork(w), w.Wants)
	}
	hold := m.held[c.Name]
	for trait, want := range w.Wants {
		name, text := m.decides(c, trait)
		if name != want.Setting || text != want.Text || c.Built[trait] == text || !slices.Contains(w.Settings, name) {
			t.Fatalf("invariant 5: %s: wants %v, built %q, %s decides %q", textOfWork(w), want, c.Built[trait], name, text)
		}
		if !m.mayApply(name, c) {
			t.Fatalf("invariant 5: %s: the gate of %s is closed", textOfWork(w), name)
		}
		if was, changed := hold.Wants[trait]; changed && was == text && hold.Until.After(m.now) && hold.Seen != c.Seen() {
			t.Fatalf("%s: it is held", textOfWork(w))
		}
	}
	if removes := w.Wants[catalog.DataEngine].Text == "false"; removes != (w.Action == RemoveComponent) {
		t.Fatalf("%s: wants %v", textOfWork(w), w.Wants)
	}
}

// mustBeAlone: no pod is taken down while another that the same settings are
// being rolled out to has yet to come back.
func (m *fleetModel) mustBeAlone(t *rapid.T, w Work) {
	for _, p := range m.pods {
		if p.Name == w.Component.Name || p.Kind == catalog.ShareManager || p.leaves || isBack(p.Component) || !m.isUp(p.Component) || m.isLeftOut(p.Component) {
			continue
		}
		for trait, want := range w.Wants {
			if name, _ := m.decides(p.Component, trait); name == want.Setting && want.Text != "false" {
				t.Fatalf("%s while %s is not back", textOfWork(w), p.Name)
			}
		}
	}
}

// mustBeApplied holds what is said to be applied against the cluster.
func (m *fleetModel) mustBeApplied(t *rapid.T, s SettingPlan) {
	d, _ := catalog.Lookup(string(s.Name))
	if m.isMisplaced(d) {
		t.Fatalf("invariant 6: %s applied, and it has a value in the wrong group", s.Name)
	}
	if m.choosesRWX(s.Name) {
		if desired, err := catalog.SharedVolumeNetwork(m.values(), storage.Longhorn()); err != nil || desired != m.network {
			t.Fatalf("invariant 6: %s applied, RWX volumes are on %q (%v)", s.Name, m.network, err)
		}
	}
	normal, err := d.Normalize(s.Value.Text)
	if err != nil {
		t.Fatalf("invariant 6: %s applied, and invalid: %v", s.Name, err)
	}
	if d.Wants == nil {
		return
	}
	told := m.told[s.Name]
	rolling := told.Underway || told.Rolled == nil || !d.Same(*told.Rolled, s.Value.Text)
	if d.Trait == catalog.DataEngine && normal == "true" && rolling && s.Value.Source != catalog.SourceDefault {
		m.mustHaveEngines(t, s.Name)
	}
	for _, c := range m.seen {
		if m.isLeftOut(c) && d.Trait != catalog.DataEngine {
			continue
		}
		name, text := m.decides(c, d.Trait)
		built, exists := c.Built[d.Trait]
		byDefault, concerns := d.Wants(d.Default, c, m.nodes)
		waited := rolling && m.isUp(c)
		switch {
		case !exists && !c.Missing || d.Trait == catalog.DataEngine && text == "false" && c.Missing:
		case s.Value.Source == catalog.SourceDefault && d.ByFairlead && m.touched[s.Name] && concerns && built != byDefault:
			t.Fatalf("invariant 6: %s is taken back, but %s is built with %q", s.Name, c.Name, built)
		case name != s.Name:
		case c.Missing && waited:
			t.Fatalf("invariant 6: %s applied, %s is missing", s.Name, c.Name)
		case !c.Missing && built != text:
			t.Fatalf("invariant 6: %s applied, %s is built with %q", s.Name, c.Name, built)
		case waited && !isBack(c):
			t.Fatalf("invariant 6: %s applied, %s is not back", s.Name, c.Name)
		}
	}
}

// mustHaveEngines: a data engine that was switched on has an instance manager on every node.
func (m *fleetModel) mustHaveEngines(t *rapid.T, name catalog.Name) {
	engine := map[catalog.Name]string{catalog.V1DataEngine: catalog.EngineV1, catalog.V2DataEngine: catalog.EngineV2}[name]
	for node, n := range m.nodes {
		leftOut := m.isLeftOut(catalog.Component{Kind: catalog.InstanceManager, Node: node})
		if n.Ready && !n.StorageDown && !n.Cordoned && !leftOut && m.pods[engine+"-"+node] == nil && (engine == catalog.EngineV1 || !n.DisabledV2) {
			t.Fatalf("invariant 6: %s applied, %s has no instance manager of it", name, node)
		}
	}
}

// choosesRWX: the newer setting decides where it is set, and the older where it is not.
func (m *fleetModel) choosesRWX(name catalog.Name) bool {
	endpoint := strings.TrimSpace(m.values()[catalog.EndpointNetworkForRWX].Text) != ""
	return name == catalog.StorageNetworkForRWX && !endpoint || name == catalog.EndpointNetworkForRWX && endpoint
}

// check holds what a plan on the cluster as it is says against it.
func (m *fleetModel) check(t *rapid.T) {
	m.look()
	for _, s := range Make(m.facts()).Settings {
		if s.Applied {
			m.mustBeApplied(t, s)
		} else if s.Message == "" || s.Phase == "" || s.Phase == rollout.PhaseApplied || s.Phase == rollout.PhaseWaiting && len(s.Blockers) == 0 {
			t.Fatalf("%s is not applied, and it is not said why: %+v", s.Name, s)
		}
	}
}
