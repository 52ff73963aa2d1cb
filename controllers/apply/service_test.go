package apply

import (
	"errors"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fairlead-io/fairlead/api/v1alpha1"
	"github.com/fairlead-io/fairlead/internal/longhorn"
	"github.com/fairlead-io/fairlead/internal/multus"
	"github.com/fairlead-io/fairlead/internal/rwx"
	"github.com/fairlead-io/fairlead/internal/settings/rollout"
	"github.com/fairlead-io/fairlead/internal/testkit"
	"github.com/fairlead-io/fairlead/internal/testkit/fakeapi"
	"github.com/fairlead-io/fairlead/internal/testkit/must"
	"github.com/fairlead-io/fairlead/internal/testkit/objects"
)

// replacements are the cases in which the Service of a detached volume is replaced.
var replacements = map[string]struct {
	on            multus.Attachment
	before, after []func(*corev1.Service)
	inPlace       bool
}{
	"to the network":     {on: netOne, after: []func(*corev1.Service){headlessOn(netOne)}},
	"from the network":   {before: []func(*corev1.Service){headlessOn(netOne)}},
	"to another network": {on: netOne, before: []func(*corev1.Service){headlessOn(netTwo)}, after: []func(*corev1.Service){headlessOn(netOne)}, inPlace: true},
	"from the network, without annotations of others": {
		before: []func(*corev1.Service){func(s *corev1.Service) { s.Annotations = map[string]string{} }, headlessOn(netOne)},
		after:  []func(*corev1.Service){func(s *corev1.Service) { s.Annotations = nil }},
	},
	"from the network, where Longhorn made it headless": { // by the settings' values, without a selector to record
		before: []func(*corev1.Service){headlessOn(netOne), func(s *corev1.Service) { delete(s.Annotations, rwx.SelectorAnnotation) }},
		after:  []func(*corev1.Service){func(s *corev1.Service) { s.Spec.Selector["longhorn.io/managed-by"] = "longhorn-manager" }},
	},
	"to the network, without a selector": {
		on:     netOne,
		before: []func(*corev1.Service){func(s *corev1.Service) { s.Spec.Selector = nil }},
		after: []func(*corev1.Service){func(s *corev1.Service) {
			headlessOn(netOne)(s)
			delete(s.Annotations, rwx.SelectorAnnotation)
		}},
	},
}

func TestServiceOfDetachedVolumeIsReplaced(t *testing.T) {
	for name, test := range replacements {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t, test.on, serviceOf("v", test.before...))
			before := f.service("v").UID
			f.comeToRest()
			f.wantService(serviceOf("v", test.after...))
			f.wantApplied()
			if inPlace := f.service("v").UID == before; inPlace != test.inPlace {
				t.Errorf("changed in place: %v", inPlace)
			}
		})
	}
}

// Invariant 7: a crash before or after any write resumes.
func TestCrashDuringServiceReplacementResumes(t *testing.T) {
	must.HaveTime(t)
	for name, test := range replacements {
		t.Run(name, func(t *testing.T) {
			whole := newFixture(t, test.on, serviceOf("v", test.before...))
			whole.comeToRest()
			must.True(t, whole.writes() >= 3, "only %d writes", whole.writes())
			before, after := serviceOf("v", test.before...), serviceOf("v", test.after...)
			for n := range whole.writes() * 2 {
				f := newFixture(t, test.on, serviceOf("v", test.before...))
				f.Client.CrashAt(n/2, n%2 == 1)
				for range 20 {
					if err := f.reconcile(); !f.Client.Crashed() {
						f.Must(err)
					}
				}
				must.True(t, f.Client.Crashed(), "the controller does not get to write %d", n/2)
				switch s := f.service("v"); {
				case test.inPlace:
				case s == nil && f.rollout().Status.Replacing == "":
					t.Fatalf("write %d, done %v: the Service is lost", n/2, n%2 == 1)
				case s == nil:
				case (s.Spec.ClusterIP == corev1.ClusterIPNone) == (after.Spec.ClusterIP == corev1.ClusterIPNone):
					f.wantService(after)
				default:
					f.wantService(before)
				}
				f.restart()
				f.comeToRest()
				f.wantService(after)
				f.wantApplied()
				var all corev1.ServiceList
				if f.Must(f.List(t.Context(), &all)); len(all.Items) != 1 {
					t.Fatalf("write %d, done %v: %d Services", n/2, n%2 == 1, len(all.Items))
				}
			}
		})
	}
}

// interrupt lets the controller fail to recreate Service v.
func (f *fixture) interrupt() {
	f.Helper()
	f.before["create Service/v"] = func(client.Object) error { return fakeapi.ErrCrashed }
	if err := f.reconcile(); !errors.Is(err, fakeapi.ErrCrashed) || f.service("v") != nil {
		f.Fatalf("got %v, %+v", err, f.service("v"))
	}
	delete(f.before, "create Service/v")
}

