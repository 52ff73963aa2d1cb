package services

import (
	"context"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/ptr"

	"github.com/fairlead-io/fairlead/api/v1alpha1"
	"github.com/fairlead-io/fairlead/internal/nfs"
	"github.com/fairlead-io/fairlead/internal/nfs/assign"
	"github.com/fairlead-io/fairlead/internal/nfs/definition"
	"github.com/fairlead-io/fairlead/internal/nfs/rpc"
	"github.com/fairlead-io/fairlead/internal/testkit"
	"github.com/fairlead-io/fairlead/internal/testkit/fakeapi"
	"github.com/fairlead-io/fairlead/internal/testkit/must"
)

func TestStableServiceIsPublished(t *testing.T) {
	f := running(t, "Stable", 2)
	s := f.get().Status
	must.Equal(t, s.Address, f.kubeService("pool").Spec.ClusterIP)
	must.Equal(t, f.published("pool"), []string{strings.TrimSuffix(s.Backend, ":2049")})
	must.Equal(t, s.ObservedGeneration, 1)
	must.Equal(t, s.HealthyBackends, 2)
	must.Equal(t, f.condition(v1alpha1.NFSReady).Status, metav1.ConditionTrue)
}

func TestFailoverKeepsTheAddress(t *testing.T) {
	f := running(t, "Stable", 3)
	address, first := f.get().Status.Address, f.published("pool")[0]
	for _, reason := range []assign.Reason{assign.Gone, assign.Down, assign.Draining, assign.Excess, assign.Unused} {
		moves, found := testkit.Metric(t, f.Registry, "fairlead_nfs_moves_total", string(reason))
		must.True(t, found && moves == 0, "moves for reason %s before the first: %v (found: %t)", reason, moves, found)
	}
	second := f.failsOver(first)
	must.Equal(t, f.Metric("fairlead_nfs_moves_total", string(assign.Down)), 1, "moves")
	must.Equal(t, f.get().Status.Address, address)
	b := f.backend(first)
	must.True(t, b.Health == "Down" && b.LastError == "does not answer" && b.Since != nil, "backend %+v", b)
	must.Equal(t, f.noted("Warning BackendDown", first, "does not answer"), true, "events %v", f.Events.Notes())
	f.healthy("10.0.0.1", "10.0.0.2", "10.0.0.3")
	must.Equal(t, f.published("pool"), []string{second}, "after the return of %s", first)
}

func TestEventsOutliveFailedPass(t *testing.T) {
	f := running(t, "Stable", 2)
	first, failed := f.published("pool")[0], false
	f.Client.Before = func(fakeapi.Write) error {
		if failed {
			return nil
		}
		failed = true
		return apierrors.NewConflict(schema.GroupResource{Resource: "nfsservices"}, key.Name, errBehind)
	}
	f.kill(first)
	must.True(t, failed && f.noted("Warning BackendDown", first), "events %v", f.Events.Notes())
}

// mount.nfs asks all of these ports before it mounts NFSv3.
func TestPortsOfVersion3ArePublished(t *testing.T) {
	s := specOf("Stable", addresses(1)...)
	s.Versions, s.Health.MountPort = []int32{3}, 20048
	f := newFixture(t, s)
	f.healthy(addresses(1)...)
	want := []int32{111, 111, 2049, 20048, 20048}
	ports := map[string][]int32{}
	for _, p := range f.kubeService("pool").Spec.Ports {
		ports["Service"] = append(ports["Service"], p.Port)
	}
	var published discoveryv1.EndpointSliceList
	f.Must(f.API.List(t.Context(), &published))
	for _, slice := range published.Items {
		for _, p := range slice.Ports {
			ports["slice"] = append(ports["slice"], *p.Port)
		}
	}
	for _, of := range []string{"Service", "slice"} {
		slices.Sort(ports[of])
		must.Equal(t, ports[of], want, of)
	}
	before := f.get().ResourceVersion
	f.reconcile()
	must.Equal(t, f.get().ResourceVersion, before, "a second pass writes")
}

// failsOver kills the published server, and returns the next.
func (f *fixture) failsOver(first string) string {
	f.Helper()
	f.kill(first)
	got := f.published("pool")
	must.True(f, len(got) == 1 && got[0] != first, "published %v after %s died", got, first)
	return got[0]
}

