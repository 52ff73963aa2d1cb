package catalog

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// listed is the number of names in a message, which counts the rest.
// An API server may cut warnings of more than 256 characters.
const listed = 3

// Detail lists blockers with their nodes and workloads:
// `pvc-a (node-2, pod default/web-0), pvc-b (node-1, node-2; 5 pods)`.
func Detail(blockers []Blocker) string {
	return list(blockers, func(b Blocker) string {
		if users := usersOf(b); users != "" {
			return b.Name + " (" + users + ")"
		}
		return b.Name
	})
}

// usersOf names nodes and pods if they are few, otherwise the nodes and the number of pods.
func usersOf(b Blocker) string {
	var pods []string
	for _, w := range b.Workloads {
		pods = append(pods, "pod "+w)
	}
	switch {
	case len(b.Nodes)+len(pods) <= listed:
		return strings.Join(slices.Concat(b.Nodes, pods), ", ")
	case len(b.Nodes) == 0:
		return FirstOf(pods)
	case len(pods) == 0:
		return FirstOf(b.Nodes)
	}
	return FirstOf(b.Nodes) + "; " + Count(len(pods), "pod")
}

// Short is the reason in a few words: `1 RWX volume attached: pvc-a`.
func Short(blockers []Blocker) string {
	if len(blockers) == 0 {
		return ""
	}
	first := blockers[0]
	if first.Kind != BlockedByVolume {
		return first.Message
	}
	volumes := slices.DeleteFunc(slices.Clone(blockers), func(b Blocker) bool { return b.Kind != BlockedByVolume })
	noun := cmp.Or(first.Noun, "RWX volume")
	return fmt.Sprintf("%s attached: %s", Count(len(volumes), noun), list(volumes, func(b Blocker) string { return b.Name }))
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

// Joined joins messages, without empty messages.
func Joined(messages ...string) string {
	return strings.Join(slices.DeleteFunc(messages, func(m string) bool { return m == "" }), "; ")
}
