package main

import (
	"bytes"
	"context"
	"os"
	"slices"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/yaml"

	"github.com/fairlead-io/fairlead/cluster"
)

// On call, the right that is missing is found out too late.
func TestFenceViewersMayReadWhatDrillsRead(t *testing.T) {
	scheme, err := cluster.NewScheme()
	if err != nil {
		t.Fatal(err)
	}
	role := fenceViewer(t)
	reads := map[string]bool{}
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
	unattached := &storagev1.CSIDriver{ObjectMeta: metav1.ObjectMeta{Name: cephfsDriver}, Spec: storagev1.CSIDriverSpec{AttachRequired: ptr.To(false)}}
	live := fencesClient(t, interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, o client.Object, options ...client.GetOption) error {
			check("get", o, key.Name)
			return c.Get(ctx, key, o, options...)
		},
		List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, options ...client.ListOption) error {
			check("list", list, "")
			return c.List(ctx, list, options...)
		},
	}, append(drillWorld(drillRecord(clientOf(rbdDriver, "rbd", "10.0.0.1/32"))), unattached)...)
	if _, err := drill(t, live, outputTable, "node-1"); err != exitUnfenceable {
		t.Errorf("got %v", err)
	}
	if _, _, err := (&clientOptions{}).configuration(t.Context(), live); err != nil {
		t.Error(err)
	}
	if !reads["pods"] || !reads["networkfences"] || len(reads) < 10 {
		t.Errorf("only these were read: %v", reads)
	}
}

func fenceViewer(t *testing.T) rbacv1.ClusterRole {
	t.Helper()
	data, err := os.ReadFile("../../manifests/components/fencing/user-roles.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var role rbacv1.ClusterRole
	document, _, _ := bytes.Cut(data, []byte("---\n"))
	if err := yaml.UnmarshalStrict(document, &role); err != nil || role.Name != "fairlead-fence-viewer" {
		t.Fatalf("got %s, %v", role.Name, err)
	}
	return role
}