func TestSlotsAreRecordedBeforeTheirServices(t *testing.T) {
	f := newFixture(t, specOf("PerNodeStable", "10.0.0.1", "10.0.0.2"))
	f.Client.Before = func(w fakeapi.Write) error {
		if _, ok := w.Object.(*corev1.Service); ok && w.Verb == "create" && len(f.get().Status.Slots) != 8 {
			t.Errorf("Service %s is created while status records %d slots", w.Object.GetName(), len(f.get().Status.Slots))
		}
		return nil
	}
	f.healthy("10.0.0.1", "10.0.0.2")
	counts := map[string]int{}
	for i, slot := range f.get().Status.Slots {
		counts[slot.Backend]++
		must.Equal(t, f.kubeService(fmt.Sprintf("pool-slot-%d", i)).Spec.ClusterIP, slot.Address, "slot %d", i)
	}
	must.Equal(t, counts, map[string]int{"10.0.0.1:2049": 4, "10.0.0.2:2049": 4}, "slots by backend")
}

func TestDeathMovesOnlyTheSlotsOfTheDead(t *testing.T) {
	f := running(t, "PerNodeStable", 3)
	for i := range 12 {
		f.attach(fmt.Sprintf("n%d", i), "v")
	}
	f.Clock.Step(counting)
	f.reconcile()
	before := f.get().Status
	f.kill("10.0.0.2")
	after := f.get().Status
	for i := range after.Slots {
		dead := before.Slots[i].Backend == "10.0.0.2:2049"
		if dead == (after.Slots[i].Backend == before.Slots[i].Backend) || after.Slots[i].Address != before.Slots[i].Address {
			t.Errorf("slot %d was %+v and is %+v", i, before.Slots[i], after.Slots[i])
		}
		must.Equal(t, f.published(fmt.Sprintf("pool-slot-%d", i)), []string{strings.TrimSuffix(after.Slots[i].Backend, ":2049")}, "slot %d", i)
	}
	must.Equal(t, f.noted("Normal Moved", "slot", "Down"), true, "events %v", f.Events.Notes())
	must.Equal(t, after.Nodes, 12)
}

func TestFewerSlotsAreNeverMade(t *testing.T) {
	f := running(t, "PerNodeStable", 2)
	for _, slots := range []int32{10, 3} {
		f.change(func(s *v1alpha1.NFSService) { s.Spec.Slots = &slots })
		f.reconcile()
		must.Equal(t, len(f.get().Status.Slots), 10, "slots")
	}
	must.Equal(t, f.condition(v1alpha1.NFSReady).Status, metav1.ConditionTrue, "fewer slots are asked for")
}

// notReady fails unless condition Ready is false for a reason, with a message that has the texts.
func (f *fixture) notReady(reason string, texts ...string) {
	f.Helper()
	c := f.condition(v1alpha1.NFSReady)
	missing := func(text string) bool { return !strings.Contains(c.Message, text) }
	if c.Status != metav1.ConditionFalse || c.Reason != reason || slices.ContainsFunc(texts, missing) {
		f.Errorf("Ready %+v, want reason %s and %q", c, reason, texts)
	}
}

func (f *fixture) steal(name string) (address string, thief *corev1.Service) {
	f.Helper()
	address = f.kubeService(name).Spec.ClusterIP
	f.Must(f.Delete(context.Background(), f.kubeService(name)))
	thief = &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: "else", Name: "thief"}, Spec: corev1.ServiceSpec{ClusterIP: address}}
	f.Must(f.Create(context.Background(), thief))
	return address, thief
}

func TestDeletedServiceReturnsWithRecordedAddress(t *testing.T) {
	f := running(t, "Stable", 1)
	address := f.get().Status.Address
	f.Must(f.Delete(t.Context(), f.kubeService("pool")))
	f.restart()
	f.reconcile()
	must.Equal(t, f.kubeService("pool").Spec.ClusterIP, address)
	must.Equal(t, f.get().Status.Address, address)
}

func TestTakenAddressIsReported(t *testing.T) {
	f := running(t, "Stable", 1)
	address, _ := f.steal("pool")
	f.reconcile()
	f.notReady("AddressTaken")
	must.Equal(t, f.noted("Warning AddressTaken", address), true, "events %v", f.Events.Notes())
	must.Equal(t, f.get().Status.Address, address)
	must.Equal(t, f.published("pool"), nil)
}

