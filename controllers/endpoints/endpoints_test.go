//lint:file-ignore SA1019 the readers of the deprecated API are served too

package endpoints

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/types"
	clienttesting "k8s.io/client-go/testing"
	clocktesting "k8s.io/utils/clock/testing"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/fairlead-io/fairlead/api/v1alpha1"
	"github.com/fairlead-io/fairlead/internal/cluster"
	"github.com/fairlead-io/fairlead/internal/storage"
)

var (
	profile = storage.Longhorn()
	netOne  = storage.Attachment{Network: storage.Network{Namespace: "kube-system", Name: "one"}, Interface: "lhnet1"}
	noon    = time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
)

type tester interface {
	Helper()
	Fatalf(format string, args ...any)
}

// fixture is the controller over a fake API.
type fixture struct {
	tester
	client.Client
	r     *Reconciler
	clock *clocktesting.FakePassiveClock
	notes []string
	// funcs stand between the controller and the API; the fixture itself goes past them.
	funcs interceptor.Funcs
}

func newFixture(t tester, scheme *runtime.Scheme, objects ...client.Object) *fixture {
	t.Helper()
	tracker := clienttesting.NewObjectTracker(scheme, serializer.NewCodecFactory(scheme).UniversalDecoder())
	f := &fixture{
		tester: t, clock: clocktesting.NewFakePassiveClock(noon.Add(time.Minute)),
		Client: fake.NewClientBuilder().WithScheme(scheme).WithObjectTracker(tracker).Build(),
	}
	for _, o := range objects {
		f.must(f.Create(context.Background(), o))
	}
	f.restart()
	return f
}

// restart is a new leader, which remembers nothing.
func (f *fixture) restart() {
	api := interceptor.NewClient(f.Client.(client.WithWatch), interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, o client.Object, opts ...client.GetOption) error {
			if f.funcs.Get != nil {
				return f.funcs.Get(ctx, c, key, o, opts...)
			}
			return c.Get(ctx, key, o, opts...)
		},
		Create: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.CreateOption) error {
			if f.funcs.Create != nil {
				return f.funcs.Create(ctx, c, o, opts...)
			}
			return c.Create(ctx, o, opts...)
		},
		Update: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.UpdateOption) error {
			if f.funcs.Update != nil {
				return f.funcs.Update(ctx, c, o, opts...)
			}
			return c.Update(ctx, o, opts...)
		},
		Delete: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.DeleteOption) error {
			if f.funcs.Delete != nil {
				return f.funcs.Delete(ctx, c, o, opts...)
			}
			return c.Delete(ctx, o, opts...)
		},
	})
	f.r = &Reconciler{
		Profile: profile, Classic: true, Client: api, Cached: cluster.NewReader(profile, api, api), Live: f.Client,
		Events: recorder{f}, Clock: f.clock, Log: slog.New(slog.DiscardHandler), overwritten: map[string]*overwritten{},
	}
}

type recorder struct{ *fixture }

func (r recorder) Eventf(_, _ runtime.Object, kind, reason, _, note string, args ...any) {
	r.notes = append(r.notes, kind+" "+reason+": "+fmt.Sprintf(note, args...))
}

func (f *fixture) must(err error) {
	f.Helper()
	if err != nil {
		f.Fatalf("%v", err)
	}
}

func (f *fixture) reconcile() (time.Duration, error) {
	result, err := f.r.Reconcile(context.Background(), ctrl.Request{NamespacedName: types.NamespacedName{Namespace: profile.Namespace, Name: "v"}})
	return result.RequeueAfter, err
}

func (f *fixture) mustReconcile() time.Duration {
	f.Helper()
	after, err := f.reconcile()
	f.must(err)
	return after
}

// get reads an object, or returns nil where there is none.
func get[T any, P interface {
	*T
	client.Object
}](f *fixture, name string) P {
	f.Helper()
	o := P(new(T))
	err := f.Get(context.Background(), client.ObjectKey{Namespace: profile.Namespace, Name: name}, o)
	if apierrors.IsNotFound(err) {
		return nil
	}
	f.must(err)
	return o
}

