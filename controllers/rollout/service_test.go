package rollout

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/fairlead-io/fairlead/api/v1alpha1"
	"github.com/fairlead-io/fairlead/controllers/kit"
	"github.com/fairlead-io/fairlead/internal/cluster"
	"github.com/fairlead-io/fairlead/internal/cluster/longhorn"
	"github.com/fairlead-io/fairlead/internal/settings/catalog"
	"github.com/fairlead-io/fairlead/internal/settings/rollout"
	"github.com/fairlead-io/fairlead/internal/storage"
	"github.com/fairlead-io/fairlead/internal/testkit"
	"github.com/fairlead-io/fairlead/internal/testkit/fakeapi"
	"github.com/fairlead-io/fairlead/internal/testkit/objects"
)

var (
	profile = objects.Longhorn
	netOne  = objects.Network("one", "lhnet2")
	netTwo  = objects.Network("two", "lhnet2")
	noon    = testkit.Noon
)

// fixture is the controller over a fake API.
type fixture struct {
	*testkit.Bench
	r *Reconciler
	// fail answers a write in its place, unless it returns nil.
	fail func(verb string, o client.Object) error
	// stale is the record in a stale cache.
	stale *v1alpha1.NetworkRollout
	// hidden reports which lists are empty in a stale cache.
	hidden func(client.ObjectList) bool
	// patches are the last patches by kind.
	patches map[string]string
}

// newFixture is a cluster with everything on the network, and every setting applied.
func newFixture(t *testing.T, on storage.Attachment, more ...client.Object) *fixture {
	t.Helper()
	api := fakeapi.New(testkit.Value[*runtime.Scheme](t)(cluster.NewScheme()), nil, &v1alpha1.NetworkRollout{}, &v1alpha1.Setting{}, &longhorn.Setting{})
	f := &fixture{Bench: testkit.NewBench(t, api, append(atRest(on), more...)...)}
	f.restart()
	return f
}

// atRest are the record, the setting, the DaemonSet and its one pod.
func atRest(on storage.Attachment) []client.Object {
	ds := &appsv1.DaemonSet{ObjectMeta: objects.Here(profile.ClientDaemonSet), Status: appsv1.DaemonSetStatus{DesiredNumberScheduled: 1}}
	ds.Annotations = map[string]string{appsv1.DeprecatedTemplateGeneration: "1"}
	pod := objects.With(objects.Pod(profile.Namespace, "csi", "node-1"), objects.ReadyPod, objects.OwnedBy[*corev1.Pod]("apps/v1", "DaemonSet", profile.ClientDaemonSet))
	pod.UID, pod.Labels = "", maps.Clone(profile.ClientLabels)
	pod.Labels["pod-template-generation"] = "1"
	all := []client.Object{objects.Record(on), ds, pod, objects.Setting(catalog.EndpointNetworkForRWX, on.Network.String())}
	if !on.IsZero() {
		ds.Spec.Template.Annotations = map[string]string{storage.NetworksAnnotation: on.String()}
		pod.Annotations = map[string]string{storage.NetworksAnnotation: on.String(), storage.NetworkStatusAnnotation: objects.NetworkStatus(on, "192.168.0.3")}
		all = append(all, networkObject(on))
	}
	return all
}

// restart is a new leader.
func (f *fixture) restart() {
	f.NewLeader()
	f.stale, f.hidden, f.patches = nil, nil, map[string]string{}
	f.Client.Before = func(w fakeapi.Write) error {
		if f.fail == nil {
			return nil
		}
		verb, _, _ := strings.Cut(w.Verb, "/")
		return f.fail(verb, w.Object)
	}
	api := interceptor.NewClient(f.Client, interceptor.Funcs{
		Patch: func(ctx context.Context, c client.WithWatch, o client.Object, patch client.Patch, opts ...client.PatchOption) error {
			f.patches[fmt.Sprintf("%T", o)] = string(testkit.Value[[]byte](f)(patch.Data(o)))
			return c.Patch(ctx, o, patch, opts...)
		},
	})
	cached := interceptor.NewClient(f.API, interceptor.Funcs{
		List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, opts ...client.ListOption) error {
			if f.hidden != nil && f.hidden(list) {
				return nil
			}
			return c.List(ctx, list, opts...)
		},
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, o client.Object, opts ...client.GetOption) error {
			if r, ok := o.(*v1alpha1.NetworkRollout); ok && f.stale != nil {
				f.stale.DeepCopyInto(r)
				return nil
			}
			return c.Get(ctx, key, o, opts...)
		},
	})
	f.r = &Reconciler{
		Profile: profile, Applies: true, Policy: rollout.Policy{Settle: time.Second}, Client: api,
		Cached: cluster.NewReader(profile, cached, cached), Live: cluster.NewReader(profile, api, api),
		Events: f.Events, Clock: f.Clock, Log: f.Log, restarts: testkit.Value[*prometheus.CounterVec](f)(kit.RestartCounter(f.Registry, profile.Name)),
	}
}

