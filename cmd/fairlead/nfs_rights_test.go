package main

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

	"github.com/fairlead-io/fairlead/cluster"
)

func TestNFSViewersMayReadWhatIsShown(t *testing.T) {
	scheme, err := cluster.NewScheme()
	if err != nil {
		t.Fatal(err)
	}
	role, reads := nfsViewer(t), map[string]bool{}
	check := func(verb string, object runtime.Object, name string) {
		kind, err := apiutil.GVKForObject(object, scheme)
		if err != nil {
			t.Fatal(err)
		}
		kind.Kind = strings.TrimSuffix(kind.Kind, "List")
		plural, _ := meta.UnsafeGuessKindToResource(kind)
		reads[plural.Resource] = true
		if !slices.ContainsFunc(role.Rules, func(r rbacv1.PolicyRule) bool {
			return slices.Contains(r.APIGroups, plural.Group) && slices.Contains(r.Resources, plural.Resource) && slices.Contains(r.Verbs, verb) &&
				(len(r.ResourceNames) == 0 || slices.Contains(r.ResourceNames, name))
		}) {
			t.Errorf("%s may not %s %s %s", role.Name, verb, plural.GroupResource(), name)
		}
	}
	funcs := interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, o client.Object, options ...client.GetOption) error {
			check("get", o, key.Name)
			return c.Get(ctx, key, o, options...)
		},
		List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, options ...client.ListOption) error {
			check("list", list, "")
			return c.List(ctx, list, options...)
		},
	}
	reader := nfsReaderOf(t, funcs, nfsWorld()...)
	for _, args := range [][]string{nil, {"storage/files"}} {
		if err := showNFS(t.Context(), &strings.Builder{}, reader, outputTable, args, fencesNoon); err != nil {
			t.Error(err)
		}
	}
	if err := showNFSPlan(t.Context(), &strings.Builder{}, reader, outputTable, []string{"fast/one"}, nfsChanges{}); err != nil {
		t.Error(err)
	}
	if _, _, err := (&clientOptions{}).configuration(t.Context(), fencesClient(t, funcs)); err != nil {
		t.Error(err)
	}
	for _, resource := range []string{"nfsservices", "persistentvolumes", "volumeattachments", "nodes", "configmaps"} {
		if !reads[resource] {
			t.Errorf("%s were not read: %v", resource, reads)
		}
	}
}

func nfsViewer(t *testing.T) rbacv1.ClusterRole {
	t.Helper()
	data, err := os.ReadFile("../../manifests/components/nfs/user-roles.yaml")
	if err != nil {
		t.Fatal(err)
	}
	for document := range bytes.SplitSeq(data, []byte("---\n")) {
		var role rbacv1.ClusterRole
		if err := yaml.UnmarshalStrict(document, &role); err != nil {
			t.Fatal(err)
		}
		if role.Name == "fairlead-nfs-viewer" {
			return role
		}
	}
	t.Fatal("there is no ClusterRole fairlead-nfs-viewer")
	return rbacv1.ClusterRole{}
}
