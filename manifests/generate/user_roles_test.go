package main

import (
	"bytes"
	"os"
	"slices"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	"sigs.k8s.io/yaml"

	"github.com/fairlead-io/fairlead/settings"
)

// To override a gate is given to nobody by the way.
func TestOnlyOneRoleOverridesGates(t *testing.T) {
	data, err := os.ReadFile("../base/user-roles.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for document := range bytes.SplitSeq(data, []byte("---\n")) {
		var role rbacv1.ClusterRole
		if err := yaml.UnmarshalStrict(document, &role); err != nil {
			t.Fatal(err)
		}
		for _, rule := range role.Rules {
			if slices.Contains(rule.Verbs, rbacv1.VerbAll) {
				t.Errorf("%s: verb *", role.Name)
			}
			if slices.Contains(rule.Verbs, settings.OverrideVerb) {
				names = append(names, role.Name)
				if len(role.Labels) > 0 {
					t.Errorf("%s is aggregated: %v", role.Name, role.Labels)
				}
			}
		}
	}
	if !slices.Equal(names, []string{"fairlead-break-glass"}) {
		t.Errorf("got %v", names)
	}
}
