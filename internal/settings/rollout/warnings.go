package rollout

import (
	"fmt"
	"slices"

	"github.com/fairlead-io/fairlead/internal/multus"
	"github.com/fairlead-io/fairlead/internal/settings/catalog"
)

// EffectPrefix begins each warning about what a change does in the cluster.
const EffectPrefix = "accepted; "

// applyingMessage describes a change that begins now.
func (r Rollout) applyingMessage() string {
	restarts := restartPhrase(len(r.Clients))
	if r.Gate == GateNode && len(catalog.SharedVolumeGate(r.Volumes)) > 0 {
		return "being applied node by node: " + restarts + ", " + whenNodeIsFree
	}
	return "being applied now: " + restarts
}

const whenNodeIsFree = "each when no RWX volume is attached on its node"

// JoiningWarning is the warning about a request for a network that servers may not use yet.
func JoiningWarning(n multus.Network, r Rollout) string {
	if problems := r.daemonSetProblems(true); len(problems) > 0 {
		return EffectPrefix + fmt.Sprintf("network %s can't be joined yet: %s", n, problems[0].Message)
	}
	if r.NoneReachable() {
		return EffectPrefix + fmt.Sprintf("network %s can't be joined yet: %s", n, chooseNetworkFirst)
	}
	busy, everywhere := catalog.BusyNodes(r.Volumes)
	restarts, waits := 0, []string{}
	for _, c := range r.Clients {
		if slices.Contains(c.VolumeNetworks, multus.VolumeAttachment(n)) {
			continue
		}
		restarts++
		if volumes := append(slices.Clone(everywhere), busy[c.Node]...); len(volumes) > 0 {
			waits = append(waits, fmt.Sprintf("%s (%s)", c.Node, volumes[0]))
		}
	}
	message := fmt.Sprintf("%s to join network %s, %s", restartPhrase(restarts), n, whenNodeIsFree)
	if restarts == 0 {
		message = fmt.Sprintf("CSI plugin pods are already joining network %s", n)
	}
	if len(waits) > 0 {
		slices.Sort(waits) // pods come in the order of their random names
		message += "; waiting now: " + catalog.FirstOf(waits)
	}
	return EffectPrefix + message
}