func (f *fixture) slice(family string) *discoveryv1.EndpointSlice {
	f.Helper()
	return get[discoveryv1.EndpointSlice](f, "v-fairlead-"+family)
}

func (f *fixture) classic() *corev1.Endpoints {
	f.Helper()
	return get[corev1.Endpoints](f, "v")
}

// addressesOf are those of a classic object.
func addressesOf(e *corev1.Endpoints) []string {
	var list []string
	for _, subset := range e.Subsets {
		for _, a := range subset.Addresses {
			list = append(list, a.IP)
		}
	}
	return list
}

func headless(change ...func(*corev1.Service)) *corev1.Service {
	s := &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: profile.Namespace, Name: "v", UID: "uid-v", Labels: map[string]string{profile.VolumeLabel: "v"},
			Annotations: map[string]string{storage.NetworkAnnotation: netOne.String()},
		},
		Spec: corev1.ServiceSpec{ClusterIP: corev1.ClusterIPNone, Ports: []corev1.ServicePort{{Name: "nfs", Protocol: corev1.ProtocolTCP, Port: 2049}}},
	}
	for _, c := range change {
		c(s)
	}
	return s
}

// server is a Ready server pod of volume v, created at noon.
func server(name, status string, change ...func(*corev1.Pod)) *corev1.Pod {
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: profile.Namespace, Name: name, UID: types.UID("uid-" + name), CreationTimestamp: metav1.NewTime(noon),
			Labels: maps.Clone(profile.ServerLabels), Annotations: map[string]string{storage.NetworkStatusAnnotation: status},
		},
		Spec: corev1.PodSpec{NodeName: "node-1"},
		Status: corev1.PodStatus{
			Phase: corev1.PodRunning, PodIPs: []corev1.PodIP{{IP: "10.42.0.7"}},
			Conditions: []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}},
		},
	}
	pod.Labels[profile.VolumeLabel] = "v"
	pod.OwnerReferences = []metav1.OwnerReference{{APIVersion: "longhorn.io/v1beta2", Kind: "ShareManager", Name: "v", Controller: ptr.To(true)}}
	for _, c := range change {
		c(pod)
	}
	return pod
}

// reports is what Multus says of a pod on network one.
func reports(ips ...string) string {
	return fmt.Sprintf(`[{"name": "cbr0", "interface": "eth0", "ips": ["10.42.0.7"], "default": true}, {"name": "kube-system/one", "interface": "lhnet1", "ips": ["%s"]}]`, strings.Join(ips, `", "`))
}

var newScheme = sync.OnceValues(cluster.NewScheme)

