package services

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fairlead-io/fairlead/api/v1alpha1"
	"github.com/fairlead-io/fairlead/internal/nfs/assign"
	"github.com/fairlead-io/fairlead/internal/testkit/fakeapi"
)

func TestStableServiceIsPublished(t *testing.T) {
	f := running(t, "Stable", 2)
	s := f.get()
	if s.Status.Address != f.kubeService("pool").Spec.ClusterIP || s.Status.ObservedGeneration != 1 || s.Status.HealthyBackends != 2 {
		t.Errorf("status %+v", s.Status)
	}
	if got := f.published("pool"); len(got) != 1 || got[0]+":2049" != s.Status.Backend {
		t.Errorf("published %v, status names %s", got, s.Status.Backend)
	}
	if c := f.condition(v1alpha1.NFSReady); c.Status != metav1.ConditionTrue {
		t.Errorf("Ready: %+v", c)
	}
}

func TestFailoverKeepsTheAddress(t *testing.T) {
	f := running(t, "Stable", 3)
	address, first := f.get().Status.Address, f.published("pool")[0]
	f.kill(first)
	s := f.get()
	if got := f.published("pool"); len(got) != 1 || got[0] == first || s.Status.Address != address {
		t.Errorf("published %v after %s died, address %s, before %s", got, first, s.Status.Address, address)
	}
	if b := f.backend(first); b.Health != "Down" || b.LastError != "does not answer" || b.Since == nil {
		t.Errorf("backend %+v", b)
	}
	if !f.noted("Warning BackendDown", first, "does not answer") {
		t.Errorf("events %v", f.Events.Notes())
	}
	second := f.published("pool")[0]
	f.healthy("10.0.0.1", "10.0.0.2", "10.0.0.3")
	if got := f.published("pool"); got[0] != second {
		t.Errorf("the return of %s moved the address from %s to %s", first, second, got[0])
	}
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
		if service := f.kubeService(fmt.Sprintf("pool-slot-%d", i)); service.Spec.ClusterIP != slot.Address {
			t.Errorf("slot %d has address %s, its Service %s", i, slot.Address, service.Spec.ClusterIP)
		}
	}
	if counts["10.0.0.1:2049"] != 4 || counts["10.0.0.2:2049"] != 4 {
		t.Errorf("slots by backend: %v", counts)
	}
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
		if got := f.published(fmt.Sprintf("pool-slot-%d", i)); len(got) != 1 || got[0]+":2049" != after.Slots[i].Backend {
			t.Errorf("slot %d publishes %v, recorded is %s", i, got, after.Slots[i].Backend)
		}
	}
	if !f.noted("Normal Moved", "slot", "Down") {
		t.Errorf("events %v", f.Events.Notes())
	}
	if after.Nodes != 12 {
		t.Errorf("%d nodes", after.Nodes)
	}
}

func TestFewerSlotsAreNeverMade(t *testing.T) {
	f := running(t, "PerNodeStable", 2)
	f.change(func(s *v1alpha1.NFSService) { s.Spec.Slots = ptr.To[int32](10) })
	f.reconcile()
	if got := len(f.get().Status.Slots); got != 10 {
		t.Errorf("%d slots, want 10", got)
	}
	f.change(func(s *v1alpha1.NFSService) { s.Spec.Slots = ptr.To[int32](3) })
	f.reconcile()
	if got, c := len(f.get().Status.Slots), f.condition(v1alpha1.NFSReady); got != 10 || c.Reason != reasonInvalidSpec || !strings.Contains(c.Message, "spec.slots") {
		t.Errorf("%d slots, %+v", got, c)
	}
}

func TestDeletedServiceReturnsWithRecordedAddress(t *testing.T) {
	f := running(t, "Stable", 1)
	address := f.get().Status.Address
	f.Must(f.Delete(t.Context(), f.kubeService("pool")))
	f.restart()
	f.reconcile()
	if got := f.kubeService("pool").Spec.ClusterIP; got != address || f.get().Status.Address != address {
		t.Errorf("address %s, recorded %s, before %s", got, f.get().Status.Address, address)
	}
}

func TestTakenAddressIsReported(t *testing.T) {
	f := running(t, "Stable", 1)
	address := f.get().Status.Address
	f.Must(f.Delete(t.Context(), f.kubeService("pool")))
	f.Must(f.Create(t.Context(), &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: "else", Name: "thief"}, Spec: corev1.ServiceSpec{ClusterIP: address}}))
	f.reconcile()
	c := f.condition(v1alpha1.NFSReady)
	if c.Status != metav1.ConditionFalse || c.Reason != "AddressTaken" || !f.noted("Warning AddressTaken", address) || f.get().Status.Address != address {
		t.Errorf("Ready %+v, events %v, address %s", c, f.Events.Notes(), f.get().Status.Address)
	}
	if got := f.published("pool"); len(got) > 0 {
		t.Errorf("published: %v", got)
	}
}

