package ui

import (
	"context"
	"slices"
	"strings"

	schedulingv1 "k8s.io/api/scheduling/v1"

	"github.com/fairlead-io/fairlead/internal/reads"
	"github.com/fairlead-io/fairlead/internal/settings/catalog"
)

// suggest returns values that a setting could have here: those that its form names, and for networks and priority classes
// what the cluster has. What can't be read is not suggested.
func (s clusterSource) suggest(ctx context.Context, name string) []string {
	ctx, cancel := context.WithTimeout(ctx, readTimeout)
	defer cancel()
	d, known := catalog.Lookup(name)
	if !known {
		return nil
	}
	values := []string{d.Default}
	for _, value := range []string{"true", "false"} {
		if strings.Contains(d.Form, `"`+value+`"`) {
			values = append(values, value)
		}
	}
	switch {
	case d.NamesNetwork:
		networks, _ := reads.Networks(ctx, s.target.Live)
		for network, usable := range networks {
			if usable {
				values = append(values, network.String())
			}
		}
	case d.Name == catalog.PriorityClass:
		var classes schedulingv1.PriorityClassList
		if s.target.Live.List(ctx, &classes) == nil {
			for _, c := range classes.Items {
				values = append(values, c.Name)
			}
		}
	}
	slices.Sort(values)
	return slices.DeleteFunc(slices.Compact(values), func(v string) bool { return v == "" })
}
