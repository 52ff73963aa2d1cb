package fencingreads

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/fairlead-io/fairlead/internal/reads/csiaddons"
	"github.com/fairlead-io/fairlead/internal/testkit/must"
	"github.com/fairlead-io/fairlead/internal/testkit/objects"
)

func TestManagerIsSilentIfItsLeaseIsNotRenewed(t *testing.T) {
	lease := func(name, namespace string, age time.Duration) client.Object {
		return &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}, Spec: coordinationv1.LeaseSpec{RenewTime: &metav1.MicroTime{Time: fenceNoon.Add(-age)}}}
	}
	const down = "csi-addons' controller manager seems to be down: it renewed its lease e8cd140a.openshift.io at %s, and now is 2026-01-01T12:00:00Z: look at its pods: kubectl -n %s get pods"
	type all = []client.Object
	for name, test := range map[string]struct {
		leases all
		want   string
	}{
		"no leader election":        {all{lease("another", "x", time.Hour)}, ""},
		"renewed":                   {all{lease(managerLease, "x", 10*time.Second)}, ""},
		"a clock is ahead":          {all{lease(managerLease, "x", -10*time.Second)}, ""},
		"an installation of before": {all{lease(managerLease, "old", time.Hour), lease(managerLease, "x", 10*time.Second)}, ""},
		"down":                      {all{lease(managerLease, "old", time.Hour), lease(managerLease, "x", 2*time.Minute)}, fmt.Sprintf(down, "2026-01-01T11:58:00Z", "x")},
		"in the future":             {all{lease(managerLease, "x", -8*time.Hour)}, fmt.Sprintf(down, "2026-01-01T20:00:00Z", "x")},
	} {
		r := fenceWorld{objects: append(test.leases, nodeAt("node-1", "192.168.1.1"))}.reader(t)
		f, err := r.FenceFacts(clocktesting.NewFakePassiveClock(fenceNoon), nil)(t.Context(), "node-1")
		must.Do(t, err)
		must.Equal(t, f.SilentManager, test.want, "%s", name)
	}
	forbidden := interceptor.Funcs{List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, opts ...client.ListOption) error {
		if _, ok := list.(*coordinationv1.LeaseList); ok {
			return errors.New("forbidden")
		}
		return c.List(ctx, list, opts...)
	}}
	f, err := fenceWorld{funcs: forbidden, objects: all{lease(managerLease, "x", time.Hour), nodeAt("node-1", "192.168.1.1")}}.reader(t).FenceFacts(clocktesting.NewFakePassiveClock(fenceNoon), nil)(t.Context(), "node-1")
	must.True(t, err == nil && f.SilentManager == "", "without the right: %q, %v", f.SilentManager, err)
}

// Older versions of csi-addons have no NetworkFenceClasses: a node is then fenced by driver and Secret.
func TestCSIAddonsIsMissingOnlyWithoutNetworkFences(t *testing.T) {
	for name, test := range map[string]struct {
		absent  client.ObjectList
		missing bool
	}{
		"all installed":    {nil, false},
		"no classes":       {&csiaddons.NetworkFenceClassList{}, false},
		"no nodes":         {&csiaddons.CSIAddonsNodeList{}, false},
		"no NetworkFences": {&csiaddons.NetworkFenceList{}, true},
	} {
		w := fenceWorld{
			objects: append(used(rbd, "one"), nodeAt("node-1", "192.168.1.1"), objects.ClientPod("csi-rbdplugin", "node-1")),
			funcs: interceptor.Funcs{List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, opts ...client.ListOption) error {
				if fmt.Sprintf("%T", list) == fmt.Sprintf("%T", test.absent) {
					return &meta.NoKindMatchError{}
				}
				return c.List(ctx, list, opts...)
			}},
		}
		view := w.facts(t, "node-1")
		if view.Facts.NoCSIAddons != test.missing || len(view.Facts.Ledger) != 1 {
			t.Errorf("%s: missing %t, want %t; the ledger is %+v", name, view.Facts.NoCSIAddons, test.missing, view.Facts.Ledger)
		}
		view = onlyView(t, now(t, w.reader(t)), "node-1", fenceNoon)
		must.True(t, view.Facts.NoCSIAddons == test.missing, "%s, live: missing %t, want %t", name, view.Facts.NoCSIAddons, test.missing)
	}
}