func scheme(t *testing.T) *runtime.Scheme {
	t.Helper()
	s, err := newScheme()
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestPublishedObjects(t *testing.T) {
	f := newFixture(t, scheme(t), headless(), server("share-manager-v", reports("192.168.0.3", "fd00::3")))
	f.mustReconcile()
	owners := []metav1.OwnerReference{{APIVersion: "v1", Kind: "Service", Name: "v", UID: "uid-v", Controller: ptr.To(true)}}
	target := &corev1.ObjectReference{Kind: "Pod", Namespace: profile.Namespace, Name: "share-manager-v", UID: "uid-share-manager-v"}
	for family, address := range map[string]string{"ipv4": "192.168.0.3", "ipv6": "fd00::3"} {
		want := &discoveryv1.EndpointSlice{
			ObjectMeta: metav1.ObjectMeta{
				Namespace: profile.Namespace, Name: "v-fairlead-" + family, OwnerReferences: owners, ResourceVersion: "1",
				Labels: map[string]string{"kubernetes.io/service-name": "v", "endpointslice.kubernetes.io/managed-by": "fairlead.io", "service.kubernetes.io/headless": ""},
			},
			AddressType: map[string]discoveryv1.AddressType{"ipv4": "IPv4", "ipv6": "IPv6"}[family],
			Endpoints: []discoveryv1.Endpoint{{
				Addresses: []string{address}, NodeName: ptr.To("node-1"), TargetRef: target,
				Conditions: discoveryv1.EndpointConditions{Ready: ptr.To(true), Serving: ptr.To(true), Terminating: ptr.To(false)},
			}},
			Ports: []discoveryv1.EndpointPort{{Name: ptr.To("nfs"), Protocol: ptr.To(corev1.ProtocolTCP), Port: ptr.To[int32](2049)}},
		}
		if got := f.slice(family); !reflect.DeepEqual(got, want) {
			t.Errorf("got  %+v\nwant %+v", got, want)
		}
	}
	want := &corev1.Endpoints{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: profile.Namespace, Name: "v", OwnerReferences: owners, ResourceVersion: "1",
			Labels: map[string]string{"endpointslice.kubernetes.io/skip-mirror": "true", "service.kubernetes.io/headless": "", "endpoints.kubernetes.io/managed-by": "fairlead.io"},
		},
		Subsets: []corev1.EndpointSubset{{
			Addresses: []corev1.EndpointAddress{{IP: "192.168.0.3", NodeName: ptr.To("node-1"), TargetRef: target}, {IP: "fd00::3", NodeName: ptr.To("node-1"), TargetRef: target}},
			Ports:     []corev1.EndpointPort{{Name: "nfs", Protocol: corev1.ProtocolTCP, Port: 2049}},
		}},
	}
	if got := f.classic(); !reflect.DeepEqual(got, want) {
		t.Errorf("got  %+v\nwant %+v", got, want)
	}
	// What is as it should be is not written again.
	f.funcs.Update = func(context.Context, client.WithWatch, client.Object, ...client.UpdateOption) error {
		return errors.New("written")
	}
	f.mustReconcile()
}

func TestFamilyWithoutAddressesHasNoAddressesInSlices(t *testing.T) {
	pod := server("share-manager-v", reports("192.168.0.3"))
	f := newFixture(t, scheme(t), headless(), pod)
	f.mustReconcile()
	if f.slice("ipv6") != nil {
		t.Fatal("there is a slice of nothing")
	}
	f.must(f.Delete(t.Context(), pod))
	f.mustReconcile()
	if s := f.slice("ipv4"); s == nil || len(s.Endpoints) != 0 {
		t.Fatalf("got %+v", s)
	}
	if e := f.classic(); e == nil || e.Subsets != nil {
		t.Fatalf("got %+v", e)
	}
}

func TestVolumeWithoutServerIsNotPublished(t *testing.T) {
	f := newFixture(t, scheme(t), headless())
	f.mustReconcile()
	if f.slice("ipv4") != nil || f.slice("ipv6") != nil || f.classic() != nil {
		t.Fatal("something is written")
	}
}

func TestPublishedPortIsTheServers(t *testing.T) {
	for name, test := range map[string]struct {
		change func(*corev1.ServicePort)
		want   int32
	}{
		"on the Service's port":               {func(*corev1.ServicePort) {}, 2049},
		"on another":                          {func(p *corev1.ServicePort) { p.TargetPort.IntVal = 12049 }, 12049},
		"on one that the pod names, as usual": {func(p *corev1.ServicePort) { p.TargetPort.Type, p.TargetPort.StrVal = 1, "nfs" }, 2049},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t, scheme(t), headless(func(s *corev1.Service) { test.change(&s.Spec.Ports[0]) }), server("share-manager-v", reports("192.168.0.3")))
			f.mustReconcile()
			if got := *f.slice("ipv4").Ports[0].Port; got != test.want {
				t.Errorf("slice: got %d", got)
			}
			if got := f.classic().Subsets[0].Ports[0].Port; got != test.want {
				t.Errorf("classic: got %d", got)
			}
		})
	}
}

