package catalog

import (
	"fmt"
	"slices"
	"strings"
)

// listed is how many names a message spells out before it counts the rest. An
// API server may cut warnings of more than 256 characters.
const listed = 3

// Detail lists blockers with where they are and who uses them:
// `pvc-a (node-2, pod default/web-0), pvc-b (node-1)`.
func Detail(blockers []Blocker) string {
	return list(blockers, func(b Blocker) string {
		about := slices.Clone(b.Nodes)
		for _, w := range b.Workloads {
			about = append(about, "pod "+w)
		}
		switch {
		case len(about) == 0:
			return b.Name
		case len(about) > listed:
			about = append(about[:listed], fmt.Sprintf("and %d more", len(about)-listed))
		}
		return b.Name + " (" + strings.Join(about, ", ") + ")"
	})
}

// Short is the reason in a few words: `1 RWX volume attached: pvc-a`.
func Short(blockers []Blocker) string {
	if len(blockers) == 0 {
		return ""
	}
	kind := blockers[0].Kind
	var same []Blocker
	for _, b := range blockers {
		if b.Kind == kind {
			same = append(same, b)
		}
	}
	if kind != BlockedByVolume {
		return blockers[0].Message
	}
	return fmt.Sprintf("%s attached: %s", Count(len(same), noun(same[0])), list(same, func(b Blocker) string { return b.Name }))
}

func noun(b Blocker) string {
	if b.Noun != "" {
		return b.Noun
	}
	return "RWX volume"
}

// Count writes a number and its noun: `1 RWX volume`, `3 RWX volumes`.
func Count(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}

func list(blockers []Blocker, text func(Blocker) string) string {
	var items []string
	for i, b := range blockers {
		if i == listed {
			items = append(items, fmt.Sprintf("and %d more", len(blockers)-listed))
			break
		}
		items = append(items, text(b))
	}
	return strings.Join(items, ", ")
}

// FirstOf lists the first names and counts the rest.
func FirstOf(names []string) string {
	if len(names) <= listed {
		return strings.Join(names, ", ")
	}
	return strings.Join(names[:listed], ", ") + fmt.Sprintf(", and %d more", len(names)-listed)
}

// Joined writes one message after the other.
func Joined(messages ...string) string {
	return strings.Join(slices.DeleteFunc(messages, func(m string) bool { return m == "" }), "; ")
}
