//lint:file-ignore SA1019 the readers of the deprecated API are served too

package endpoints

import (
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fairlead-io/fairlead/api/v1alpha1"
	"github.com/fairlead-io/fairlead/internal/rwx"
	"github.com/fairlead-io/fairlead/internal/testkit"
	"github.com/fairlead-io/fairlead/internal/testkit/fakeapi"
	"github.com/fairlead-io/fairlead/internal/testkit/must"
	"github.com/fairlead-io/fairlead/internal/testkit/objects"
)

func TestPublishedObjects(t *testing.T) {
	f := newFixture(t, headless(), server("share-manager-v", "", reports("192.168.0.3", "fd00::3")))
	f.mustReconcile()
	meta := func(name string, labels map[string]string) metav1.ObjectMeta {
		m := objects.Here(name)
		m.Labels, m.OwnerReferences = labels, []metav1.OwnerReference{{APIVersion: "v1", Kind: "Service", Name: "v", UID: "uid-v", Controller: ptr.To(true)}}
		return m
	}
	compare := func(got, want client.Object) {
		t.Helper()
		got.SetUID("")
		got.SetResourceVersion("")
		got.SetCreationTimestamp(metav1.Time{})
		must.Check(t, reflect.DeepEqual(got, want), "got  %+v\nwant %+v", got, want)
	}
	target := &corev1.ObjectReference{Kind: "Pod", Namespace: names.Namespace, Name: "share-manager-v", UID: "uid-share-manager-v"}
	for family, address := range map[string]string{"ipv4": "192.168.0.3", "ipv6": "fd00::3"} {
		is := meta("v-fairlead-"+family, map[string]string{
			"kubernetes.io/service-name": "v", "endpointslice.kubernetes.io/managed-by": "fairlead.io", "service.kubernetes.io/headless": "",
		})
		is.Annotations = map[string]string{"fairlead.io/server-moves": `{"addresses":["` + address + `"]}`}
		compare(f.slice(family), &discoveryv1.EndpointSlice{
			ObjectMeta:  is,
			AddressType: map[string]discoveryv1.AddressType{"ipv4": "IPv4", "ipv6": "IPv6"}[family],
			Endpoints: []discoveryv1.Endpoint{{Addresses: []string{address}, NodeName: ptr.To("node-1"), TargetRef: target,
				Conditions: discoveryv1.EndpointConditions{Ready: ptr.To(true), Serving: ptr.To(true), Terminating: ptr.To(false)}}},
			Ports: []discoveryv1.EndpointPort{{Name: ptr.To("nfs"), Protocol: ptr.To(corev1.ProtocolTCP), Port: ptr.To[int32](2049)}},
		})
	}
	compare(f.classic(), &corev1.Endpoints{
		ObjectMeta: meta("v", map[string]string{
			"endpointslice.kubernetes.io/skip-mirror": "true", "service.kubernetes.io/headless": "", "endpoints.kubernetes.io/managed-by": "fairlead.io",
		}),
		Subsets: []corev1.EndpointSubset{{
			Addresses: []corev1.EndpointAddress{{IP: "192.168.0.3", NodeName: ptr.To("node-1"), TargetRef: target}, {IP: "fd00::3", NodeName: ptr.To("node-1"), TargetRef: target}},
			Ports:     []corev1.EndpointPort{{Name: "nfs", Protocol: corev1.ProtocolTCP, Port: 2049}}}},
	})
	writes := len(f.Client.Writes)
	f.mustReconcile()
	must.Check(t, len(f.Client.Writes) == writes, "correct objects are written again: %q", f.Client.Wrote()[writes:])
}

func TestRefusedSliceStopsNoOther(t *testing.T) {
	f := newFixture(t, headless(), server("share-manager-v", "", reports("192.168.0.3", "fd00::3")))
	f.Client.Before = func(w fakeapi.Write) error {
		if w.Object.GetName() == "v-fairlead-ipv4" {
			return apierrors.NewForbidden(discoveryv1.Resource("endpointslices"), w.Object.GetName(), errors.New("a policy says no"))
		}
		return nil
	}
	_, err := f.reconcile()
	must.True(t, err != nil && strings.Contains(err.Error(), "a policy says no"), "got %v", err)
	must.True(t, f.slice("ipv4") == nil && f.slice("ipv6") != nil && f.classic() != nil, "the refused slice stops other addresses")
}

