package webhook

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/fairlead-io/fairlead/internal/longhorn"
	"github.com/fairlead-io/fairlead/internal/testkit/must"
	"github.com/fairlead-io/fairlead/internal/testkit/objects"
	"github.com/fairlead-io/fairlead/webhook/registration"
)

// request is one read of the API server.
type request struct{ verb, group, resource, namespace, name string }

// recorder keeps the reads of a client.
type recorder struct {
	sync.Mutex
	requests []request
}

func (r *recorder) take() []request {
	r.Lock()
	defer r.Unlock()
	taken := r.requests
	r.requests = nil
	return taken
}

func (r *recorder) add(scheme *runtime.Scheme, verb string, o runtime.Object, namespace, name string) {
	gvk, err := apiutil.GVKForObject(o, scheme)
	if err != nil {
		gvk = o.GetObjectKind().GroupVersionKind()
	}
	gvk.Kind = strings.TrimSuffix(gvk.Kind, "List")
	plural, _ := meta.UnsafeGuessKindToResource(gvk)
	resource := strings.ReplaceAll(plural.Resource, "networkattachmentdefinitions", "network-attachment-definitions")
	r.Lock()
	defer r.Unlock()
	r.requests = append(r.requests, request{verb, gvk.Group, resource, namespace, name})
}

func (r *recorder) over(c client.WithWatch) client.WithWatch {
	return interceptor.NewClient(c, interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, o client.Object, options ...client.GetOption) error {
			r.add(c.Scheme(), "get", o, key.Namespace, key.Name)
			return c.Get(ctx, key, o, options...)
		},
		List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, options ...client.ListOption) error {
			r.add(c.Scheme(), "list", list, (&client.ListOptions{}).ApplyOptions(options).Namespace, "")
			return c.List(ctx, list, options...)
		},
	})
}

func permits(rules []rbacv1.PolicyRule, r request) bool {
	return slices.ContainsFunc(rules, func(p rbacv1.PolicyRule) bool {
		return slices.Contains(p.APIGroups, r.group) && slices.Contains(p.Resources, r.resource) && slices.Contains(p.Verbs, r.verb) &&
			(len(p.ResourceNames) == 0 || slices.Contains(p.ResourceNames, r.name))
	})
}

// The roles of the webhook's account are the rights of the rows: a rule that reads more would fail in a cluster.
func TestRulesReadOnlyWhatTheirRowsAllow(t *testing.T) {
	cluster := slices.Concat(onNetwork(), serving(), networkSettings(), []client.Object{
		objects.LonghornSetting("taint-toleration", "a:NoSchedule"), attachedVolume("pvc-b"), objects.Headless("pvc-b", storageNet, onClusterIP), nfsService("hard"),
	})
	byPath := reviewsOfEveryPath()
	for _, row := range Installed() {
		t.Run(strings.Trim(row.Path, "/"), func(t *testing.T) {
			reads := &recorder{}
			h := newRig(t, reads.over(fakeClient(t, cluster...)), volumeNetworksOn)
			reads.take() // of the process, which watches volumes
			h.ask(t, row.Path, byPath[row.Path])
			for _, r := range reads.take() {
				if r.resource == "leases" && r.namespace == registration.Namespace {
					continue // a role of its own, in Fairlead's namespace
				}
				here := r.namespace == longhorn.DefaultNames().Namespace && permits(row.Here, r)
				must.Check(t, here || permits(row.Cluster, r), "%+v is not in the rights of the row", r)
			}
		})
	}
}

func TestMergedRightsAreTheSame(t *testing.T) {
	for _, row := range Installed() {
		merged := Merged(slices.Concat(row.Cluster, row.Here))
		for _, r := range slices.Concat(row.Cluster, row.Here) {
			for _, verb := range r.Verbs {
				name := strings.Join(r.ResourceNames, "")
				must.Check(t, permits(merged, request{verb, r.APIGroups[0], r.Resources[0], "", name}), "%s %v is lost in %v", verb, r, merged)
			}
		}
		seen := map[string]bool{}
		for _, r := range merged {
			for _, resource := range r.Resources {
				key := fmt.Sprint(r.APIGroups, resource, r.ResourceNames)
				must.Check(t, !seen[key], "%s is there twice", key)
				seen[key] = true
			}
		}
	}
}
