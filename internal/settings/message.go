package settings

import (
	"fmt"
	"slices"
	"strings"

	"github.com/fairlead-io/fairlead/internal/storage"
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

// PendingWarning is what somebody reads who changes a setting that can't be
// applied at once. restarts is the number of client pods that will restart.
func PendingWarning(blockers []Blocker, restarts int) string {
	if first := blockers[0]; first.Kind != BlockedByVolume {
		return fmt.Sprintf("accepted; can't be applied yet: %s. Then %s.", first.Message, restartPhrase(restarts))
	}
	return fmt.Sprintf("accepted; will be applied when these RWX volumes are detached: %s. Then %s.",
		Detail(blockers), restartPhrase(restarts))
}

// RollingWarning is the same for a change that is applied at once.
func RollingWarning(restarts int) string {
	return fmt.Sprintf("accepted; no RWX volume is attached, so it is applied now: %s", restartPhrase(restarts))
}

// NodeByNodeWarning is the same with GateNode, which asks for no volume to be detached first.
func NodeByNodeWarning(restarts int) string {
	return fmt.Sprintf("accepted; applied node by node: %s, each when no RWX volume is attached on its node", restartPhrase(restarts))
}

// JoiningWarning is what somebody reads who asks for a network that servers may
// not be on yet: what restarts, and what that waits for.
func JoiningWarning(n storage.Network, r Rollout) string {
	if problems := r.daemonSetProblems(true); len(problems) > 0 {
		return fmt.Sprintf("accepted; network %s can't be joined yet: %s", n, problems[0].Message)
	}
	if r.unreachable() {
		return fmt.Sprintf("accepted; network %s can't be joined yet: %s", n, chooseNetworkFirst)
	}
	busy, everywhere := busyNodes(r.Volumes)
	restarts, waits := 0, []string{}
	for _, c := range r.Clients {
		if slices.Contains(c.VolumeNetworks, storage.VolumeAttachment(n)) {
			continue
		}
		restarts++
		if volumes := append(slices.Clone(everywhere), busy[c.Node]...); len(volumes) > 0 {
			waits = append(waits, fmt.Sprintf("%s (%s)", c.Node, volumes[0]))
		}
	}
	message := fmt.Sprintf("accepted; %s to join network %s, each when no RWX volume is attached on its node", restartPhrase(restarts), n)
	if restarts == 0 {
		message = fmt.Sprintf("accepted; CSI plugin pods are just joining network %s", n)
	}
	if len(waits) > 0 {
		message += "; waiting now: " + FirstOf(waits)
	}
	return message
}

func restartPhrase(restarts int) string {
	if restarts == 1 {
		return "1 CSI plugin pod restarts"
	}
	return fmt.Sprintf("%d CSI plugin pods restart", restarts)
}
