package validators

import (
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/fairlead-io/fairlead/internal/settings/catalog"
	"github.com/fairlead-io/fairlead/internal/settings/plan"
)

// refuseForGood refuses what no later moment makes right.
func (v *Verdict) refuseForGood(d catalog.Definition, before, after SettingFacts) {
	normal, err := after.Values.Normal(d)
	if err != nil || d.Same(before.Values[d.Name].Text, normal) {
		return
	}
	switch d.Name {
	case catalog.PriorityClass:
		v.refuseMissingClass(normal, after)
	case catalog.V1DataEngine, catalog.V2DataEngine:
		if normal == "false" {
			v.refuseEngineOff(plan.EngineOf(d.Name), after)
		}
	case catalog.DisableSnapshotPurge:
		v.refuseCleanedUp(normal, after)
	case catalog.StorageNetwork:
		v.refuseLeaving(before)
	}
}

// checkCombination warns of what the value comes to beside other settings and the cluster.
func (v *Verdict) checkCombination(d catalog.Definition, before, after SettingFacts) {
	normal, err := after.Values.Normal(d)
	if err != nil || before.Values[d.Name] == after.Values[d.Name] {
		return
	}
	switch d.Name {
	case catalog.StorageNetworkForRWX:
		v.warnWithoutNetwork(normal, after)
	case catalog.SystemManagedNodeSelector:
		v.warnUnmatched(normal, after)
	case catalog.TaintToleration:
		v.warnNothingTolerated(normal, after)
	}
}

// warnWithoutNetwork: the older RWX setting only says "the storage network too".
func (v *Verdict) warnWithoutNetwork(normal string, after SettingFacts) {
	network := after.Values[catalog.StorageNetwork].Text
	endpoint := after.endpointNetwork()
	switch {
	case endpoint != "":
		v.warn("has no effect while %s is %q, which wins", catalog.EndpointNetworkForRWX, endpoint)
	case normal == "true" && network == "":
		v.warn("has no effect until %s names a network", catalog.StorageNetwork)
	}
}

// endpointNetwork is the value of the newer setting, which wins where it is set.
func (f SettingFacts) endpointNetwork() string {
	return strings.TrimSpace(f.Values[catalog.EndpointNetworkForRWX].Text)
}

// warnUnmatched: components do not start where the selector does not match.
func (v *Verdict) warnUnmatched(normal string, after SettingFacts) {
	if normal == "" || len(after.Nodes) == 0 {
		return
	}
	var matched int
	var unmatched []string
	for name, node := range after.Nodes {
		if node.Has(normal) {
			matched++
		} else if node.Storage {
			unmatched = append(unmatched, name)
		}
	}
	slices.Sort(unmatched)
	switch {
	case matched == 0:
		v.warn("no node has the labels %q: what restarts does not start again anywhere; label nodes first", normal)
	case len(unmatched) > 0:
		v.warn("what restarts on %s does not start there again: label it with %q first, unless you mean that", catalog.FirstOf(unmatched), normal)
	}
}

// warnNothingTolerated: a toleration of a taint that no node has is often a slip of the pen.
func (v *Verdict) warnNothingTolerated(normal string, after SettingFacts) {
	tolerations, err := catalog.ParseTolerations(normal)
	if err != nil || len(after.Nodes) == 0 {
		return
	}
	var idle []string
	for _, t := range tolerations {
		if !toleratesAny(t, after.Nodes) {
			idle = append(idle, catalog.TolerationsTrait([]corev1.Toleration{t}))
		}
	}
	if len(idle) > 0 {
		v.warn("no node has a taint that %s tolerates: is it spelled right?", catalog.FirstOf(idle))
	}
}

func toleratesAny(t corev1.Toleration, nodes catalog.Nodes) bool {
	if t.Key == "" {
		return true // of everything, also of what is yet to come
	}
	for _, node := range nodes {
		if slices.ContainsFunc(node.Taints, func(taint corev1.Taint) bool { return plan.Tolerates(t, taint) }) {
			return true
		}
	}
	return false
}