// A node that mounted the address would reach the Service that has it now.
func TestTakenAddressIsNotGivenToNodes(t *testing.T) {
	for exposure, name := range map[string]string{"Stable": "pool", "PerNodeStable": "pool-slot-1"} {
		f := running(t, exposure, 2)
		address, thief := f.steal(name)
		must.True(t, f.reconcile() != 0, "%s: the address is not tried again, and no event will come", exposure)
		for i := range 16 {
			got, err := f.r.Pools.Attach(key, assign.Node{Name: fmt.Sprintf("n%d", i)}, fmt.Sprint(i))
			must.True(t, got != address && (err != nil) == (exposure == "Stable"), "%s: node n%d gets %q, %v", exposure, i, got, err)
		}
		f.Must(f.Delete(t.Context(), thief))
		f.reconcile()
		got, err := f.r.Pools.Attach(key, assign.Node{Name: "n99"}, "99")
		must.Do(t, err)
		must.Equal(t, got, address, "%s: once the address is back", exposure)
	}
}

func TestForeignServiceIsReported(t *testing.T) {
	f := newFixture(t, specOf("Stable", "10.0.0.1"))
	f.Must(f.Create(t.Context(), &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: "pool"}}))
	f.healthy("10.0.0.1")
	f.notReady("ForeignService")
	must.Equal(t, f.get().Status.Address, "")
	must.Equal(t, f.published("pool"), nil)
}

func TestStaleCacheNeverCostsTheAddress(t *testing.T) {
	f := newFixture(t, specOf("Stable", "10.0.0.1"))
	f.reconcile()
	f.Client.Cache = f.NewCache()
	s := f.get()
	s.Status.Address, s.Status.Slots = "", nil // as it was before the address was recorded
	stale := s.DeepCopy()
	stale.ResourceVersion = "1"
	f.Client.Cache.Show(stale)
	f.Client.Cache.Absent(f.kubeService("pool"))
	address := f.get().Status.Address
	f.Must(f.Delete(t.Context(), f.kubeService("pool")))
	f.r.states = nil // a new leader
	result, err := f.r.Reconcile(t.Context(), requestOf())
	must.True(t, err == nil && result.RequeueAfter == settle, "a pass with a stale cache: %+v, %v", result, err)
	f.Client.Cache = nil
	f.reconcile()
	must.Equal(t, f.kubeService("pool").Spec.ClusterIP, address)
}

func TestInvalidSpecKeepsTheLastGoodState(t *testing.T) {
	for _, restarted := range []bool{false, true} {
		t.Run(fmt.Sprintf("restarted %v", restarted), func(t *testing.T) {
			f := running(t, "Stable", 2)
			first := f.published("pool")[0]
			f.change(func(s *v1alpha1.NFSService) {
				s.Spec.Backends = []v1alpha1.NFSBackend{{Address: "nfs.example.org"}, {Address: "10.0.0.9"}, {Address: "10.0.0.9"}}
			})
			if restarted {
				f.restart()
			}
			f.reconcile()
			f.notReady(reasonInvalidSpec, "spec.backends[0].address", "spec.backends[2].address")
			must.Equal(t, f.published("pool"), []string{first})
			must.Equal(t, len(f.get().Status.Backends), 2)
			must.Equal(t, f.get().Status.ObservedGeneration, 2)
			f.failsOver(first)
		})
	}
}

func TestHealthSurvivesARestart(t *testing.T) {
	f := running(t, "PerNode", 3)
	f.kill("10.0.0.3")
	before := f.get()
	f.restart()
	f.reconcile()
	must.Equal(t, f.get(), before)
	must.Equal(t, f.backend("10.0.0.3").Health, "Down")
}

func TestProberIsSuspectedIfAllFail(t *testing.T) {
	f := running(t, "PerNode", 4)
	f.kill("10.0.0.1", "10.0.0.2", "10.0.0.3", "10.0.0.4")
	if c := f.condition(v1alpha1.NFSProberSuspected); c.Status != metav1.ConditionTrue || c.Message == "" || !f.noted("Warning "+reasonManyFail) {
		t.Errorf("ProberSuspected %+v, events %v", c, f.Events.Notes())
	}
	f.notReady(reasonNoneHealthy)
	for _, b := range f.get().Status.Backends {
		must.Equal(t, b.Health, "Failing", "health of %s", b.Address)
	}
	f.healthy("10.0.0.1", "10.0.0.2", "10.0.0.3", "10.0.0.4")
	must.Equal(t, f.condition(v1alpha1.NFSProberSuspected).Status, metav1.ConditionFalse, "ProberSuspected")
}

