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
	var first []string
	for _, b := range blockers[:min(len(blockers), listed)] {
		text := b.Name
		if users := usersOf(b); users != "" {
			text += " (" + users + ")"
		}
		first = append(first, text)
	}
	return counted(first, len(blockers))
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
	var names []string
	volumes := 0 // there may be thousands
	for i := range blockers {
		if blockers[i].Kind != BlockedByVolume {
			continue
		}
		if volumes++; volumes <= listed {
			names = append(names, blockers[i].Name)
		}
	}
	return fmt.Sprintf("%s attached: %s", Count(volumes, cmp.Or(first.Noun, RWXVolume)), counted(names, volumes))
}

// Count writes a number and its noun: `1 RWX volume`, `3 RWX volumes`.
func Count(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}

// FirstOf lists the first names and counts the rest.
func FirstOf(names []string) string {
	return counted(names[:min(len(names), listed)], len(names))
}

func counted(first []string, of int) string {
	text := strings.Join(first, ", ")
	if more := of - len(first); more > 0 {
		text += fmt.Sprintf(", and %d more", more)
	}
	return text
}

// Joined joins messages, without empty messages.
func Joined(messages ...string) string {
	return strings.Join(slices.DeleteFunc(messages, func(m string) bool { return m == "" }), "; ")
}