func TestPublishedAddressesAreWithdrawn(t *testing.T) {
	others := &discoveryv1.EndpointSlice{ObjectMeta: metav1.ObjectMeta{Namespace: profile.Namespace, Name: "v-x7zq2", Labels: map[string]string{"kubernetes.io/service-name": "v"}}, AddressType: "IPv4"}
	for name, change := range map[string]func(*corev1.Service){
		"the Service gets a cluster IP": func(s *corev1.Service) { s.Spec.ClusterIP = "10.43.0.1" },
		"the Service gets a selector":   func(s *corev1.Service) { s.Spec.Selector = map[string]string{"a": "b"} },
		"the Service opts out":          func(s *corev1.Service) { s.Annotations[storage.OptOutAnnotation] = "true" },
	} {
		t.Run(name, func(t *testing.T) {
			service := headless()
			f := newFixture(t, scheme(t), service, server("share-manager-v", reports("192.168.0.3", "fd00::3")), others.DeepCopy())
			f.mustReconcile()
			if f.slice("ipv4") == nil || f.slice("ipv6") == nil || f.classic() == nil {
				t.Fatal("nothing is published")
			}
			change(service)
			f.must(f.Update(t.Context(), service))
			f.mustReconcile()
			if f.slice("ipv4") != nil || f.slice("ipv6") != nil || f.classic() != nil {
				t.Error("something is left")
			}
			if get[discoveryv1.EndpointSlice](f, "v-x7zq2") == nil {
				t.Error("Kubernetes' own slice is gone")
			}
		})
	}
}

func TestEndpointsOfOthersAreNotDeleted(t *testing.T) {
	theirs := &corev1.Endpoints{ObjectMeta: metav1.ObjectMeta{Namespace: profile.Namespace, Name: "v"}, Subsets: []corev1.EndpointSubset{{Addresses: []corev1.EndpointAddress{{IP: "10.42.0.7"}}}}}
	f := newFixture(t, scheme(t), headless(func(s *corev1.Service) { s.Spec.ClusterIP = "10.43.0.1" }), theirs.DeepCopy())
	f.mustReconcile()
	if f.classic() == nil {
		t.Fatal("it is gone")
	}
	// Nor where no classic object is to be written at all.
	f = newFixture(t, scheme(t), headless(), server("share-manager-v", reports("192.168.0.3")), theirs)
	f.r.Classic = false
	f.mustReconcile()
	if got := f.classic(); got == nil || !slices.Equal(addressesOf(got), []string{"10.42.0.7"}) {
		t.Fatalf("got %+v", got)
	}
	if f.slice("ipv4") == nil {
		t.Fatal("no slice")
	}
}

func TestUnneededClassicObjectIsDeleted(t *testing.T) {
	f := newFixture(t, scheme(t), headless(), server("share-manager-v", reports("192.168.0.3")))
	f.mustReconcile()
	f.r.Classic = false
	f.mustReconcile()
	if f.classic() != nil || f.slice("ipv4") == nil {
		t.Fatalf("classic %+v, slice %+v", f.classic(), f.slice("ipv4"))
	}
}

func TestDeletedServiceLeavesTheRestToTheGarbageCollector(t *testing.T) {
	service := headless()
	f := newFixture(t, scheme(t), service, server("share-manager-v", reports("192.168.0.3")))
	f.mustReconcile()
	f.must(f.Delete(t.Context(), service))
	f.mustReconcile()
	if f.slice("ipv4") == nil || len(f.r.overwritten) != 0 {
		t.Fatalf("slice %+v, remembered %v", f.slice("ipv4"), f.r.overwritten)
	}
}

// The owner is another Service now: with the old one's UID the garbage collector
// would take what is published.
func TestOwnersFollowAReplacedService(t *testing.T) {
	service := headless()
	f := newFixture(t, scheme(t), service, server("share-manager-v", reports("192.168.0.3", "fd00::3")))
	f.mustReconcile()
	f.must(f.Delete(t.Context(), service))
	f.must(f.Create(t.Context(), headless(func(s *corev1.Service) { s.UID = "uid-again" })))
	f.mustReconcile()
	for _, o := range []client.Object{f.slice("ipv4"), f.slice("ipv6"), f.classic()} {
		if owners := o.GetOwnerReferences(); len(owners) != 1 || owners[0].UID != "uid-again" {
			t.Errorf("%T %s: got %+v", o, o.GetName(), owners)
		}
	}
}