func TestVolumeWithoutServerHasNoAddresses(t *testing.T) {
	f := newFixture(t, headless())
	f.mustReconcile()
	f.wantPublished(false, false, false)
	pod := server("share-manager-v", "192.168.0.3")
	f.Must(f.Create(t.Context(), pod))
	f.mustReconcile()
	f.wantPublished(true, false, true)
	f.remove(pod)
	f.mustReconcile()
	f.wantPublished(true, false, true)
	f.wantDNS()
	f.wantClassic()
}

func TestPublishedPortIsTheServers(t *testing.T) {
	for name, test := range map[string]struct {
		change func(*corev1.ServicePort)
		want   int32
	}{
		"port of the Service":           {func(*corev1.ServicePort) {}, 2049},
		"other port":                    {func(p *corev1.ServicePort) { p.TargetPort.IntVal = 12049 }, 12049},
		"port that is named in the pod": {func(p *corev1.ServicePort) { p.TargetPort.Type, p.TargetPort.StrVal = 1, "nfs" }, 2049},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t, headless(func(s *corev1.Service) { test.change(&s.Spec.Ports[0]) }), server("share-manager-v", "192.168.0.3"))
			f.mustReconcile()
			if slice, classic := *f.slice("ipv4").Ports[0].Port, f.classic().Subsets[0].Ports[0].Port; slice != test.want || classic != test.want {
				t.Errorf("got %d in the slice, %d in the classic object", slice, classic)
			}
		})
	}
}

// kubernetesSlice is a slice that Kubernetes manages.
func kubernetesSlice() *discoveryv1.EndpointSlice {
	s := &discoveryv1.EndpointSlice{ObjectMeta: objects.Here("v-x7zq2"), AddressType: discoveryv1.AddressTypeIPv4}
	s.Labels = map[string]string{discoveryv1.LabelServiceName: "v"}
	return s
}

func (f *fixture) hasKubernetesSlice() bool {
	return testkit.Get[discoveryv1.EndpointSlice](f.TB, f.API, names.Namespace, "v-x7zq2") != nil
}

func withClusterIP(s *corev1.Service) { s.Spec.ClusterIP = "10.43.0.1" }
func withSelector(s *corev1.Service)  { s.Spec.Selector = map[string]string{"a": "b"} }
func optedOut(s *corev1.Service)      { s.Annotations[rwx.OptOutAnnotation] = "true" }

func TestPublishedAddressesAreWithdrawn(t *testing.T) {
	for name, withdraw := range map[string]func(*corev1.Service){"cluster IP": withClusterIP, "selector": withSelector, "opt-out": optedOut} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t, headless(), server("share-manager-v", "", reports("192.168.0.3", "fd00::3")), kubernetesSlice())
			f.mustReconcile()
			f.wantPublished(true, true, true)
			change(f, "v", withdraw)
			f.mustReconcile()
			f.wantPublished(false, false, false)
			must.Check(t, f.hasKubernetesSlice(), "Kubernetes' own slice is gone")
		})
	}
}

func TestOnlyOwnUnneededEndpointsAreDeleted(t *testing.T) {
	others := &corev1.Endpoints{ObjectMeta: objects.Here("v"), Subsets: []corev1.EndpointSubset{{Addresses: []corev1.EndpointAddress{{IP: "10.42.0.7"}}}}}
	f := newFixture(t, headless(withClusterIP), others.DeepCopy())
	f.mustReconcile()
	f.wantClassic("10.42.0.7")

	f = newFixture(t, headless(), server("share-manager-v", "192.168.0.3"), shareManager(), others)
	f.r.Classic = false
	f.wantUnchanged(func() { f.mustReconcile() }) // no ShareManager owns the object
	f.wantClassic("10.42.0.7")
	f.wantPublished(true, false, true)

	f = serving(t) // the object is Fairlead's
	f.r.Classic = false
	f.mustReconcile()
	f.wantPublished(true, false, false)
}

func TestObjectsOfDeletedServiceAreLeftToGarbageCollector(t *testing.T) {
	f := serving(t)
	f.remove(f.service())
	f.mustReconcile()
	f.wantPublished(true, false, true)
	must.True(t, len(f.r.overwritten) == 0, "remembered %v", f.r.overwritten)
}

// Longhorn fills the objects that a ShareManager owns.
func TestLonghornsEndpointsAreTakenOver(t *testing.T) {
	f := newFixture(t, headless(), longhornsEndpoints("10.42.0.7"))
	f.mustReconcile()
	got := f.classic()
	must.True(t, got.Subsets == nil && len(got.OwnerReferences) == 1 && got.OwnerReferences[0].Kind == "Service" && got.Labels["longhorn.io/managed-by"] == "longhorn-manager" && got.Labels["endpointslice.kubernetes.io/skip-mirror"] == "true",
		"got %+v", got)
}

