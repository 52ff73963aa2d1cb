package main

import (
	"bytes"
	"os"
	"slices"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	"sigs.k8s.io/yaml"

	"github.com/fairlead-io/fairlead/internal/fence"
	"github.com/fairlead-io/fairlead/internal/testkit/must"
)

// No other role includes the right to override a gate.
func TestOnlyOneRoleOverridesGates(t *testing.T) {
	for file, want := range map[string]struct{ role, resource string }{
		"../components/fencing/user-roles.yaml": {"fairlead-fence-break-glass", "nodefences"},
	} {
		data, err := os.ReadFile(file)
		must.Do(t, err)
		var names []string
		for document := range bytes.SplitSeq(data, []byte("---\n")) {
			var role rbacv1.ClusterRole
			must.Do(t, yaml.UnmarshalStrict(document, &role))
			for _, rule := range role.Rules {
				must.Check(t, !slices.Contains(rule.Verbs, rbacv1.VerbAll), "%s: verb *", role.Name)
				if slices.Contains(rule.Verbs, fence.OverrideVerb) {
					names = append(names, role.Name)
					if len(role.Labels) > 0 || !slices.Equal(rule.Resources, []string{want.resource}) {
						t.Errorf("%s is aggregated (%v), or for more: %v", role.Name, role.Labels, rule.Resources)
					}
				}
			}
		}
		must.Equal(t, names, []string{want.role}, "%s", file)
	}
}
