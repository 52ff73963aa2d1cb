//lint:file-ignore SA1019 the readers of the deprecated API are served too

package endpoints

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fairlead-io/fairlead/controllers/kit"
	"github.com/fairlead-io/fairlead/internal/multus"
	"github.com/fairlead-io/fairlead/internal/reads"
	"github.com/fairlead-io/fairlead/internal/testkit"
	"github.com/fairlead-io/fairlead/internal/testkit/fakeapi"
	"github.com/fairlead-io/fairlead/internal/testkit/must"
	"github.com/fairlead-io/fairlead/internal/testkit/objects"
)

var (
	names     = objects.Longhorn
	netOne    = objects.Network("one", "lhnet1")
	newScheme = sync.OnceValues(reads.NewScheme)
	noon      = testkit.Noon
)

// fixture is the controller over a fake API, a minute after noon.
type fixture struct {
	*testkit.Bench
	r *Reconciler
}

func newFixture(t testkit.TB, objects ...client.Object) *fixture {
	t.Helper()
	var indexes fakeapi.Indexes
	testkit.Must(t, errors.Join(reads.IndexAddresses(context.Background(), &indexes), reads.IndexClaims(context.Background(), &indexes)))
	f := &fixture{Bench: testkit.NewBench(t, fakeapi.New(testkit.Value[*runtime.Scheme](t)(newScheme()), indexes), objects...)}
	f.Pass(time.Minute)
	f.restart()
	return f
}

// serving is a fixture that publishes a headless Service with a Ready server on an address.
func serving(t testkit.TB, more ...client.Object) *fixture {
	t.Helper()
	f := newFixture(t, append(more, headless(), server("share-manager-v", "192.168.0.3"))...)
	f.mustReconcile()
	return f
}

// restart starts a new leader, with a cache that is up to date.
func (f *fixture) restart() {
	f.NewLeader()
	f.Client.Cache = f.NewCache()
	f.r = &Reconciler{
		Names: names, Classic: true, Client: f.Client, DeadMounts: true, Cached: reads.NewReader(names, f.Client, f.Client), Live: f.API,
		Events: f.Events, Clock: f.Clock, Log: f.Log, overwritten: map[string]*overwritten{},
	}
}

func (f *fixture) reconcile() (time.Duration, error) {
	result, err := f.r.Reconcile(context.Background(), kit.RequestIn(names.Namespace, "v")[0])
	return result.RequeueAfter, err
}

func (f *fixture) mustReconcile() time.Duration {
	f.Helper()
	return testkit.Value[time.Duration](f.TB)(f.reconcile())
}

func (f *fixture) slice(family string) *discoveryv1.EndpointSlice {
	return testkit.Get[discoveryv1.EndpointSlice](f.TB, f.API, names.Namespace, "v-fairlead-"+family)
}

func (f *fixture) classic() *corev1.Endpoints {
	return testkit.Get[corev1.Endpoints](f.TB, f.API, names.Namespace, "v")
}

func (f *fixture) service() *corev1.Service {
	return testkit.Get[corev1.Service](f.TB, f.API, names.Namespace, "v")
}

// change changes an object of a type in Longhorn's namespace, as a user does.
func change[T any, P interface {
	*T
	client.Object
}](f *fixture, name string, change func(P)) {
	f.Helper()
	testkit.Change(f.Bench, names.Namespace, name, change)
}

func (f *fixture) remove(o client.Object) {
	f.Helper()
	f.Must(f.Delete(context.Background(), o))
}

// replaceService replaces the Service by one with another UID.
func (f *fixture) replaceService() {
	f.Helper()
	f.remove(f.service())
	f.Must(f.Create(context.Background(), headless(func(s *corev1.Service) { s.UID = "uid-again" })))
}

func (f *fixture) wantClassic(addresses ...string) {
	f.Helper()
	got := f.classic()
	must.True(f, got != nil && slices.Equal(published(got), addresses), "the classic object is %+v, want addresses %q", got, addresses)
}

// wantDNS compares the addresses in all slices of the Service.
func (f *fixture) wantDNS(addresses ...string) {
	f.Helper()
	var list discoveryv1.EndpointSliceList
	f.Must(f.List(context.Background(), &list, client.MatchingLabels{discoveryv1.LabelServiceName: "v"}))
	var got []string
	for _, s := range list.Items {
		got = append(got, published(&s)...)
	}
	slices.Sort(got)
	got = slices.Compact(got)
	must.True(f, slices.Equal(got, addresses), "slices have %q, want %q", got, addresses)
}

// wantPublished compares which of Fairlead's objects are present.
func (f *fixture) wantPublished(ipv4, ipv6, classic bool) {
	f.Helper()
	got := [3]bool{f.slice("ipv4") != nil, f.slice("ipv6") != nil, f.classic() != nil}
	must.True(f, got == [3]bool{ipv4, ipv6, classic}, "present are %v (IPv4, IPv6, classic), want %v", got, [3]bool{ipv4, ipv6, classic})
}

func (f *fixture) wantEvents(want ...string) {
	f.Helper()
	got := f.Events.Notes()
	must.True(f, slices.Equal(got, want), "got events %q, want %q", got, want)
}

// published are the addresses in a slice, or in a classic object.
func published(o client.Object) []string {
	var addresses []string
	switch o := o.(type) {
	case *discoveryv1.EndpointSlice:
		for _, e := range o.Endpoints {
			addresses = append(addresses, e.Addresses...)
		}
	case *corev1.Endpoints:
		for _, subset := range o.Subsets {
			for _, a := range subset.Addresses {
				addresses = append(addresses, a.IP)
			}
		}
	}
	return addresses
}

func headless(changes ...func(*corev1.Service)) *corev1.Service {
	s := objects.Headless("v", netOne)
	s.UID, s.Spec.Ports = "uid-v", []corev1.ServicePort{{Name: "nfs", Protocol: corev1.ProtocolTCP, Port: 2049}}
	return objects.With(s, changes...)
}

// unrecorded removes the recorded network from a Service.
func unrecorded(s *corev1.Service) { s.Annotations = nil }

// server is a Ready server pod of volume v, created at noon, with an address; "" is a pod that Multus does not report.
func server(name, address string, changes ...func(*corev1.Pod)) *corev1.Pod {
	pod := objects.ServerPod("v", objects.ReadyPod)
	pod.Name, pod.UID, pod.CreationTimestamp, pod.Spec.NodeName = name, types.UID("uid-"+name), metav1.NewTime(noon), "node-1"
	pod.Status.Phase, pod.Status.PodIPs = corev1.PodRunning, []corev1.PodIP{{IP: "10.42.0.7"}}
	if address != "" {
		changes = append(changes, reports(address))
	}
	return objects.With(pod, changes...)
}

// reports are the addresses that Multus reports for a pod on network one, beside the default network.
func reports(addresses ...string) func(*corev1.Pod) {
	return func(pod *corev1.Pod) {
		text := objects.NetworkStatus(netOne, addresses...)
		text = `[{"name": "cbr0", "interface": "eth0", "ips": ["10.42.0.7"], "default": true}, ` + text[1:]
		pod.Annotations = map[string]string{multus.NetworkStatusAnnotation: text, multus.NetworksAnnotation: netOne.String()}
	}
}