func TestChangesByOthersAreCorrected(t *testing.T) {
	f := serving(t)
	change(f, "v-fairlead-ipv4", func(s *discoveryv1.EndpointSlice) {
		s.Labels["kubernetes.io/service-name"], s.Labels["theirs"] = "w", "x"
		s.Endpoints, s.Ports = nil, nil
	})
	f.remove(f.classic())
	f.mustReconcile()
	got := f.slice("ipv4")
	must.Check(t, got.Labels["kubernetes.io/service-name"] == "v" && got.Labels["theirs"] == "x" && len(got.Endpoints) == 1 && len(got.Ports) == 1, "got %+v", got)
	f.wantClassic("192.168.0.3")
	change(f, "v", func(e *corev1.Endpoints) { delete(e.Labels, discoveryv1.LabelSkipMirror) })
	f.mustReconcile()
	must.Equal(t, f.classic().Labels[discoveryv1.LabelSkipMirror], "true")
	change(f, "v", func(e *corev1.Endpoints) { e.OwnerReferences = nil })
	f.mustReconcile()
	must.Equal(t, len(f.classic().OwnerReferences), 1, "owners")
}

// overwrite lets another controller write other addresses.
func (f *fixture) overwrite(address string) {
	f.Helper()
	change(f, "v", func(e *corev1.Endpoints) {
		e.Subsets = []corev1.EndpointSubset{{Addresses: []corev1.EndpointAddress{{IP: address}}}}
	})
}

func TestStandsDownBesideAnotherWriter(t *testing.T) {
	f := serving(t)
	for range maxOverwritten - 1 {
		f.overwrite("10.42.0.7")
		f.mustReconcile()
		f.wantClassic("192.168.0.3")
		f.wantEvents()
	}
	f.overwrite("10.42.0.7")
	for range 3 {
		f.mustReconcile()
		f.overwrite("10.42.0.8")
	}
	f.mustReconcile()
	f.wantClassic("10.42.0.8")
	f.wantEvents(`Warning StandingDown: another controller keeps writing other addresses to Endpoints v: Fairlead leaves the object alone. ` +
		`The EndpointSlices are correct; set "endpoints: slices" in the configuration if no client reads the classic object`)
	change(f, "v-fairlead-ipv4", func(s *discoveryv1.EndpointSlice) { s.Endpoints = nil })
	f.mustReconcile()
	f.wantDNS("192.168.0.3")
	f.replaceService() // ends it
	f.mustReconcile()
	f.wantClassic("192.168.0.3")
}

func TestDoesNotStandDownWithoutAnotherWriter(t *testing.T) {
	const often = 3 * maxOverwritten
	move := func(f *fixture, i int) { change(f, "share-manager-v", reports(fmt.Sprint("192.168.0.", 4+i))) }
	for name, test := range map[string]func(*fixture){
		"writes of others with long breaks": func(f *fixture) {
			for range often {
				f.Pass(overwrittenGap + time.Second)
				f.overwrite("10.42.0.7")
				f.mustReconcile()
			}
		},
		"own changes, with a cache one write behind": func(f *fixture) {
			for i := range often {
				before := f.classic()
				move(f, i)
				f.mustReconcile()
				f.Client.Cache.Show(before)
				f.mustReconcile()
				f.mustReconcile()
				f.Client.Cache.Release()
			}
		},
		"an overwritten object that the cache still shows": func(f *fixture) {
			f.overwrite("10.42.0.7")
			f.Must(f.Client.Cache.Hold(t.Context(), f.classic()))
			for range often {
				f.mustReconcile()
			}
		},
		"one write of others in the cache, and another in the API": func(f *fixture) {
			f.overwrite("10.42.0.7")
			f.Must(f.Client.Cache.Hold(t.Context(), f.classic()))
			f.overwrite("10.42.0.8")
			for range often {
				f.mustReconcile() // each a conflict
			}
		},
		"one write of others while own writes fail": func(f *fixture) {
			f.overwrite("10.42.0.7")
			f.Client.Before = func(fakeapi.Write) error { return apierrors.NewInternalError(errors.New("etcd is slow")) }
			for range often {
				_, err := f.reconcile()
				must.True(f, err != nil, "no error")
			}
		},
		"own writes with lost answers": func(f *fixture) {
			f.Client.After = func(fakeapi.Write) error { return apierrors.NewInternalError(errors.New("the connection was closed")) }
			for i := range often {
				move(f, i)
				for range 3 { // objects
					_, _ = f.reconcile()
				}
			}
		},
		"labels of others": func(f *fixture) {
			for i := range often {
				change(f, "v", func(e *corev1.Endpoints) { e.Labels["theirs"] = fmt.Sprint(i) })
				f.mustReconcile()
			}
		},
		"same addresses by others": func(f *fixture) {
			for range often {
				change(f, "v", func(e *corev1.Endpoints) { delete(e.Labels, rwx.EndpointsManagedBy) })
				f.mustReconcile()
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			f := serving(t)
			test(f)
			f.Client.Before, f.Client.After = nil, nil
			f.Client.Cache.Release()
			f.mustReconcile()
			f.wantEvents()
			change(f, "share-manager-v", reports("192.168.0.99"))
			f.mustReconcile()
			f.wantClassic("192.168.0.99")
		})
	}
}