// A node that mounted the address would reach the Service that has it now.
func TestTakenAddressIsNotGivenToNodes(t *testing.T) {
	for exposure, name := range map[string]string{"Stable": "pool", "PerNodeStable": "pool-slot-1"} {
		spec := specOf(exposure, "10.0.0.1", "10.0.0.2")
		if exposure == "PerNodeStable" {
			spec.Slots = ptr.To[int32](2)
		}
		f := newFixture(t, spec)
		f.healthy("10.0.0.1", "10.0.0.2")
		address := f.kubeService(name).Spec.ClusterIP
		f.Must(f.Delete(t.Context(), f.kubeService(name)))
		thief := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: "else", Name: "thief"}, Spec: corev1.ServiceSpec{ClusterIP: address}}
		f.Must(f.Create(t.Context(), thief))
		if f.reconcile() == 0 {
			t.Errorf("%s: the address is not tried again, and no event will come", exposure)
		}
		for i := range 4 {
			got, err := f.r.Pools.Attach(key, assign.Node{Name: fmt.Sprintf("n%d", i)}, fmt.Sprint(i))
			if got == address || (err != nil) != (exposure == "Stable") {
				t.Errorf("%s: node n%d gets %q, %v", exposure, i, got, err)
			}
		}
		f.Must(f.Delete(t.Context(), thief))
		f.reconcile()
		if got, err := f.r.Pools.Attach(key, assign.Node{Name: "n9"}, "9"); err != nil || got != address {
			t.Errorf("%s: once the address is back, a node gets %q, %v", exposure, got, err)
		}
	}
}

func TestForeignServiceIsReported(t *testing.T) {
	f := newFixture(t, specOf("Stable", "10.0.0.1"))
	f.Must(f.Create(t.Context(), &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: "pool"}}))
	f.healthy("10.0.0.1")
	if c := f.condition(v1alpha1.NFSReady); c.Reason != "ForeignService" || f.get().Status.Address != "" || len(f.published("pool")) > 0 {
		t.Errorf("Ready %+v, status %+v", c, f.get().Status)
	}
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
	if err != nil || result.RequeueAfter != settle {
		t.Fatalf("a pass with a stale cache: %+v, %v", result, err)
	}
	f.Client.Cache = nil
	f.reconcile()
	if got := f.kubeService("pool").Spec.ClusterIP; got != address {
		t.Errorf("address %s, recorded was %s", got, address)
	}
}

func TestInvalidSpecKeepsTheLastGoodState(t *testing.T) {
	for _, restarted := range []bool{false, true} {
		t.Run(fmt.Sprintf("restarted %v", restarted), func(t *testing.T) {
			f := running(t, "Stable", 2)
			first := f.published("pool")[0]
			f.change(func(s *v1alpha1.NFSService) {
				s.Spec.Backends = []v1alpha1.NFSBackend{{Address: "nfs.example.org"}, {Address: "10.0.0.9", Weight: ptr.To[int32](5000)}}
			})
			if restarted {
				f.restart()
			}
			f.reconcile()
			c := f.condition(v1alpha1.NFSReady)
			if c.Reason != reasonInvalidSpec || !strings.Contains(c.Message, "spec.backends[0].address") || !strings.Contains(c.Message, "spec.backends[1].weight") {
				t.Errorf("Ready %+v", c)
			}
			if s := f.get().Status; f.published("pool")[0] != first || len(s.Backends) != 2 || s.ObservedGeneration != 2 {
				t.Errorf("published %v, status %+v", f.published("pool"), s)
			}
			f.kill(first) // failover still works
			if got := f.published("pool"); len(got) != 1 || got[0] == first {
				t.Errorf("published %v after %s died", got, first)
			}
		})
	}
}

func TestHealthSurvivesARestart(t *testing.T) {
	f := running(t, "PerNode", 3)
	f.kill("10.0.0.3")
	before := f.get()
	f.restart()
	f.reconcile()
	after := f.get()
	if after.ResourceVersion != before.ResourceVersion || f.backend("10.0.0.3").Health != "Down" {
		t.Errorf("a restart changed status from %+v to %+v", before.Status, after.Status)
	}
}

