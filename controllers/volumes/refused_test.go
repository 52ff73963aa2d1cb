package volumes

import (
	"errors"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fairlead-io/fairlead/api/v1alpha1"
	"github.com/fairlead-io/fairlead/internal/longhorn"
	"github.com/fairlead-io/fairlead/internal/testkit/fakeapi"
	"github.com/fairlead-io/fairlead/internal/testkit/must"
)

// Nothing is deleted before the API server admits its successor.
func TestRefusedRepairDeletesNothing(t *testing.T) {
	for _, refused := range []string{"create Service/v", "delete Service/v", "delete Pod/share-manager-v"} {
		t.Run(refused, func(t *testing.T) {
			f := newFixture(t, server(), user())
			change(f, longhorn.Name, func(r *v1alpha1.NetworkRollout) { r.Status.Clients.Network, r.Status.Servers.Network = "", "" })
			change(f, "v", func(s *corev1.Service) { s.Annotations = nil })
			f.refuse(refused)
			must.Equal(t, f.reconcile(), inUseRetry, "again after")
			must.Check(t, f.service() != nil && f.serverUID() != "", "Service %v, server pod %q", f.service(), f.serverUID())
			if notes := f.Events.Notes(); len(notes) != 1 || !strings.HasPrefix(notes[0], "Warning Refused: ") || !strings.Contains(notes[0], "a policy says no") {
				t.Errorf("got events %q", notes)
			}
			f.Client.Before = nil
			f.Pass(inUseRetry)
			f.reconcile()
			must.Check(t, f.service() == nil && f.serverUID() == "", "Service %v, server pod %q", f.service(), f.serverUID())
		})
	}
}

func TestRefusedEndpointDoesNotStopTheRepair(t *testing.T) {
	f := newFixture(t, server(), user())
	change(f, "v", func(sm *longhorn.ShareManager) { sm.Status.Endpoint = "nfs://10.0.0.1/v" })
	f.refuse("patch/status ShareManager/v")
	_, err := f.r.Reconcile(f.Context(), ctrl.Request{NamespacedName: client.ObjectKey{Namespace: names.Namespace, Name: "v"}})
	must.Check(t, apierrors.IsForbidden(err), "got %v", err)
	must.Equal(t, f.serverUID(), "", "server pod")
	must.Check(t, slices.ContainsFunc(f.Events.Notes(), func(n string) bool { return strings.Contains(n, "a policy says no") }), "got events %q", f.Events.Notes())
}

// refuse makes the API server refuse a write, also in dry runs.
func (f *fixture) refuse(write string) {
	f.Client.Before = func(w fakeapi.Write) error {
		if strings.TrimPrefix(w.String(), "dry-run ") != write {
			return nil
		}
		return apierrors.NewForbidden(schema.GroupResource{Resource: fakeapi.KindOf(w.Object)}, w.Object.GetName(), errors.New("a policy says no"))
	}
}
