package planner

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/fairlead-io/fairlead/internal/longhorn"
	"github.com/fairlead-io/fairlead/internal/multus"
	"github.com/fairlead-io/fairlead/internal/rwx"
	"github.com/fairlead-io/fairlead/internal/settings/catalog"
	"github.com/fairlead-io/fairlead/internal/settings/rollout"
	"github.com/fairlead-io/fairlead/internal/testkit/must"
)

var midday = time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)

const critical = "system-cluster-critical"

// settled is a cluster of two nodes whose clients and servers are on the network.
func settled(on multus.Attachment) rollout.Rollout {
	r := rollout.Rollout{
		Desired: on, Record: rollout.Record{Clients: on, Servers: on, ServersSince: midday.Add(-time.Hour)}, Now: midday, Policy: rollout.Policy{Settle: time.Minute},
		DaemonSet: rollout.DaemonSet{Name: "csi", Found: true, Network: on, Observed: true, Revision: "7", Wanted: 2, MaxUnavailable: 1},
	}
	for _, node := range []string{"node-1", "node-2"} {
		r.Clients = append(r.Clients, rwx.Client{Pod: "csi-" + node, UID: "uid-" + node, Node: node, Network: on, Revision: "7", Ready: true, Reported: !on.IsZero()})
	}
	return r
}

// fleet is a settled cluster of three nodes. All components have the defaults, and no setting is set.
func fleet(changes ...change) Facts {
	f := Facts{
		Names: longhorn.DefaultNames(), SystemValues: map[catalog.Name]string{}, Values: catalog.Resolve(nil, nil), Reported: map[catalog.Name]Reported{}, Now: midday,
		Held: map[string]Hold{}, Nodes: catalog.Nodes{}, Rollout: settled(multus.Attachment{}),
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
		rolled(d.Name, d.Default)(&f)
	}
	for _, c := range changes {
		c(&f)
	}
	return f
}

// builtBy returns the traits that the storage system gives a component.
func builtBy(values catalog.Values, c catalog.Component, nodes catalog.Nodes) map[catalog.Trait]string {
	built := map[catalog.Trait]string{}
	for _, d := range slices.Backward(catalog.All()) { // the first setting of a trait decides
		if d.Wants == nil {
			continue
		}
		value, _ := normalOrDefault(d, values[d.Name].Text)
		if want, ok := d.Wants(value, c, nodes); ok {
			built[d.Trait] = want
		}
	}
	if c.Kind == catalog.InstanceManager {
		built[catalog.DataEngine] = "true"
	}
	return built
}

// normalOrDefault returns the normal form of a value; of an invalid value, that of the default with the error.
func normalOrDefault(d catalog.Definition, text string) (string, error) {
	normal, err := d.Normalize(text)
	if err != nil {
		normal, _ = d.Normalize(d.Default)
	}
	return normal, err
}

// change is a change of the facts.
type change = func(*Facts)

// set sets a value in the storage system's group, setOwn one in Fairlead's group.
func set(name catalog.Name, value string) change {
	return func(f *Facts) {
		f.SystemValues[name] = value
		f.Values = catalog.Resolve(f.OwnValues, f.SystemValues)
	}
}

func setOwn(name catalog.Name, value string) change {
	return func(f *Facts) {
		f.OwnValues = map[catalog.Name]string{name: value}
		f.Values = catalog.Resolve(f.OwnValues, f.SystemValues)
	}
}

// rolled reports a value as rolled out, underway a roll-out as begun.
func rolled(name catalog.Name, value string) change {
	return func(f *Facts) { f.Reported[name] = Reported{Rolled: &value, Applied: true} }
}

func underway(name catalog.Name) change {
	return func(f *Facts) { f.Reported[name] = Reported{Rolled: f.Reported[name].Rolled, Underway: true} }
}

// only keeps the named components.
func only(names ...string) change {
	return func(f *Facts) {
		f.Components = slices.DeleteFunc(f.Components, func(c catalog.Component) bool { return !slices.Contains(names, c.Name) })
	}
}

// edit changes the named components, all if there is no name.
func edit(do func(*catalog.Component), names ...string) change {
	return func(f *Facts) {
		for i := range f.Components {
			if c := &f.Components[i]; len(names) == 0 || slices.Contains(names, c.Name) {
				do(c)
			}
		}
	}
}

func built(trait catalog.Trait, value string, names ...string) change {
	return edit(func(c *catalog.Component) {
		c.Built = maps.Clone(c.Built)
		c.Built[trait] = value
	}, names...)
}

func uses(name string, instances ...string) change {
	return edit(func(c *catalog.Component) { c.Uses = instances }, name)
}
func optOut(names ...string) change {
	return edit(func(c *catalog.Component) { c.OptOut = true }, names...)
}
func unready(names ...string) change {
	return edit(func(c *catalog.Component) { c.Ready = false }, names...)
}
func terminating(names ...string) change {
	return edit(func(c *catalog.Component) { c.Terminating = true }, names...)
}
func missing(names ...string) change {
	return edit(func(c *catalog.Component) { c.Built, c.Ready, c.Missing = nil, false, true }, names...)
}

