package clitest

import (
	"bytes"
	"context"
	"os"
	"slices"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/yaml"

	"github.com/fairlead-io/fairlead/internal/reads"
)

// CheckReads fails a test for each read that the ClusterRoles, by folder of manifests, do not allow together.
// The returned map fills with the resources that are read.
func CheckReads(t *testing.T, roles map[string]string) (interceptor.Funcs, map[string]bool) {
	t.Helper()
	scheme, err := reads.NewScheme()
	if err != nil {
		t.Fatal(err)
	}
	var rules []rbacv1.PolicyRule
	for folder, name := range roles {
		rules = append(rules, rulesOf(t, folder, name)...)
	}
	read := map[string]bool{}
	check := func(verb string, object runtime.Object, name string) {
		kind, err := apiutil.GVKForObject(object, scheme)
		if err != nil {
			t.Fatal(err)
		}
		kind.Kind = strings.TrimSuffix(kind.Kind, "List")
		plural, _ := meta.UnsafeGuessKindToResource(kind)
		if kind.Group == reads.NetworkKind.Group { // its name is not the usual plural
			plural.Resource = "network-attachment-definitions"
		}
		read[plural.Resource] = true
		if !slices.ContainsFunc(rules, func(r rbacv1.PolicyRule) bool {
			return slices.Contains(r.APIGroups, plural.Group) && slices.Contains(r.Resources, plural.Resource) && slices.Contains(r.Verbs, verb) &&
				(len(r.ResourceNames) == 0 || slices.Contains(r.ResourceNames, name))
		}) {
			t.Errorf("%v may not %s %s %s", roles, verb, plural.GroupResource(), name)
		}
	}
	return interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, o client.Object, options ...client.GetOption) error {
			check("get", o, key.Name)
			return c.Get(ctx, key, o, options...)
		},
		List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, options ...client.ListOption) error {
			name := "" // the API server takes it from the selector too
			if selector := (&client.ListOptions{}).ApplyOptions(options).FieldSelector; selector != nil {
				name, _ = selector.RequiresExactMatch("metadata.name")
			}
			check("list", list, name)
			return c.List(ctx, list, options...)
		},
	}, read
}

func rulesOf(t *testing.T, folder, name string) []rbacv1.PolicyRule {
	t.Helper()
	data, err := os.ReadFile("../../manifests/" + folder + "/user-roles.yaml")
	if err != nil {
		t.Fatal(err)
	}
	for document := range bytes.SplitSeq(data, []byte("---\n")) {
		var role rbacv1.ClusterRole
		if err := yaml.Unmarshal(document, &role); err != nil { // not strict: the file has other kinds, too
			t.Fatal(err)
		}
		if role.Name == name {
			return role.Rules
		}
	}
	t.Fatalf("%s has no ClusterRole %s", folder, name)
	return nil
}