func (f *fixture) writes() int { return len(f.Client.Writes) }

func (f *fixture) reconcile() error {
	_, err := f.r.Reconcile(context.Background(), ctrl.Request{})
	return err
}

// comeToRest reconciles until nothing is written any more.
func (f *fixture) comeToRest() {
	f.Helper()
	for range 20 {
		before := f.writes()
		f.Must(f.reconcile())
		if f.writes() == before {
			return
		}
	}
	f.Fatalf("%v", "it does not come to rest")
}

func (f *fixture) service(name string) *corev1.Service {
	f.Helper()
	return testkit.Get[corev1.Service](f, f.API, profile.Namespace, name)
}

func (f *fixture) rollout() *v1alpha1.NetworkRollout {
	f.Helper()
	return testkit.Get[v1alpha1.NetworkRollout](f, f.API, profile.Namespace, profile.Name)
}

// serviceOf is a Service as Longhorn makes it, with what users may have added.
func serviceOf(volume string, change ...func(*corev1.Service)) *corev1.Service {
	s := &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: profile.Namespace, Name: volume,
			Labels:          map[string]string{profile.VolumeLabel: volume, "longhorn.io/managed-by": "longhorn-manager", "theirs": "x"},
			Annotations:     map[string]string{"example.io/note": "keep me"},
			OwnerReferences: []metav1.OwnerReference{{APIVersion: "longhorn.io/v1beta2", Kind: "ShareManager", Name: volume, UID: "uid-sm"}},
		},
		Spec: corev1.ServiceSpec{
			Type: corev1.ServiceTypeClusterIP, Selector: map[string]string{profile.VolumeLabel: volume},
			SessionAffinity: corev1.ServiceAffinityClientIP, PublishNotReadyAddresses: true,
			Ports: []corev1.ServicePort{{Name: "nfs", Protocol: corev1.ProtocolTCP, Port: 2049}},
		},
	}
	for _, c := range change {
		c(s)
	}
	return s
}

// headlessOn is what Fairlead makes of it on a network.
func headlessOn(network storage.Attachment) func(*corev1.Service) {
	return func(s *corev1.Service) {
		s.Spec.ClusterIP = corev1.ClusterIPNone
		s.Annotations[storage.NetworkAnnotation] = network.String()
		s.Annotations[storage.SelectorAnnotation] = fmt.Sprintf(`{%q:%q}`, profile.VolumeLabel, s.Name)
		s.Spec.Selector = nil
	}
}

// mustBe holds a Service against another, but for what is allocated.
func (f *fixture) mustBe(got, want *corev1.Service) {
	f.Helper()
	if got == nil {
		f.Fatalf("%v", "there is no Service")
	}
	got, want = got.DeepCopy(), want.DeepCopy()
	for _, s := range []*corev1.Service{got, want} {
		s.UID, s.ResourceVersion, s.CreationTimestamp, s.TypeMeta = "", "", metav1.Time{}, metav1.TypeMeta{}
		if s.Spec.ClusterIP != corev1.ClusterIPNone {
			s.Spec.ClusterIP, s.Spec.ClusterIPs = "allocated", nil
		}
	}
	if !reflect.DeepEqual(got, want) {
		f.Fatalf("got  %+v\nwant %+v", got, want)
	}
}

// replacements are the ways in which a detached volume's Service is replaced.
var replacements = map[string]struct {
	on             storage.Attachment
	before, after  []func(*corev1.Service)
	keptInOnePiece bool
}{
	"to the network":     {on: netOne, after: []func(*corev1.Service){headlessOn(netOne)}},
	"from the network":   {before: []func(*corev1.Service){headlessOn(netOne)}},
	"to another network": {on: netOne, before: []func(*corev1.Service){headlessOn(netTwo)}, after: []func(*corev1.Service){headlessOn(netOne)}, keptInOnePiece: true},
	"from the network, without annotations of others": {
		before: []func(*corev1.Service){func(s *corev1.Service) { s.Annotations = map[string]string{} }, headlessOn(netOne)},
		after:  []func(*corev1.Service){func(s *corev1.Service) { s.Annotations = nil }},
	},
	"from the network, where Longhorn made it headless": { // by the settings' values, without a selector to record
		before: []func(*corev1.Service){headlessOn(netOne), func(s *corev1.Service) { delete(s.Annotations, storage.SelectorAnnotation) }},
		after:  []func(*corev1.Service){func(s *corev1.Service) { s.Spec.Selector["longhorn.io/managed-by"] = "longhorn-manager" }},
	},
	"to the network, without a selector": {
		on:     netOne,
		before: []func(*corev1.Service){func(s *corev1.Service) { s.Spec.Selector = nil }},
		after: []func(*corev1.Service){func(s *corev1.Service) {
			headlessOn(netOne)(s)
			delete(s.Annotations, storage.SelectorAnnotation)
		}},
	},
}