func TestUnreachableServerIsReportedAfterAWhile(t *testing.T) {
	const unreachable = "Warning NoAddress: server pod share-manager-v is Ready, but Multus reports no address of the pod on kube-system/one@lhnet1: nothing is published until Multus reports one"
	for name, test := range map[string]struct {
		age, after time.Duration
		change     func(*corev1.Pod)
		want       []string
	}{
		"soon":      {4 * time.Second, 6 * time.Second, objects.ReadyPod, nil},
		"late":      {10 * time.Second, 0, objects.ReadyPod, []string{unreachable}},
		"not Ready": {time.Hour, 0, func(pod *corev1.Pod) { pod.Status.Conditions = nil }, nil},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t, headless(), server("share-manager-v", "", test.change))
			f.Clock.SetTime(noon.Add(test.age))
			must.Equal(t, f.mustReconcile(), test.after, "again")
			f.wantEvents(test.want...)
		})
	}
}

// host-local assigns addresses on each node by itself: servers on two nodes may get the same one, which the older one keeps.
func TestAddressOfTwoServersIsPublishedOnce(t *testing.T) {
	other := func(after time.Duration) *corev1.Pod {
		return server("share-manager-w", "192.168.0.3", func(pod *corev1.Pod) {
			pod.Labels[names.VolumeLabel], pod.OwnerReferences[0].Name, pod.CreationTimestamp = "w", "w", metav1.NewTime(noon.Add(after))
		})
	}
	mine := server("share-manager-v", "192.168.0.3")
	f := newFixture(t, headless(), mine.DeepCopy(), other(time.Second))
	must.Equal(t, f.mustReconcile(), 0)
	f.wantDNS("192.168.0.3")
	f = newFixture(t, headless(), mine.DeepCopy(), other(-time.Second))
	must.Equal(t, f.mustReconcile(), clashRetry)
	f.wantDNS()
	f.wantEvents("Warning AddressClash: server pod share-manager-v has an address on kube-system/one@lhnet1 that the older pod share-manager-w has too: nothing is published. The network's ipam assigns addresses twice, as host-local does with one range on every node")
	f.Must(f.Delete(t.Context(), other(0)))
	f.restart()
	must.Equal(t, f.mustReconcile(), 0)
	f.wantDNS("192.168.0.3")
}

func TestUnrecordedServiceFollowsTheClientsNetwork(t *testing.T) {
	f := newFixture(t, headless(unrecorded), server("share-manager-v", "192.168.0.3"))
	f.mustReconcile()
	f.wantPublished(false, false, false)
	f.Must(f.Seed(t.Context(), objects.Record(netOne)))
	f.mustReconcile()
	f.wantDNS("192.168.0.3")
}

func TestRecordWakesOnlyServicesThatFollowIt(t *testing.T) {
	named := func(name string) func(*corev1.Service) { return func(s *corev1.Service) { s.Name = name } }
	f := newFixture(t, headless(), headless(unrecorded, named("w")), headless(unrecorded, withClusterIP, named("x")))
	if got := f.r.unrecorded(t.Context(), nil); len(got) != 1 || got[0].Name != "w" {
		t.Fatalf("got %v", got)
	}
	before := objects.Record(netOne)
	progress, moved, adopted := before.DeepCopy(), before.DeepCopy(), before.DeepCopy()
	adopted.Status.Recorded = !before.Status.Recorded
	progress.Status.Clients.Updated, progress.Status.Message = 7, "7 of 9"
	moved.Status.Clients.Network = ""
	for after, want := range map[*v1alpha1.NetworkRollout]bool{progress: false, moved: true, adopted: true} {
		must.Equal(t, isClientNetworkMoved(before, after), want, "%+v", after.Status)
	}
}