func endpoints(port int32, list ...discoveryv1.Endpoint) []discoveryv1.EndpointSlice {
	return []discoveryv1.EndpointSlice{{
		AddressType: discoveryv1.AddressTypeIPv4, Ports: []discoveryv1.EndpointPort{{Name: ptr.To("nfs"), Port: &port}}, Endpoints: list,
	}}
}

func TestServerPodsAreBackends(t *testing.T) {
	spec := v1alpha1.NFSServiceSpec{Exposure: "PerNode", Port: 2049, ServerService: &v1alpha1.NFSServerService{Name: "servers"}}
	spec.Backends = []v1alpha1.NFSBackend{{Address: "10.0.0.9", Weight: ptr.To[int32](3)}}
	f := newFixture(t, spec)
	f.reconcile()
	must.Equal(t, len(f.get().Status.Backends), 0, "backends before the endpoints were read")
	f.slices["servers"] = endpoints(12049, discoveryv1.Endpoint{Addresses: []string{"10.1.0.1"}, Zone: ptr.To("a")},
		discoveryv1.Endpoint{Addresses: []string{"10.1.0.2"}, Conditions: discoveryv1.EndpointConditions{Ready: ptr.To(false)}})
	f.reconcile()
	list := f.get().Status.Backends
	if len(list) != 2 || list[0].Weight != 3 || list[0].Source != "static" || list[1].Address != "10.1.0.1:12049" || list[1].Zone != "a" || list[1].Source != "service" {
		t.Errorf("backends %+v", list)
	}
}

func TestNodesThatNeedARemountAreNamed(t *testing.T) {
	f := running(t, "PerNode", 3)
	address := f.attach("n1", "v")
	f.kill(address)
	f.Clock.Step(counting)
	f.reconcile()
	c := f.condition(v1alpha1.NFSBalanced)
	if c.Status != metav1.ConditionFalse || c.Reason != reasonRemount || !strings.Contains(c.Message, "n1 (Down: "+address) {
		t.Errorf("Balanced %+v", c)
	}
	must.Equal(t, f.backend(address).Nodes, 1, "nodes of the dead server, which cannot move")
}

func TestDeletedServiceStaysWhileAttached(t *testing.T) {
	f := running(t, "Stable", 2)
	f.attach("n1", "v")
	f.Must(f.Delete(t.Context(), f.get()))
	f.reconcile()
	f.notReady(reasonDeleted, "n1")
	f.failsOver(f.published("pool")[0])
	va := testkit.Get[storagev1.VolumeAttachment](f, f.API, "", "n1-v")
	va.Finalizers = nil
	f.Must(f.Update(t.Context(), va))
	f.Must(f.Delete(t.Context(), va))
	f.reconcile()
	must.Equal(t, f.get(), nil)
}

func TestNumbersOfNodesAreWrittenOnceASecond(t *testing.T) {
	f := running(t, "PerNode", 1)
	f.Clock.Step(counting)
	writes := 0
	f.Client.After = func(w fakeapi.Write) error { writes++; return nil }
	for i := range 10 {
		f.attach(fmt.Sprintf("n%d", i), "v")
		f.reconcile()
	}
	wait := f.reconcile()
	must.True(t, writes == 1 && wait > 0 && wait <= counting, "%d writes, the next in %s", writes, wait)
	f.Clock.Step(counting)
	f.reconcile()
	got := f.get().Status.Nodes
	must.True(t, got == 10 && writes == 2, "%d nodes after %d writes", got, writes)
}

func TestStaleStatusIsNotActedOn(t *testing.T) {
	f := running(t, "Stable", 2)
	f.Client.Cache = f.NewCache()
	f.Must(f.Client.Cache.Hold(t.Context(), f.get()))
	first := f.published("pool")[0]
	f.kill(first)
	f.Client.Before = func(w fakeapi.Write) error { t.Errorf("%s of %T by a stale cache", w.Verb, w.Object); return nil }
	result, err := f.r.Reconcile(t.Context(), requestOf())
	must.True(t, err == nil && result.RequeueAfter == settle, "got %+v, %v", result, err)
}

