package validators

import (
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/fairlead-io/fairlead/internal/longhorn"
	"github.com/fairlead-io/fairlead/internal/settings/catalog"
	"github.com/fairlead-io/fairlead/internal/settings/planner"
)

// refuseImpossible refuses values that could never be applied.
func (v *Verdict) refuseImpossible(d catalog.Definition, before, after SettingFacts) {
	normal, err := after.Values.Normal(d)
	if err != nil || d.Same(before.Values[d.Name].Text, normal) {
		return
	}
	switch d.Name {
	case catalog.PriorityClass:
		v.refuseMissingClass(normal, after)
	case catalog.V1DataEngine, catalog.V2DataEngine:
		if normal == "false" {
			v.refuseEngineOff(planner.EngineOf(d.Name), after)
		}
	case catalog.DisableSnapshotPurge:
		v.refuseWithCleanUp(normal, after)
	case catalog.StorageNetwork:
		v.refuseLeaving(before)
	}
}

// checkCombination warns of values that do not fit other settings or the cluster.
func (v *Verdict) checkCombination(d catalog.Definition, before, after SettingFacts) {
	normal, err := after.Values.Normal(d)
	if err != nil || before.Values[d.Name] == after.Values[d.Name] {
		return
	}
	switch d.Name {
	case catalog.StorageNetworkForRWX:
		v.warnWithoutNetwork(normal, after)
	case catalog.SystemManagedNodeSelector:
		v.warnUnmatchedNodes(normal, after)
	case catalog.TaintToleration:
		v.warnUnusedTolerations(normal, after)
	}
}

// warnWithoutNetwork: the older RWX setting only switches on the use of storage-network.
func (v *Verdict) warnWithoutNetwork(normal string, after SettingFacts) {
	network := after.Values[catalog.StorageNetwork].Text
	endpoint := after.endpointNetwork()
	switch {
	case endpoint != "":
		v.warn("%s has no effect while %s is %q", catalog.StorageNetworkForRWX, catalog.EndpointNetworkForRWX, endpoint)
	case normal == "true" && network == "":
		v.warn("%s has no effect until %s names a network", catalog.StorageNetworkForRWX, catalog.StorageNetwork)
	}
}

// endpointNetwork is the value of the newer setting, which takes precedence if it is set.
func (f SettingFacts) endpointNetwork() string {
	return strings.TrimSpace(f.Values[catalog.EndpointNetworkForRWX].Text)
}

// warnUnmatchedNodes: components do not start on nodes that the selector does not match.
func (v *Verdict) warnUnmatchedNodes(normal string, after SettingFacts) {
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
		v.warn("no node has the labels %q: components that restart have no node to run on; label nodes first", normal)
	case len(unmatched) > 0:
		v.warn("components that restart on %s do not start there again: label the nodes with %q first, unless components are to leave these nodes", catalog.FirstOf(unmatched), normal)
	}
}

// warnUnusedTolerations: a toleration of a taint that no node has is often misspelled.
func (v *Verdict) warnUnusedTolerations(normal string, after SettingFacts) {
	tolerations, err := catalog.ParseTolerations(normal)
	if err != nil || len(after.Nodes) == 0 {
		return
	}
	var unused []string
	for _, t := range tolerations {
		if !toleratesAny(t, after.Nodes) {
			unused = append(unused, catalog.TolerationsTrait([]corev1.Toleration{t}))
		}
	}
	if len(unused) > 0 {
		v.warn("no node has a taint that %s tolerates: check the spelling", catalog.FirstOf(unused))
	}
}

func toleratesAny(t corev1.Toleration, nodes catalog.Nodes) bool {
	if t.Key == "" {
		return true // tolerates every taint
	}
	for _, node := range nodes {
		if slices.ContainsFunc(node.Taints, func(taint corev1.Taint) bool { return planner.Tolerates(t, taint) }) {
			return true
		}
	}
	return false
}

// warnUndone warns of a value that longhorn-manager's next start overwrites with the value of its ConfigMap.
//
// Source: longhorn-manager v1.7.2 datastore/longhorn.go, UpdateCustomizedSettings.
func (v *Verdict) warnUndone(d catalog.Definition, value string, facts SettingFacts) {
	given, isGiven := facts.Defaults[string(d.Name)]
	switch {
	case len(v.Problems) > 0 || facts.Own || !isGiven || d.Same(given, value):
	case given == "" && d.Default != "": // Longhorn keeps the value of a setting that can't be empty
	default:
		v.warn("the next start of %s sets %s to %q again: ConfigMap %s in namespace %s has this value. Change it there too (Helm: defaultSettings)",
			longhorn.Name+"-manager", d.Name, given, facts.Names.DefaultSettings, facts.Names.Namespace)
	}
}
