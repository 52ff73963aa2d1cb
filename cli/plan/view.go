package plan

import (
	"slices"

	v1 "github.com/fairlead-io/fairlead/api/rest/v1"
	"github.com/fairlead-io/fairlead/internal/longhorn"
	"github.com/fairlead-io/fairlead/internal/multus"
	"github.com/fairlead-io/fairlead/internal/settings/catalog"
	"github.com/fairlead-io/fairlead/internal/settings/planner"
	"github.com/fairlead-io/fairlead/internal/settings/rollout"
)

// projection converts a plan to a View.
type projection struct {
	changes Changes
	// now are the values before the changes, and rolled is the plan for these values.
	now    catalog.Values
	rolled planner.Plan
	// then are the values after the changes, and plan is the plan for these values.
	then     catalog.Values
	plan     planner.Plan
	networks map[multus.Network]bool // that exist
	works    []Work
	blockers []Blocker
	// listed has the index in blockers by kind, name and message: what to do may differ from setting to setting.
	listed map[[3]string]int
	// commands make the changes.
	commands map[catalog.Name]string
	// ahead: some work of the setting is done now; inTurn: some waits for its turn; behind: some waits.
	ahead, inTurn, behind map[catalog.Name]bool
}

// viewOf returns the plan after the changes.
func viewOf(facts planner.Facts, c Changes) View {
	p := &projection{
		changes: c, now: facts.Values, networks: facts.Rollout.Networks, works: []Work{}, blockers: []Blocker{}, listed: map[[3]string]int{}, commands: map[catalog.Name]string{},
		ahead: map[catalog.Name]bool{}, inTurn: map[catalog.Name]bool{}, behind: map[catalog.Name]bool{},
	}
	if len(c) > 0 {
		p.rolled = planner.Foresee(facts)
	}
	for name := range c {
		p.commands[name] = c.command(name, facts)
	}
	facts = c.after(facts)
	p.then, p.plan = facts.Values, planner.Foresee(facts)
	p.addNetwork(facts.Names)
	p.addWorks()
	view := View{Namespace: facts.Names.Namespace, Settings: p.settings()}
	if desired, err := catalog.SharedVolumeNetwork(facts.Values, facts.Names); err == nil {
		facts.Rollout.Desired = desired
		view.Nodes, view.VolumeNetworks = nodesOf(facts.Rollout), waitingVolumeNetworks(facts.Rollout)
	} else {
		view.Nodes = []Node{}
	}
	view.Works, view.Blockers = p.works, p.blockers
	view.Outcome = view.outcome()
	return view
}

// nodesOf are the nodes whose clients have not moved yet.
func nodesOf(r rollout.Rollout) []Node {
	nodes := []Node{}
	for _, turn := range rollout.NodeOrder(r) {
		nodes = append(nodes, Node{
			Node: turn.Node, Pod: turn.Pod, Volumes: append([]string{}, turn.Volumes...), Workloads: append([]string{}, turn.Workloads...),
		})
	}
	return nodes
}

// waitingVolumeNetworks is what the roll-out of per-volume networks waits for.
func waitingVolumeNetworks(r rollout.Rollout) string {
	if p := rollout.Next(r).Volumes; p.Phase != "" && p.Phase != rollout.PhaseApplied {
		return p.Message
	}
	return ""
}

// addWorks adds the actions on components.
func (p *projection) addWorks() {
	starting := catalog.Short(p.plan.Starting)
	for _, w := range p.plan.Now {
		if w.Action != planner.UpdateComponent && starting != "" {
			p.add(workOf(w, whenTurn, starting), w.Settings)
		} else {
			p.add(workOf(w, whenNow, ""), w.Settings)
		}
	}
	for _, w := range p.plan.Later {
		p.add(workOf(w, whenLater, catalog.Short(w.Blockers)), w.Settings)
	}
}

func (p *projection) add(w Work, names []catalog.Name) {
	p.works = append(p.works, w)
	for _, name := range names {
		switch w.When {
		case whenNow:
			p.ahead[name] = true
		case whenTurn:
			p.inTurn[name] = true
		default:
			p.behind[name] = true
		}
	}
}

func workOf(w planner.Work, when, waitsFor string) Work {
	shown := Work{
		Action: string(w.Action), Kind: string(w.Component.Kind), Component: w.Component.Name, Node: w.Component.Node,
		Settings: catalog.Texts(w.Settings), When: when, WaitsFor: waitsFor, Wants: map[string]string{},
	}
	for trait, want := range w.Wants {
		shown.Wants[string(trait)] = want.Text
	}
	return shown
}

// moveAction is the rollout of the network of shared volumes, which has its own steps.
const moveAction = "Move"