func TestHungServerIsOutInTime(t *testing.T) {
	for _, test := range []struct{ interval, timeout time.Duration }{{5 * time.Second, time.Second}, {time.Second, time.Second}, {10 * time.Second, 5 * time.Second}, {5 * time.Second, 100 * time.Millisecond}} {
		s := v1alpha1.NFSServiceSpec{Health: v1alpha1.NFSHealth{Interval: &metav1.Duration{Duration: test.interval}, Timeout: &metav1.Duration{Duration: test.timeout}}}
		settings := readSettings(t, s)
		worst := time.Duration(settings.Failures)*intervalOf(settings) + settings.Timeout + gather
		if limit := time.Duration(settings.Failures)*test.interval + time.Second; worst+300*time.Millisecond > limit {
			t.Errorf("interval %s, timeout %s: judged dead after %s, must be published after %s", test.interval, test.timeout, worst, limit)
		}
	}
}

func TestServersAreProbedAtTheIntervalOfTheirService(t *testing.T) {
	f := newFixture(t, specOf("PerNode", "10.0.0.1", "10.0.0.2"))
	f.reconcile()
	f.change(func(s *v1alpha1.NFSService) { s.Spec.Health.Interval = &metav1.Duration{Duration: time.Minute} })
	f.reconcile()
	probes := make(chan rpc.Target, 100)
	f.r.prober = rpc.NewProber(func(_ context.Context, target rpc.Target) rpc.Result {
		probes <- target
		return rpc.Result{}
	}, func(probed, rpc.Result) {})
	go f.r.prober.Run(t.Context())
	f.reconcile()
	targets := map[netip.Addr]time.Duration{}
	for range 2 {
		target := <-probes
		targets[target.Address.Addr()] = target.Interval.Round(time.Second)
	}
	must.Equal(t, targets, map[netip.Addr]time.Duration{netip.MustParseAddr("10.0.0.1"): time.Minute, netip.MustParseAddr("10.0.0.2"): time.Minute}, "intervals of targets")
	by, _ := definition.Read(f.get())
	f.Must(f.Delete(t.Context(), f.get()))
	f.reconcile()
	f.reconcile()
	f.r.setTargets(key, []nfs.Backend{{Addr: netip.MustParseAddrPort("10.0.0.1:2049")}}, by)
	select {
	case target := <-probes:
		must.Equal(t, target.Address.String(), "10.0.0.1:2049")
	case <-time.After(10 * time.Second):
		t.Error("a new service of that name is not probed at once: the former targets are still there")
	}
}

func TestBackendsOfAnotherFamilyAreReported(t *testing.T) {
	for _, exposure := range []string{"Stable", "PerNodeStable"} {
		f := running(t, exposure, 1)
		f.change(func(s *v1alpha1.NFSService) { s.Spec.Backends = []v1alpha1.NFSBackend{{Address: "fd00::1"}} })
		f.reconcile()
		f.notReady(reasonUnreachable)
	}
}

func TestDiscoveredBackendsOfTwoFamiliesAreReported(t *testing.T) {
	f := running(t, "Stable", 1)
	f.slices["servers"] = endpoints(2049, discoveryv1.Endpoint{Addresses: []string{"10.1.0.1"}})
	f.change(func(s *v1alpha1.NFSService) {
		s.Spec.Backends, s.Spec.ServerService = []v1alpha1.NFSBackend{{Address: "fd00::1"}}, &v1alpha1.NFSServerService{Name: "servers"}
	})
	f.healthy("10.1.0.1")
	f.notReady(reasonInvalidSpec, "fd00::1")
	must.Equal(t, f.published("pool"), []string{"10.1.0.1"})
}

func TestOneServiceThatFailsStopsNoOther(t *testing.T) {
	f := newFixture(t, specOf("PerNodeStable", "10.0.0.1", "10.0.0.2"))
	f.Client.Before = func(w fakeapi.Write) error {
		if w.Object.GetName() == "pool-slot-0" {
			return fakeapi.ErrCrashed // such as a quota
		}
		return nil
	}
	for range 2 {
		_, err := f.r.Reconcile(t.Context(), requestOf())
		must.True(t, err != nil, "the pass is not tried again")
		for range 2 {
			f.probe(map[string]string{"10.0.0.1": "", "10.0.0.2": ""})
		}
	}
	s := f.get().Status
	f.notReady(string(notWritten), "pool-slot-0")
	if s.HealthyBackends != 2 || s.Slots[0].Address != "" || s.Slots[1].Address == "" || len(f.published("pool-slot-1")) != 1 {
		t.Errorf("status %+v", s)
	}
	f.attach("n0", "v")
}