// Longhorn creates the object with its ShareManager as the owner, and fills those
// that have one.
func TestLonghornsEndpointsAreTakenOver(t *testing.T) {
	theirs := &corev1.Endpoints{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: profile.Namespace, Name: "v", Labels: map[string]string{"longhorn.io/managed-by": "longhorn-manager"},
			OwnerReferences: []metav1.OwnerReference{{APIVersion: "longhorn.io/v1beta2", Kind: "ShareManager", Name: "v", UID: "uid-sm"}},
		},
		Subsets: []corev1.EndpointSubset{{Addresses: []corev1.EndpointAddress{{IP: "10.42.0.7"}}, Ports: []corev1.EndpointPort{{Port: 2049}}}},
	}
	f := newFixture(t, scheme(t), headless(), theirs)
	f.mustReconcile()
	got := f.classic()
	if got.Subsets != nil || len(got.OwnerReferences) != 1 || got.OwnerReferences[0].Kind != "Service" {
		t.Fatalf("got %+v", got)
	}
	if got.Labels["longhorn.io/managed-by"] != "longhorn-manager" || got.Labels["endpointslice.kubernetes.io/skip-mirror"] != "true" {
		t.Fatalf("labels %v", got.Labels)
	}
}

func TestChangesByOthersAreCorrected(t *testing.T) {
	f := newFixture(t, scheme(t), headless(), server("share-manager-v", reports("192.168.0.3")))
	f.mustReconcile()
	s := f.slice("ipv4")
	s.Labels["kubernetes.io/service-name"], s.Labels["theirs"] = "w", "x"
	s.Endpoints, s.Ports = nil, nil
	f.must(f.Update(t.Context(), s))
	f.must(f.Delete(t.Context(), f.classic()))
	f.mustReconcile()
	got := f.slice("ipv4")
	if got.Labels["kubernetes.io/service-name"] != "v" || got.Labels["theirs"] != "x" || len(got.Endpoints) != 1 || len(got.Ports) != 1 {
		t.Errorf("got %+v", got)
	}
	if e := f.classic(); e == nil || !slices.Equal(addressesOf(e), []string{"192.168.0.3"}) {
		t.Errorf("got %+v", e)
	}
}

// overwrite is another controller that writes other addresses.
func (f *fixture) overwrite(address string) {
	f.Helper()
	e := f.classic()
	e.Subsets = []corev1.EndpointSubset{{Addresses: []corev1.EndpointAddress{{IP: address}}}}
	f.must(f.Update(context.Background(), e))
}

const stoodDown = `Warning StandingDown: another controller keeps writing other addresses to Endpoints v: Fairlead leaves the object alone. The EndpointSlices are right; set "endpoints: slices" in the configuration if no client reads the classic object`

func TestStandsDownBesideAnotherWriter(t *testing.T) {
	f := newFixture(t, scheme(t), headless(), server("share-manager-v", reports("192.168.0.3")))
	f.mustReconcile()
	for i := 1; i < maxOverwritten; i++ {
		f.overwrite("10.42.0.7")
		f.mustReconcile()
		if got := addressesOf(f.classic()); !slices.Equal(got, []string{"192.168.0.3"}) || f.notes != nil {
			t.Fatalf("after %d writes of others: got %q, %q", i, got, f.notes)
		}
	}
	f.overwrite("10.42.0.7")
	for range 3 {
		f.mustReconcile()
		f.overwrite("10.42.0.8")
	}
	if got := addressesOf(f.classic()); !slices.Equal(got, []string{"10.42.0.8"}) {
		t.Fatalf("it is written yet: %q", got)
	}
	if !slices.Equal(f.notes, []string{stoodDown}) {
		t.Fatalf("said: %q", f.notes)
	}
	// The slices go on being right.
	s := f.slice("ipv4")
	s.Endpoints = nil
	f.must(f.Update(t.Context(), s))
	f.mustReconcile()
	if got := f.slice("ipv4"); len(got.Endpoints) != 1 {
		t.Fatalf("got %+v", got)
	}
	// Another Service is another matter.
	service := get[corev1.Service](f, "v")
	f.must(f.Delete(t.Context(), service))
	f.must(f.Create(t.Context(), headless(func(s *corev1.Service) { s.UID = "uid-again" })))
	f.mustReconcile()
	if got := addressesOf(f.classic()); !slices.Equal(got, []string{"192.168.0.3"}) {
		t.Fatalf("for another Service: got %q", got)
	}
}