func TestResumedReplacementFollowsThePresentRecord(t *testing.T) {
	f := newFixture(t, netOne, serviceOf("v"))
	f.interrupt()
	testkit.Change(f.Bench, names.Namespace, longhorn.Name, func(r *v1alpha1.NetworkRollout) { r.Status.Servers.Network = "" })
	f.restart()
	f.Must(f.reconcile())
	f.wantService(serviceOf("v"))
}

// After an error the controller goes on with a cache that may lack its own note.
func TestBegunReplacementComesBeforeTheNext(t *testing.T) {
	f := newFixture(t, netOne, serviceOf("v"), serviceOf("w"))
	f.Must(f.cache.Hold(t.Context(), f.rollout()))
	f.interrupt()
	for range 3 {
		f.Must(f.reconcile())
	}
	f.cache.Release()
	f.comeToRest()
	f.wantService(serviceOf("v", headlessOn(netOne)))
	f.wantService(serviceOf("w", headlessOn(netOne)))
}

// A finalizer keeps the old Service for a while: a creation would fail, and its deletion would then lose the Service.
func TestTerminatingServiceIsWaitedFor(t *testing.T) {
	f := newFixture(t, netOne, serviceOf("v", func(s *corev1.Service) { s.Finalizers = []string{"example.io/wait"} }))
	for range 5 {
		f.Must(f.reconcile())
	}
	old := f.service("v")
	must.True(t, old != nil && old.DeletionTimestamp != nil, "got %+v", old)
	f.restart()
	f.Must(f.reconcile())
	must.True(t, f.rollout().Status.Replacing != "", "the replacement is forgotten")
	before := f.writes()
	if f.Must(f.reconcile()); f.writes()-before > 1 {
		t.Fatalf("%d writes of one look", f.writes()-before)
	}
	old.Finalizers = nil
	f.Must(f.Update(t.Context(), old))
	must.True(t, f.service("v") == nil, "the old Service still exists")
	f.comeToRest()
	f.wantService(serviceOf("v", headlessOn(netOne)))
}

func TestServiceRecreatedByLonghornIsReplacedLater(t *testing.T) {
	f := newFixture(t, netOne, serviceOf("v"))
	f.before["create Service/v"] = func(client.Object) error { return f.Create(t.Context(), serviceOf("v", labelled)) }
	f.Must(f.reconcile())
	f.wantService(serviceOf("v", labelled))
	delete(f.before, "create Service/v")
	f.comeToRest()
	f.wantService(serviceOf("v", labelled, headlessOn(netOne)))
}

// Another writer changes the Service between the decision and the deletion.
func TestChangedServiceIsLeftToTheNextLook(t *testing.T) {
	f := newFixture(t, netOne, serviceOf("v"))
	f.before["delete Service/v"] = func(client.Object) error {
		delete(f.before, "delete Service/v")
		testkit.Change(f.Bench, names.Namespace, "v", labelled)
		return nil
	}
	f.comeToRest()
	f.wantService(serviceOf("v", labelled, headlessOn(netOne)))
}

func TestServiceChangedSinceTheDecisionIsLeft(t *testing.T) {
	f := newFixture(t, netOne, serviceOf("v", headlessOn(netTwo)))
	for what, moved := range map[string]func(*rwx.Service){
		"another version": func(s *rwx.Service) { s.ResourceVersion = "0" },
		"another object":  func(s *rwx.Service) { s.UID = "before" },
	} {
		seen := f.r.Live.ServiceOf(f.service("v"))
		moved(&seen)
		err := f.r.replaceService(t.Context(), seen, rollout.Record{Clients: netOne, Servers: netOne}, rwx.Request{})
		must.True(t, apierrors.IsConflict(err), "%s: got %v", what, err)
		f.wantService(serviceOf("v", headlessOn(netTwo)))
	}
}

func TestUsedServiceIsNotReplaced(t *testing.T) {
	for name, test := range map[string]struct {
		change func(*corev1.Service)
		more   []client.Object
	}{
		"attached":             {func(*corev1.Service) {}, []client.Object{attachedRWX()}},
		"lingering server pod": {func(*corev1.Service) {}, []client.Object{objects.ServerPod("v")}},
		"opt-out":              {func(s *corev1.Service) { s.Annotations[rwx.OptOutAnnotation] = "true" }, nil},
		"NodePort":             {func(s *corev1.Service) { s.Spec.Type = corev1.ServiceTypeNodePort }, nil},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t, netOne, append(test.more, serviceOf("v", test.change))...)
			before := f.service("v")
			f.comeToRest()
			if after := f.service("v"); after == nil || after.UID != before.UID || after.ResourceVersion != before.ResourceVersion {
				t.Fatalf("got %+v", after)
			}
		})
	}
}