func TestProberIsSuspectedIfAllFail(t *testing.T) {
	f := running(t, "PerNode", 4)
	f.kill("10.0.0.1", "10.0.0.2", "10.0.0.3", "10.0.0.4")
	if c := f.condition(v1alpha1.NFSProberSuspected); c.Status != metav1.ConditionTrue || c.Message == "" || !f.noted("Warning "+reasonManyFail) {
		t.Errorf("ProberSuspected %+v, events %v", c, f.Events.Notes())
	}
	if c := f.condition(v1alpha1.NFSReady); c.Status != metav1.ConditionFalse || c.Reason != reasonNoneHealthy {
		t.Errorf("Ready %+v", c)
	}
	for _, b := range f.get().Status.Backends {
		if b.Health != "Failing" {
			t.Errorf("backend %+v", b)
		}
	}
	f.healthy("10.0.0.1", "10.0.0.2", "10.0.0.3", "10.0.0.4")
	if c := f.condition(v1alpha1.NFSProberSuspected); c.Status != metav1.ConditionFalse {
		t.Errorf("ProberSuspected %+v", c)
	}
}

func TestServerPodsAreBackends(t *testing.T) {
	spec := v1alpha1.NFSServiceSpec{Exposure: "PerNode", Port: 2049, ServerService: &v1alpha1.NFSServerService{Name: "servers"}}
	spec.Backends = []v1alpha1.NFSBackend{{Address: "10.0.0.9", Weight: ptr.To[int32](3)}}
	f := newFixture(t, spec)
	f.reconcile()
	if got := len(f.get().Status.Backends); got != 0 {
		t.Errorf("%d backends before the Service's endpoints were read", got)
	}
	f.slices["servers"] = []discoveryv1.EndpointSlice{{
		AddressType: discoveryv1.AddressTypeIPv4, Ports: []discoveryv1.EndpointPort{{Name: ptr.To("nfs"), Port: ptr.To[int32](12049)}},
		Endpoints: []discoveryv1.Endpoint{{Addresses: []string{"10.1.0.1"}, Zone: ptr.To("a")}, {Addresses: []string{"10.1.0.2"}, Conditions: discoveryv1.EndpointConditions{Ready: ptr.To(false)}}},
	}}
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
	if b := f.backend(address); b.Nodes != 1 {
		t.Errorf("a mounted node was moved: %+v", b)
	}
}

func TestDeletedServiceStaysWhileAttached(t *testing.T) {
	f := running(t, "Stable", 2)
	f.attach("n1", "v")
	f.Must(f.Delete(t.Context(), f.get()))
	f.reconcile()
	if c := f.condition(v1alpha1.NFSReady); c.Reason != reasonDeleted || !strings.Contains(c.Message, "n1") || len(f.published("pool")) != 1 {
		t.Errorf("Ready %+v, published %v", c, f.published("pool"))
	}
	first := f.published("pool")[0]
	f.kill(first) // failover still works
	if got := f.published("pool"); len(got) != 1 || got[0] == first {
		t.Errorf("published %v after %s died", got, first)
	}
	var va storagev1.VolumeAttachment
	f.Must(f.Get(t.Context(), client.ObjectKey{Name: "n1-v"}, &va))
	va.Finalizers = nil
	f.Must(f.Update(t.Context(), &va))
	f.Must(f.Delete(t.Context(), &va))
	f.reconcile()
	if err := f.Get(t.Context(), key, &v1alpha1.NFSService{}); !apierrors.IsNotFound(err) {
		t.Errorf("the NFSService is still there: %v", err)
	}
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
	if wait := f.reconcile(); writes != 1 || wait <= 0 || wait > counting {
		t.Errorf("%d writes, the next in %s", writes, wait)
	}
	f.Clock.Step(counting)
	f.reconcile()
	if got := f.get().Status.Nodes; got != 10 || writes != 2 {
		t.Errorf("%d nodes after %d writes", got, writes)
	}
}

func TestStaleStatusIsNotActedOn(t *testing.T) {
	f := running(t, "Stable", 2)
	f.Client.Cache = f.NewCache()
	f.Must(f.Client.Cache.Hold(t.Context(), f.get()))
	first := f.published("pool")[0]
	f.kill(first)
	f.Client.Before = func(w fakeapi.Write) error { t.Errorf("%s of %T by a stale cache", w.Verb, w.Object); return nil }
	result, err := f.r.Reconcile(t.Context(), requestOf())
	if err != nil || result.RequeueAfter != settle {
		t.Errorf("got %+v, %v", result, err)
	}
}

