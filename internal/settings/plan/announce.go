package plan

import (
	"fmt"
	"slices"
	"strings"

	"github.com/fairlead-io/fairlead/internal/settings/catalog"
)

// For is the part of the plan that is done for one setting.
func (p Plan) For(name catalog.Name) (now, later []Work) {
	return worksFor(p.Now, name), worksFor(p.Later, name)
}

func worksFor(works []Work, name catalog.Name) []Work {
	return slices.DeleteFunc(slices.Clone(works), func(w Work) bool { return !slices.Contains(w.Settings, name) })
}

// Waits tells whether something of the setting waits.
func (p Plan) Waits(name catalog.Name) bool {
	return len(worksFor(p.Later, name))+len(worksFor(p.Ending, name)) > 0
}

// describe says what restarts for a setting now, and what waits for what; "" where
// no component is to be changed. Whoever changes the setting reads it, and whoever
// looks at its status or plan.
func (p Plan) describe(name catalog.Name) string {
	now, later := p.For(name)
	ending := worksFor(p.Ending, name)
	switch {
	case len(now)+len(later)+len(ending) == 0:
		return ""
	case len(later)+len(ending) == 0:
		return "being applied now: " + restarts(now) + clientsWait(now, name)
	}
	text, when := "", "will be applied when these "
	if len(now) > 0 {
		text = restarts(now) + " now; "
		when = "the rest when these "
	}
	waits := waitsOf(slices.Concat(later, ending), when)
	if len(later) == 0 {
		return text + waits
	}
	then := restarts(later)
	if strings.Contains(text, oneByOne) { // once is enough
		then = strings.ReplaceAll(then, oneByOne, "")
	}
	return text + waits + ". Then " + then
}

// waitsOf says what works of one setting wait for.
func waitsOf(works []Work, when string) string {
	volumes, running, others := blockersOf(works)
	var waits []string
	if len(volumes) > 0 {
		waits = append(waits, when+"volumes are detached: "+catalog.Detail(volumes))
	}
	if len(running) > 0 && len(volumes) == 0 { // else they are the volumes'
		waits = append(waits, when+"engines and replicas have stopped: "+catalog.FirstOf(running))
	}
	if len(others) > 0 {
		text := "waiting: " + others[0].Message
		if len(waits) > 0 {
			text = "also " + text
		}
		if more := len(others) - 1; more > 0 {
			text += fmt.Sprintf(", and %d more", more)
		}
		waits = append(waits, text)
	}
	return strings.Join(waits, "; ")
}

// blockersOf joins what works of one setting wait for. What runs in instance managers is told by its own
// name, as `pvc-a-e-0 (node-1)`.
func blockersOf(works []Work) (volumes []catalog.Blocker, running []string, others []catalog.Blocker) {
	told := map[*catalog.Blocker]bool{} // what many lack is one thing
	for _, w := range works {
		switch b := w.Blockers[0]; {
		case told[&w.Blockers[0]]:
		case b.Kind == catalog.BlockedByVolume:
			told[&w.Blockers[0]] = true
			volumes = append(volumes, w.Blockers...)
		case b.Noun == inUseNoun && w.Component.Kind == catalog.InstanceManager:
			for _, instance := range w.Component.Uses {
				running = append(running, fmt.Sprintf("%s (%s)", instance, w.Component.Node))
			}
		default:
			told[&w.Blockers[0]] = true
			others = append(others, w.Blockers...)
		}
	}
	return volumesFirst(volumes), running, others
}

// clientsWait: the template of the CSI plugin is written at once, and its pods
// restart where that hurts no mount. A setting that waits for volumes has none left then.
func clientsWait(works []Work, name catalog.Name) string {
	d, _ := catalog.Lookup(string(name))
	if d.Gate == catalog.AtOnce && slices.ContainsFunc(works, func(w Work) bool { return w.Component.Client }) {
		return "; CSI plugin pods restart each when no RWX volume is attached on its node"
	}
	return ""
}

// restarts counts what is done, by kind and in order: `4 Deployments and 2
// DaemonSets roll, 3 instance managers restart one by one`.
func restarts(works []Work) string {
	var actions []WorkAction
	kinds := map[WorkAction][]catalog.ComponentKind{}
	counts := map[WorkAction]map[catalog.ComponentKind]int{}
	for _, w := range works {
		action, kind := w.Action, w.Component.Kind
		if counts[action] == nil {
			actions, counts[action] = append(actions, action), map[catalog.ComponentKind]int{}
		}
		if counts[action][kind] == 0 {
			kinds[action] = append(kinds[action], kind)
		}
		counts[action][kind]++
	}
	var parts []string
	for _, action := range actions {
		var components []string
		total := 0
		for _, kind := range kinds[action] {
			n := counts[action][kind]
			total += n
			components = append(components, catalog.Count(n, kind.Noun()))
		}
		parts = append(parts, and(components)+" "+verb(action, total))
	}
	return strings.Join(parts, ", ")
}

const oneByOne = " one by one"

func verb(action WorkAction, of int) string {
	one, many := "restarts", "restart"+oneByOne
	switch action {
	case UpdateComponent:
		one, many = "rolls", "roll"
	case RemoveComponent:
		one, many = "is removed", "are removed"
	}
	if of == 1 {
		return one
	}
	return many
}

// and joins words: `a, b and c`.
func and(words []string) string {
	if n := len(words) - 1; n > 0 {
		return strings.Join(words[:n], ", ") + " and " + words[n]
	}
	return strings.Join(words, "")
}