func TestServiceOfDetachedVolumeIsReplaced(t *testing.T) {
	for name, test := range replacements {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t, test.on, serviceOf("v", test.before...))
			before := f.service("v")
			f.comeToRest()
			after := f.service("v")
			f.mustBe(after, serviceOf("v", test.after...))
			if kept := before.UID == after.UID; kept != test.keptInOnePiece {
				t.Errorf("the same Service: %v", kept)
			}
			if got := f.rollout().Status; got.Replacing != "" || got.Phase != "Applied" {
				t.Errorf("the record: %+v", got)
			}
		})
	}
}

// Invariant 7: a crash at any of the writes, before or after it, resumes.
func TestCrashDuringServiceReplacementResumes(t *testing.T) {
	for name, test := range replacements {
		t.Run(name, func(t *testing.T) {
			whole := newFixture(t, test.on, serviceOf("v", test.before...))
			whole.comeToRest()
			if whole.writes() < 3 {
				t.Fatalf("only %d writes", whole.writes())
			}
			before, after := serviceOf("v", test.before...), serviceOf("v", test.after...)
			for dies := range whole.writes() {
				for _, done := range []bool{false, true} {
					f := newFixture(t, test.on, serviceOf("v", test.before...))
					f.Client.CrashAt(dies, done)
					for range 20 {
						if err := f.reconcile(); f.Client.Crashed() {
							break
						} else {
							f.Must(err)
						}
					}
					if !f.Client.Crashed() {
						t.Fatalf("it does not get to write %d", dies)
					}
					switch s := f.service("v"); {
					case s == nil:
						if f.rollout().Status.Replacing == "" {
							t.Fatalf("write %d, done %v: the Service is lost", dies, done)
						}
					case (s.Spec.ClusterIP == corev1.ClusterIPNone) == (after.Spec.ClusterIP == corev1.ClusterIPNone) && !test.keptInOnePiece:
						f.mustBe(s, after)
					case !test.keptInOnePiece:
						f.mustBe(s, before)
					}
					f.restart()
					f.comeToRest()
					f.mustBe(f.service("v"), after)
					var all corev1.ServiceList
					f.Must(f.API.List(t.Context(), &all))
					if got := f.rollout().Status; len(all.Items) != 1 || got.Replacing != "" || got.Phase != "Applied" {
						t.Fatalf("write %d, done %v: %d Services, record %+v", dies, done, len(all.Items), got)
					}
				}
			}
		})
	}
}

// The settings may change after a crash: the Service follows the present record.
func TestResumedReplacementFollowsThePresentRecord(t *testing.T) {
	f := newFixture(t, netOne, serviceOf("v"))
	f.fail = func(verb string, o client.Object) error {
		if _, ok := o.(*corev1.Service); ok && verb == "create" {
			return fakeapi.ErrCrashed
		}
		return nil
	}
	if err := f.reconcile(); !errors.Is(err, fakeapi.ErrCrashed) || f.service("v") != nil {
		t.Fatalf("got %v, %+v", err, f.service("v"))
	}
	r := f.rollout()
	r.Status.Servers.Network = ""
	f.Must(f.API.Status().Update(t.Context(), r))
	f.fail = nil
	f.restart()
	f.Must(f.reconcile())
	f.mustBe(f.service("v"), serviceOf("v"))
}

// After an error, which is no crash, the same controller goes on, and its cache
// may not have shown yet what it wrote down itself.
func TestBegunReplacementComesBeforeTheNext(t *testing.T) {
	f := newFixture(t, netOne, serviceOf("v"), serviceOf("w"))
	f.Must(f.r.ensureRecord(t.Context()))
	f.stale = f.rollout()
	f.fail = func(verb string, o client.Object) error {
		if _, ok := o.(*corev1.Service); ok && verb == "create" {
			return apierrors.NewInternalError(errors.New("etcd is slow"))
		}
		return nil
	}
	if err := f.reconcile(); err == nil || f.service("v") != nil {
		t.Fatalf("got %v, %+v", err, f.service("v"))
	}
	f.fail = nil
	for range 3 {
		f.Must(f.reconcile())
	}
	f.stale = nil
	f.comeToRest()
	f.mustBe(f.service("v"), serviceOf("v", headlessOn(netOne)))
	f.mustBe(f.service("w"), serviceOf("w", headlessOn(netOne)))
}