func TestDoesNotStandDownWithoutAnotherWriter(t *testing.T) {
	for name, test := range map[string]func(*fixture){
		"for writes with long breaks between them": func(f *fixture) {
			for range 3 * maxOverwritten {
				f.clock.SetTime(f.clock.Now().Add(overwrittenGap + time.Second))
				f.overwrite("10.42.0.7")
				f.mustReconcile()
			}
		},
		"for changes of its own, of which the cache shows the last but one": func(f *fixture) {
			for i := range 3 * maxOverwritten {
				before := f.classic()
				pod := get[corev1.Pod](f, "share-manager-v")
				pod.Annotations[storage.NetworkStatusAnnotation] = reports(fmt.Sprint("192.168.0.", 4+i))
				f.must(f.Update(context.Background(), pod))
				f.mustReconcile()
				f.shows(before)
				f.mustReconcile()
				f.mustReconcile()
				f.funcs.Get = nil
			}
			f.mustReconcile()
		},
		"for the object of before, which the cache shows for long": func(f *fixture) {
			f.overwrite("10.42.0.7")
			theirs := f.classic()
			f.mustReconcile() // over theirs
			f.shows(theirs)
			for range 3 * maxOverwritten {
				f.mustReconcile()
			}
			f.funcs.Get = nil
			f.mustReconcile()
		},
		"for one write of others that the cache shows, while there is another": func(f *fixture) {
			f.overwrite("10.42.0.7")
			f.shows(f.classic())
			f.overwrite("10.42.0.8")
			for range 3 * maxOverwritten {
				f.mustReconcile() // each a conflict
			}
			f.funcs.Get = nil
			f.mustReconcile()
		},
		"for one write of others, while the API server has a bad time": func(f *fixture) {
			f.overwrite("10.42.0.7")
			f.funcs.Update = func(context.Context, client.WithWatch, client.Object, ...client.UpdateOption) error {
				return apierrors.NewInternalError(errors.New("etcd is slow"))
			}
			for range 3 * maxOverwritten {
				if _, err := f.reconcile(); err == nil {
					f.Fatalf("no error")
				}
			}
			f.funcs.Update = nil
			f.mustReconcile()
		},
		"for writes of its own whose answers were lost": func(f *fixture) {
			for i := range 3 * maxOverwritten {
				f.funcs.Update = func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.UpdateOption) error {
					f.must(c.Update(ctx, o, opts...))
					return apierrors.NewInternalError(errors.New("the connection was closed"))
				}
				pod := get[corev1.Pod](f, "share-manager-v")
				pod.Annotations[storage.NetworkStatusAnnotation] = reports(fmt.Sprint("192.168.0.", 4+i))
				f.must(f.Update(context.Background(), pod))
				for range 3 { // each of its objects once
					_, err := f.reconcile()
					if err == nil {
						break
					}
				}
			}
			f.funcs.Update = nil
		},
		"for labels of others": func(f *fixture) {
			for i := range 3 * maxOverwritten {
				e := f.classic()
				e.Labels["theirs"] = fmt.Sprint(i)
				f.must(f.Update(context.Background(), e))
				f.mustReconcile()
			}
		},
		"for others who write the same": func(f *fixture) {
			for range 3 * maxOverwritten {
				e := f.classic()
				delete(e.Labels, storage.EndpointsManagedBy)
				f.must(f.Update(context.Background(), e))
				f.mustReconcile()
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t, scheme(t), headless(), server("share-manager-v", reports("192.168.0.3")))
			f.mustReconcile()
			test(f)
			if f.notes != nil {
				t.Fatalf("said: %q", f.notes)
			}
			f.must(f.Delete(t.Context(), get[corev1.Pod](f, "share-manager-v")))
			f.must(f.Create(t.Context(), server("share-manager-v", reports("192.168.0.99"), func(pod *corev1.Pod) { pod.UID = "uid-of-the-next" })))
			f.mustReconcile()
			if got := addressesOf(f.classic()); !slices.Equal(got, []string{"192.168.0.99"}) {
				t.Fatalf("it is left alone: %q", got)
			}
		})
	}
}

