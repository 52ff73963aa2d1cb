package rollout

import (
	"fmt"
	"slices"

	"github.com/fairlead-io/fairlead/internal/settings/catalog"
	"github.com/fairlead-io/fairlead/internal/storage"
)

// PendingWarning is the warning for the user who changes a setting that can't be
// applied at once. restarts is the number of client pods that will restart.
func PendingWarning(blockers []catalog.Blocker, restarts int) string {
	if first := blockers[0]; first.Kind != catalog.BlockedByVolume {
		return fmt.Sprintf("accepted; can't be applied yet: %s. Then %s.", first.Message, restartPhrase(restarts))
	}
	return fmt.Sprintf("accepted; will be applied when these RWX volumes are detached: %s. Then %s.",
		catalog.Detail(blockers), restartPhrase(restarts))
}

// RollingWarning is the same for a change that is applied at once.
func RollingWarning(restarts int) string {
	return fmt.Sprintf("accepted; no RWX volume is attached, so it is applied now: %s", restartPhrase(restarts))
}

// NodeByNodeWarning is the same with GateNode, which asks for no volume to be detached first.
func NodeByNodeWarning(restarts int) string {
	return fmt.Sprintf("accepted; applied node by node: %s, each when no RWX volume is attached on its node", restartPhrase(restarts))
}

// JoiningWarning is the warning for the user who asks for a network that servers may
// not be on yet: what restarts, and what that waits for.
func JoiningWarning(n storage.Network, r Rollout) string {
	if problems := r.daemonSetProblems(true); len(problems) > 0 {
		return fmt.Sprintf("accepted; network %s can't be joined yet: %s", n, problems[0].Message)
	}
	if r.unreachable() {
		return fmt.Sprintf("accepted; network %s can't be joined yet: %s", n, chooseNetworkFirst)
	}
	busy, everywhere := catalog.BusyNodes(r.Volumes)
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
		message += "; waiting now: " + catalog.FirstOf(waits)
	}
	return message
}

func restartPhrase(restarts int) string {
	if restarts == 1 {
		return "1 CSI plugin pod restarts"
	}
	return fmt.Sprintf("%d CSI plugin pods restart", restarts)
}
