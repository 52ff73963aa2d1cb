package main

import (
	"context"
	"slices"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/fairlead-io/fairlead/internal/cluster"
)

// checkReads fails a test for each read that a role does not allow. It also returns
// the resources that were read, as they are read.
func checkReads(t *testing.T, role string, rules []rbacv1.PolicyRule) (interceptor.Funcs, map[string]bool) {
	t.Helper()
	scheme, err := cluster.NewScheme()
	if err != nil {
		t.Fatal(err)
	}
	reads := map[string]bool{}
	check := func(verb string, object runtime.Object, name string) {
		kind, err := apiutil.GVKForObject(object, scheme)
		if err != nil {
			t.Fatal(err)
		}
		kind.Kind = strings.TrimSuffix(kind.Kind, "List")
		plural, _ := meta.UnsafeGuessKindToResource(kind)
		reads[plural.Resource] = true
		if !slices.ContainsFunc(rules, func(r rbacv1.PolicyRule) bool {
			return slices.Contains(r.APIGroups, plural.Group) && slices.Contains(r.Resources, plural.Resource) && slices.Contains(r.Verbs, verb) &&
				(len(r.ResourceNames) == 0 || slices.Contains(r.ResourceNames, name))
		}) {
			t.Errorf("%s may not %s %s %s", role, verb, plural.GroupResource(), name)
		}
	}
	return interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, o client.Object, options ...client.GetOption) error {
			check("get", o, key.Name)
			return c.Get(ctx, key, o, options...)
		},
		List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, options ...client.ListOption) error {
			check("list", list, "")
			return c.List(ctx, list, options...)
		},
	}, reads
}