// addNetwork adds the rollout if a setting that chooses the network is not applied.
func (p *projection) addNetwork(names longhorn.Names) {
	step := p.plan.Network
	if step.Applied || step.Phase == "" {
		return
	}
	var choosing []catalog.Name
	for _, s := range p.plan.Settings {
		if s.ChoosesNetwork && !s.Applied {
			choosing = append(choosing, s.Name)
		}
	}
	if len(choosing) == 0 {
		return
	}
	w := Work{Action: moveAction, Kind: string(catalog.DaemonSetComponent), Component: names.ClientDaemonSet, Settings: catalog.Texts(choosing), When: whenNow}
	if step.Action == rollout.Nothing {
		w.When = whenLater
	}
	w.WaitsFor = catalog.Short(step.Blockers)
	p.add(w, choosing)
	for _, name := range choosing {
		p.wait(name, step.Blockers)
	}
}

// settings of the danger zone, and other settings that change.
func (p *projection) settings() []Setting {
	shown := []Setting{}
	for _, s := range p.plan.Settings {
		if p.inTurn[s.Name] {
			p.wait(s.Name, p.plan.Starting)
		}
		p.wait(s.Name, s.Blockers) // also those of its works
		shown = append(shown, p.setting(s))
	}
	for _, d := range catalog.All() {
		if _, asked := p.changes[d.Name]; asked && !d.DangerZone {
			shown = append(shown, p.setting(planner.SettingPlan{
				Name: d.Name, Value: p.then[d.Name], Applied: true, Phase: rollout.PhaseApplied, Message: "in effect",
			}))
		}
	}
	return shown
}

func (p *projection) setting(s planner.SettingPlan) Setting {
	d, _ := catalog.Lookup(string(s.Name))
	_, changed := p.changes[s.Name]
	shown := Setting{
		Name: string(s.Name), Changed: changed, Now: valueOf(p.now[s.Name]), Then: valueOf(s.Value),
		Applies: p.applies(s), Reason: s.Message, Gate: string(d.Gate), Progress: []Progress{}, Warnings: []string{},
	}
	if missing := d.NetworkProblem(shown.Then.Value, p.networks); missing != "" && shown.Now == shown.Then && shown.Applies == appliesDone { // else a rule says so
		shown.Warnings = append(shown.Warnings, missing)
	}
	if changed && d.Gate == catalog.AtOnce && shown.Applies == appliesDone && shown.Now.Value != shown.Then.Value {
		shown.Applies = appliesNow
	}
	if shown.Now != shown.Then {
		shown.Command = p.commands[s.Name]
	}
	if rolled, known := p.rolled.Setting(s.Name); known {
		shown.appliedNow = rolled.Applied
	}
	for _, k := range s.Progress {
		shown.Progress = append(shown.Progress, Progress{string(k.Kind), k.Updated, k.Total})
	}
	return shown
}

func (p *projection) applies(s planner.SettingPlan) string {
	ahead, behind := p.ahead[s.Name], p.inTurn[s.Name] || p.behind[s.Name] || len(s.Blockers) > 0
	switch {
	case s.Phase == rollout.PhaseInvalid:
		return appliesInvalid
	case s.Applied:
		return appliesDone
	case ahead && behind:
		return appliesPartly
	case ahead:
		return appliesNow
	}
	return appliesWaits
}

func (v View) outcome() string {
	outcome := outcomeNothing
	for _, s := range v.Asked() {
		switch {
		case s.Applies == appliesInvalid:
			return outcomeInvalid
		case s.Applies == appliesDone, s.Applies == appliesNow && outcome == outcomeWaits:
		case s.Applies == appliesNow:
			outcome = outcomeNow
		default:
			outcome = outcomeWaits
		}
	}
	return outcome
}

func valueOf(v catalog.Value) Value { return Value{v.Text, string(v.Source)} }

// wait lists each blocker once, with the settings that wait for it. What to do may differ: then there are several.
func (p *projection) wait(name catalog.Name, blockers []catalog.Blocker) {
	for _, b := range blockers {
		id := [3]string{string(b.Kind), b.Name, b.Message}
		i, known := p.listed[id]
		if !known {
			i = len(p.blockers)
			p.listed[id] = i
			p.blockers = append(p.blockers, Blocker{Blocker: v1.Blocker{Kind: string(b.Kind), Name: b.Name, Nodes: b.Nodes, Workloads: b.Workloads, Owners: b.Owners, Message: b.Message}})
		}
		if !slices.Contains(p.blockers[i].Settings, string(name)) {
			p.blockers[i].Settings = append(p.blockers[i].Settings, string(name))
		}
	}
}