// hold delays a repeated change of the CPU request to 800m.
func hold(name string, until time.Duration) change {
	return func(f *Facts) {
		f.Held[name] = Hold{Wants: map[catalog.Trait]string{catalog.CPURequest: "800m"}, Seen: "before", Until: midday.Add(until), Message: "was reverted"}
	}
}

func onNode(name string, do func(*catalog.Node)) change {
	return func(f *Facts) {
		n := f.Nodes[name]
		do(&n)
		f.Nodes[name] = n
	}
}

// addV2 gives every node an instance manager of the v2 data engine.
func addV2(f *Facts) {
	set(catalog.V2DataEngine, "true")(f)
	rolled(catalog.V2DataEngine, "true")(f)
	for _, c := range f.Components[:3] {
		c.Name, c.Engine = "v2-"+c.Name, catalog.EngineV2
		c.Built = builtBy(f.Values, c, f.Nodes)
		f.Components = append(f.Components, c)
	}
}

// attach attaches a v1 volume to node-1, with one replica on node-2.
func attach(f *Facts) {
	f.Rollout.Volumes = append(f.Rollout.Volumes, rwx.Volume{Name: "pvc-a", Attached: true, Engine: catalog.EngineV1, Nodes: []string{"node-1"}, Workloads: []string{"default/web-0"}})
	uses("im-1", "pvc-a-e-0")(f)
	uses("im-2", "pvc-a-r-1")(f)
}

func detach(f *Facts) {
	f.Rollout.Volumes[0].Attached = false
	uses("im-1")(f)
	uses("im-2")(f)
}

// share attaches an RWX volume, whose share manager on node-1 has a priority class.
func share(volume, class string) change {
	return func(f *Facts) {
		f.Rollout.Volumes = append(f.Rollout.Volumes, rwx.Volume{Name: volume, Shared: true, Attached: true, Engine: catalog.EngineV1, Nodes: []string{"node-1"}})
		edit(func(c *catalog.Component) { c.Uses = append(c.Uses, volume+"-e-0") }, "im-1")(f)
		c := catalog.Component{Kind: catalog.ShareManager, Name: "share-manager-" + volume, Node: "node-1", Ready: true, Uses: []string{volume}}
		c.Built = builtBy(f.Values, c, f.Nodes)
		f.Components = append(f.Components, c)
		built(catalog.PriorityClassName, class, c.Name)(f)
	}
}

// planTest is what a plan says after changes of the fleet. plan is in the form of textOf.
type planTest struct {
	changes      []change
	setting      catalog.Name
	status, plan string
}

func checkPlans(t *testing.T, tests map[string]planTest) {
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			p := Make(fleet(test.changes...))
			must.Equal(t, textOf(p), test.plan, "plan")
			must.Equal(t, statusOf(p, test.setting), test.status, "status")
			for _, s := range p.Settings {
				must.Equal(t, s.Applied, s.Phase == rollout.PhaseApplied, "%s: applied %t in phase %s", s.Name, s.Applied, s.Phase)
			}
		})
	}
}

var shortNames = strings.NewReplacer(
	"guaranteed-instance-manager-cpu", "CPU", "system-managed-components-node-selector", "node-selector", "engine-image-pod-liveness-probe-period", "probe-period",
)

func textOfWork(w Work) string {
	names := make([]string, len(w.Settings))
	for i, n := range w.Settings {
		names[i] = string(n)
	}
	return fmt.Sprintf("%s %s for %s", w.Action, w.Component.Name, shortNames.Replace(strings.Join(names, ", ")))
}

// textOf writes a plan: the work of now, of later with its blockers, and pods that are starting.
// Components with the same work are one item, and * marks the next work.
func textOf(p Plan) string {
	var items []string
	add := func(format string, works []Work) {
		last := ""
		for _, w := range works {
			verb, rest, _ := strings.Cut(textOfWork(w), w.Component.Name)
			name, shape := w.Component.Name, fmt.Sprintf(format, verb+"%s"+rest, namesOf(w.Blockers))
			if next, due := p.Next(); due && len(w.Blockers) == 0 && next.Component.Name == name {
				name += "*"
			}
			if shape == last {
				items[len(items)-1] = strings.Replace(items[len(items)-1], " for ", " "+name+" for ", 1)
			} else {
				items = append(items, fmt.Sprintf(shape, name))
			}
			last = shape
		}
	}
	add("%s%s", p.Now)
	add("later %s: %s", p.Later)
	if len(p.Starting) > 0 {
		items = append(items, "starting "+namesOf(p.Starting))
	}
	return strings.Join(items, "; ")
}

func namesOf(blockers []catalog.Blocker) string {
	var names []string
	for _, b := range blockers {
		names = append(names, b.Name)
	}
	return strings.Join(names, ", ")
}

func statusOf(p Plan, name catalog.Name) string {
	s, _ := p.Setting(name)
	return fmt.Sprintf("%s: %s", s.Phase, s.Message)
}
