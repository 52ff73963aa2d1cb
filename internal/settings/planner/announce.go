package planner

import (
	"fmt"
	"slices"
	"strings"

	"github.com/fairlead-io/fairlead/internal/settings/catalog"
)

// WorkFor returns the work for one setting.
func (p Plan) WorkFor(name catalog.Name) (now, later []Work) {
	return filterWork(p.Now, name), filterWork(p.Later, name)
}

func filterWork(works []Work, name catalog.Name) []Work {
	return slices.DeleteFunc(slices.Clone(works), func(w Work) bool { return !slices.Contains(w.Settings, name) })
}

// Waits reports whether a part of the setting waits.
func (p Plan) Waits(name catalog.Name) bool {
	return len(filterWork(p.Later, name))+len(filterWork(p.Ending, name)) > 0
}

// describe says what restarts for a setting now, and what waits; "" if no component changes.
// Admission warnings, status and plans show this text.
func (p Plan) describe(name catalog.Name) string {
	now, later := p.WorkFor(name)
	ending := filterWork(p.Ending, name)
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
	if strings.Contains(text, oneByOne) { // said already
		then = strings.ReplaceAll(then, oneByOne, "")
	}
	return text + waits + ". Then " + then
}

// waitsOf describes the blockers of work for one setting.
func waitsOf(works []Work, when string) string {
	volumes, running, others := blockersOf(works)
	var waits []string
	if len(volumes) > 0 {
		waits = append(waits, when+"volumes are detached: "+catalog.Detail(volumes))
	}
	if len(running) > 0 && len(volumes) == 0 { // otherwise they belong to the volumes
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

// blockersOf collects the blockers of work for one setting. Instances are named with their node:
// `pvc-a-e-0 (node-1)`.
func blockersOf(works []Work) (volumes []catalog.Blocker, running []string, others []catalog.Blocker) {
	seen := map[*catalog.Blocker]bool{} // components share slices of blockers
	for _, w := range works {
		switch b := w.Blockers[0]; {
		case seen[&w.Blockers[0]]:
		case b.Kind == catalog.BlockedByVolume:
			seen[&w.Blockers[0]] = true
			volumes = append(volumes, w.Blockers...)
		case b.Noun == inUseNoun && w.Component.Kind == catalog.InstanceManager:
			for _, instance := range w.Component.Uses {
				running = append(running, fmt.Sprintf("%s (%s)", instance, w.Component.Node))
			}
		default:
			seen[&w.Blockers[0]] = true
			others = append(others, w.Blockers...)
		}
		if len(w.Window) > 0 && !seen[&w.Window[0]] {
			seen[&w.Window[0]] = true
			others = append(others, w.Window...)
		}
	}
	return volumesFirst(volumes), running, others
}

// clientsWait says when CSI plugin pods restart. Their template is written at once, but the pods
// restart only on nodes without RWX volumes. Settings that wait for volumes need no such text.
func clientsWait(works []Work, name catalog.Name) string {
	d, _ := catalog.Lookup(string(name))
	if d.Gate == catalog.AtOnce && slices.ContainsFunc(works, func(w Work) bool { return w.Component.Client }) {
		return "; CSI plugin pods restart each when no RWX volume is attached on its node"
	}
	return ""
}

// restarts counts work by kind: `4 Deployments and 2 DaemonSets roll, 3 instance managers restart one by one`.
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

// and joins items: `a, b and c`.
func and(words []string) string {
	if n := len(words) - 1; n > 0 {
		return strings.Join(words[:n], ", ") + " and " + words[n]
	}
	return strings.Join(words, "")
}