// A finalizer keeps the old Service for a while: created now there would be one
// already, and none when it is gone.
func TestTerminatingServiceIsWaitedFor(t *testing.T) {
	f := newFixture(t, netOne, serviceOf("v", func(s *corev1.Service) { s.Finalizers = []string{"example.io/wait"} }))
	for range 5 {
		f.Must(f.reconcile())
	}
	old := f.service("v")
	if old == nil || old.DeletionTimestamp == nil {
		t.Fatalf("got %+v", old)
	}
	f.restart()
	f.Must(f.reconcile())
	if f.rollout().Status.Replacing == "" {
		t.Fatal("it is forgotten")
	}
	before := f.writes()
	f.Must(f.reconcile())
	if f.writes()-before > 1 {
		t.Fatalf("it writes again and again: %d", f.writes()-before)
	}
	old.Finalizers = nil
	f.Must(f.API.Update(t.Context(), old))
	if f.service("v") != nil {
		t.Fatal("the old one is yet there")
	}
	f.comeToRest()
	f.mustBe(f.service("v"), serviceOf("v", headlessOn(netOne)))
}

func TestServiceRecreatedByLonghornIsReplacedLater(t *testing.T) {
	f := newFixture(t, netOne, serviceOf("v"))
	theirs := serviceOf("v", func(s *corev1.Service) { s.Labels["made"] = "in between" })
	f.fail = func(verb string, o client.Object) error {
		if _, ok := o.(*corev1.Service); ok && verb == "create" && f.service("v") == nil {
			f.Must(f.API.Create(context.Background(), theirs.DeepCopy()))
		}
		return nil
	}
	f.Must(f.reconcile())
	f.mustBe(f.service("v"), theirs)
	f.fail = nil
	f.comeToRest()
	f.mustBe(f.service("v"), serviceOf("v", func(s *corev1.Service) { s.Labels["made"] = "in between" }, headlessOn(netOne)))
}

// Between decision and deletion the Service changed: it is another
// one than was decided upon.
func TestChangedServiceIsLeftToTheNextLook(t *testing.T) {
	f := newFixture(t, netOne, serviceOf("v"))
	f.fail = func(verb string, o client.Object) error {
		if _, ok := o.(*v1alpha1.NetworkRollout); ok && verb == "update" && f.writes() > 3 && f.service("v").Labels["new"] == "" {
			s := f.service("v")
			s.Labels["new"] = "label"
			f.Must(f.API.Update(context.Background(), s))
		}
		return nil
	}
	f.comeToRest()
	f.mustBe(f.service("v"), serviceOf("v", func(s *corev1.Service) { s.Labels["new"] = "label" }, headlessOn(netOne)))
}

func TestUsedServiceIsNotReplaced(t *testing.T) {
	attached := &longhorn.Volume{ObjectMeta: metav1.ObjectMeta{Namespace: profile.Namespace, Name: "v"}, Spec: longhorn.VolumeSpec{AccessMode: "rwx"}}
	attached.Status.State, attached.Status.CurrentNodeID = "attached", "node-1"
	lingering := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: profile.Namespace, Name: "share-manager-v", Labels: maps.Clone(profile.ServerLabels)}}
	lingering.Labels[profile.VolumeLabel] = "v"
	lingering.OwnerReferences = []metav1.OwnerReference{{APIVersion: "longhorn.io/v1beta2", Kind: "ShareManager", Name: "v", Controller: ptr.To(true)}}
	for name, test := range map[string]struct {
		objects []client.Object
		change  func(*corev1.Service)
	}{
		"attached":               {objects: []client.Object{attached}},
		"its server pod lingers": {objects: []client.Object{lingering}},
		"it opts out":            {change: func(s *corev1.Service) { s.Annotations[storage.OptOutAnnotation] = "true" }},
		"it is a NodePort":       {change: func(s *corev1.Service) { s.Spec.Type = corev1.ServiceTypeNodePort }},
	} {
		t.Run(name, func(t *testing.T) {
			var change []func(*corev1.Service)
			if test.change != nil {
				change = append(change, test.change)
			}
			f := newFixture(t, netOne, append(test.objects, serviceOf("v", change...))...)
			before := f.service("v")
			f.comeToRest()
			if after := f.service("v"); after == nil || after.UID != before.UID || after.ResourceVersion != before.ResourceVersion {
				t.Fatalf("got %+v", after)
			}
		})
	}
}
