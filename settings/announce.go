package settings

import (
	"fmt"
	"slices"
	"strings"
)

// With are the facts as they would be with other values.
func (f Facts) With(values Values) Facts {
	f.Values = values
	return f
}

// For is the part of the plan that is done for one setting.
func (p Plan) For(name Name) (now, later []Work) {
	other := func(w Work) bool { return !slices.Contains(w.Settings, name) }
	return slices.DeleteFunc(slices.Clone(p.Now), other), slices.DeleteFunc(slices.Clone(p.Later), other)
}

// Announce is what somebody reads who changes a setting: what restarts now, and
// what waits for which volumes. It is "" where nothing is to be done.
func Announce(p Plan, name Name) (pending bool, text string) {
	now, later := p.For(name)
	switch {
	case len(now)+len(later) == 0:
		return false, ""
	case len(later) == 0:
		return false, fmt.Sprintf("accepted; nothing keeps it from being applied now: %s", restarts(now))
	}
	text = "accepted; "
	if len(now) > 0 {
		text += restarts(now) + " now; "
	}
	volumes, others := blockersOf(later)
	switch {
	case len(volumes) == 0:
	case len(now) > 0:
		text += "the rest when these volumes are detached: " + Detail(volumes)
	default:
		text += "will be applied when these volumes are detached: " + Detail(volumes)
	}
	if len(others) > 0 {
		if len(volumes) > 0 {
			text += "; also "
		}
		text += "waiting: " + others[0].Message
		if more := len(others) - 1; more > 0 {
			text += fmt.Sprintf(", and %d more", more)
		}
	}
	return true, text + ". Then " + restarts(later)
}

// blockersOf joins what works of one setting wait for: those that wait for
// volumes wait for the same.
func blockersOf(works []Work) (volumes, others []Blocker) {
	for _, w := range works {
		if w.Blockers[0].Kind == BlockedByVolume {
			volumes = w.Blockers
		} else {
			others = append(others, w.Blockers...)
		}
	}
	return volumes, others
}

// restarts counts what is done by kind: `3 instance managers restart one by one, 4 Deployments roll`.
func restarts(works []Work) string {
	type group struct {
		kind   ComponentKind
		action WorkAction
	}
	var groups []group
	counts := map[group]int{}
	for _, w := range works {
		g := group{w.Component.Kind, w.Action}
		if counts[g] == 0 {
			groups = append(groups, g)
		}
		counts[g]++
	}
	var parts []string
	for _, g := range groups {
		n, verb := counts[g], "restart"
		switch g.action {
		case UpdateComponent:
			verb = "roll"
		case RemoveComponent:
			verb = "go"
		}
		if n == 1 {
			verb = map[string]string{"restart": "restarts", "roll": "rolls", "go": "goes"}[verb]
		}
		part := Count(n, g.kind.Noun()) + " " + verb
		if n > 1 && g.action == RestartComponent {
			part += " one by one"
		}
		parts = append(parts, part)
	}
	return strings.Join(parts, ", ")
}
