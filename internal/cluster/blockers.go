package cluster

import (
	"github.com/fairlead-io/fairlead/api/v1alpha1"
	"github.com/fairlead-io/fairlead/internal/settings/catalog"
)

// Blockers are the first of them, in the form of the API.
func Blockers(blockers []catalog.Blocker) []v1alpha1.Blocker {
	var list []v1alpha1.Blocker
	for _, b := range blockers[:min(len(blockers), v1alpha1.MaxListed)] {
		list = append(list, v1alpha1.Blocker{Kind: string(b.Kind), Name: b.Name, Nodes: b.Nodes, Workloads: b.Workloads, Message: b.Message})
	}
	return list
}