func TestHungServerIsOutInTime(t *testing.T) {
	for _, test := range []struct{ interval, timeout time.Duration }{{5 * time.Second, time.Second}, {time.Second, time.Second}, {10 * time.Second, 5 * time.Second}, {5 * time.Second, 100 * time.Millisecond}} {
		s := v1alpha1.NFSServiceSpec{Health: v1alpha1.NFSHealth{Interval: &metav1.Duration{Duration: test.interval}, Timeout: &metav1.Duration{Duration: test.timeout}}}
		settings := readSettings(t, s)
		at := paceOf(settings)
		worst := time.Duration(settings.Failures)*at.interval + at.timeout + gather
		if limit := time.Duration(settings.Failures)*test.interval + time.Second; worst+300*time.Millisecond > limit {
			t.Errorf("interval %s, timeout %s: judged dead after %s, must be published after %s", test.interval, test.timeout, worst, limit)
		}
	}
}

func TestProbersArePooledByPace(t *testing.T) {
	f := newFixture(t, specOf("PerNode", "10.0.0.1", "10.0.0.2"))
	f.reconcile()
	f.change(func(s *v1alpha1.NFSService) { s.Spec.Health.Interval = &metav1.Duration{Duration: time.Minute} })
	f.reconcile()
	var paces []time.Duration
	for at, has := range f.r.Probing.paces {
		paces = append(paces, at.interval.Round(time.Second))
		if len(has.targets) != 2 {
			t.Errorf("%d targets", len(has.targets))
		}
	}
	if !slices.Equal(paces, []time.Duration{time.Minute}) {
		t.Errorf("paces %v", paces)
	}
	f.Must(f.Delete(t.Context(), f.get()))
	f.reconcile()
	f.reconcile()
	if len(f.r.Probing.paces) > 0 {
		t.Errorf("a service that is gone is still probed: %v", f.r.Probing.paces)
	}
}

func TestBackendsOfAnotherFamilyAreReported(t *testing.T) {
	for _, exposure := range []string{"Stable", "PerNodeStable"} {
		f := running(t, exposure, 1)
		f.change(func(s *v1alpha1.NFSService) { s.Spec.Backends = []v1alpha1.NFSBackend{{Address: "fd00::1"}} })
		f.reconcile()
		if c := f.condition(v1alpha1.NFSReady); c.Status != metav1.ConditionFalse || c.Reason != reasonUnreachable {
			t.Errorf("%s: Ready %+v", exposure, c)
		}
	}
}

func TestDiscoveredBackendsOfTwoFamiliesAreReported(t *testing.T) {
	spec := specOf("Stable", "10.0.0.1")
	f := newFixture(t, spec)
	f.healthy("10.0.0.1")
	f.slices["servers"] = []discoveryv1.EndpointSlice{{
		AddressType: discoveryv1.AddressTypeIPv4, Ports: []discoveryv1.EndpointPort{{Name: ptr.To("nfs"), Port: ptr.To[int32](2049)}},
		Endpoints: []discoveryv1.Endpoint{{Addresses: []string{"10.1.0.1"}}},
	}}
	f.change(func(s *v1alpha1.NFSService) {
		s.Spec.Backends, s.Spec.ServerService = []v1alpha1.NFSBackend{{Address: "fd00::1"}}, &v1alpha1.NFSServerService{Name: "servers"}
	})
	f.healthy("10.1.0.1")
	if c := f.condition(v1alpha1.NFSReady); c.Reason != reasonInvalidSpec || !strings.Contains(c.Message, "fd00::1") {
		t.Errorf("Ready %+v", c)
	}
	if got := f.published("pool"); !slices.Equal(got, []string{"10.1.0.1"}) {
		t.Errorf("published %v", got)
	}
}

func TestOneServiceThatFailsStopsNoOther(t *testing.T) {
	f := newFixture(t, specOf("PerNodeStable", "10.0.0.1", "10.0.0.2"))
	f.Client.Before = func(w fakeapi.Write) error {
		if w.Object.GetName() == "pool-slot-0" {
			return fakeapi.ErrCrashed // such as a quota
		}
		return nil
	}
	_, err := f.r.Reconcile(t.Context(), requestOf())
	if err == nil {
		t.Error("the pass is not tried again")
	}
	for range 2 {
		f.probe(map[string]string{"10.0.0.1": "", "10.0.0.2": ""})
	}
	if _, err := f.r.Reconcile(t.Context(), requestOf()); err == nil {
		t.Error("the pass is not tried again")
	}
	s := f.get().Status
	if c := f.condition(v1alpha1.NFSReady); c.Reason != string(notWritten) || !strings.Contains(c.Message, "pool-slot-0") {
		t.Errorf("Ready %+v", c)
	}
	if s.HealthyBackends != 2 || s.Slots[0].Address != "" || s.Slots[1].Address == "" || len(f.published("pool-slot-1")) != 1 {
		t.Errorf("status %+v", s)
	}
	if address := f.attach("n0", "v"); address == "" {
		t.Error("no node can be attached")
	}
}