// shows makes the cache show an Endpoints object as it was.
func (f *fixture) shows(old *corev1.Endpoints) {
	old = old.DeepCopy()
	f.funcs.Get = func(ctx context.Context, c client.WithWatch, key client.ObjectKey, o client.Object, opts ...client.GetOption) error {
		if e, ok := o.(*corev1.Endpoints); ok {
			old.DeepCopyInto(e)
			return nil
		}
		return c.Get(ctx, key, o, opts...)
	}
}

func TestUnreachableServerIsReportedAfterAWhile(t *testing.T) {
	const unreachable = "Warning NoAddress: server pod share-manager-v is Ready, but Multus reports no address for it on kube-system/one@lhnet1; nothing is published until it does"
	for name, test := range map[string]struct {
		age   time.Duration
		pod   []func(*corev1.Pod)
		after time.Duration
		want  []string
	}{
		"Multus has a moment":    {age: 4 * time.Second, after: 6 * time.Second},
		"after that it is late":  {age: 10 * time.Second, want: []string{unreachable}},
		"a server that is to be": {age: time.Hour, pod: []func(*corev1.Pod){func(pod *corev1.Pod) { pod.Status.Conditions = nil }}},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t, scheme(t), headless(), server("share-manager-v", "[]", test.pod...))
			f.clock.SetTime(noon.Add(test.age))
			if got := f.mustReconcile(); got != test.after || !slices.Equal(f.notes, test.want) {
				t.Fatalf("again after %v, said: %q", got, f.notes)
			}
		})
	}
}

func TestUnrecordedServiceFollowsTheClientsNetwork(t *testing.T) {
	f := newFixture(t, scheme(t), headless(func(s *corev1.Service) { s.Annotations = nil }), server("share-manager-v", reports("192.168.0.3")))
	f.mustReconcile() // nothing is recorded at all
	if f.slice("ipv4") != nil {
		t.Fatal("something is published")
	}
	rollout := &v1alpha1.NetworkRollout{ObjectMeta: metav1.ObjectMeta{Namespace: profile.Namespace, Name: profile.Name}}
	rollout.Status.Recorded, rollout.Status.Clients.Network = true, netOne.String()
	f.must(f.Create(t.Context(), rollout))
	requests := f.r.unrecorded(t.Context(), rollout)
	if len(requests) != 1 || requests[0].Name != "v" {
		t.Fatalf("a new record is looked at for %v", requests)
	}
	f.mustReconcile()
	if s := f.slice("ipv4"); s == nil || len(s.Endpoints) != 1 {
		t.Fatalf("got %+v", s)
	}
}

func TestRecordWakesOnlyServicesThatFollowIt(t *testing.T) {
	f := newFixture(t, scheme(t), headless(),
		headless(func(s *corev1.Service) { s.Name, s.Annotations = "w", nil }),
		headless(func(s *corev1.Service) { s.Name, s.Annotations, s.Spec.ClusterIP = "x", nil, "10.43.0.1" }),
	)
	if got := f.r.unrecorded(t.Context(), nil); len(got) != 1 || got[0].Name != "w" {
		t.Fatalf("got %v", got)
	}
}

func TestRolloutProgressWakesNoService(t *testing.T) {
	was := &v1alpha1.NetworkRollout{}
	was.Status.Recorded, was.Status.Clients.Network = true, "kube-system/one@lhnet1"
	progress, moved := was.DeepCopy(), was.DeepCopy()
	progress.Status.Clients.Updated, progress.Status.Message = 7, "7 of 9"
	moved.Status.Clients.Network = ""
	for is, want := range map[*v1alpha1.NetworkRollout]bool{progress: false, moved: true} {
		if got := isClientNetworkMoved(was, is); got != want {
			t.Errorf("%+v: got %t", is.Status, got)
		}
	}
}
