package frontend

import (
	"errors"
	"net/netip"
	"reflect"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fairlead-io/fairlead/internal/nfs/publish"
	"github.com/fairlead-io/fairlead/internal/rwx"
	"github.com/fairlead-io/fairlead/internal/testkit/fakeapi"
	"github.com/fairlead-io/fairlead/internal/testkit/must"
)

func TestFrontendIsPublished(t *testing.T) {
	f := newFixture(t)
	want := stable("", two)
	want.Labels = map[string]string{"storageos.com/volume-id": "v1"}
	result := f.sync(want)
	s := f.service()
	if result.State != Published || result.ClusterIP.String() != s.Spec.ClusterIP || !result.Moved || len(s.Spec.Selector) > 0 {
		t.Errorf("got %+v, Service %+v", result, s.Spec)
	}
	if s.Labels["storageos.com/volume-id"] != "v1" || s.Labels[publish.ServiceLabel] != "pool" || s.OwnerReferences[0].UID != "owner" {
		t.Errorf("labels %v, owners %v", s.Labels, s.OwnerReferences)
	}
	must.Equal(t, f.named(), []string{two.String()}, "slices name")
	f.Client.Before = func(w fakeapi.Write) error { t.Errorf("a second pass writes: %s %T", w.Verb, w.Object); return nil }
	want.ClusterIP = result.ClusterIP
	again := f.sync(want)
	must.True(t, !again.Moved && again.Service == publish.Keep, "got %+v", again)
}

func TestDeletedServiceReturnsWithItsAddress(t *testing.T) {
	f, address := publishedOne(t)
	f.Must(f.Delete(t.Context(), f.service()))
	result := f.sync(stable(address, one))
	if result.State != Published || f.service().Spec.ClusterIP != address || result.Service != publish.Create {
		t.Errorf("got %+v, address %s, want %s", result, f.service().Spec.ClusterIP, address)
	}
	must.Equal(t, f.slice().OwnerReferences[0].UID, f.service().UID, "the slice still belongs to the deleted Service, and would be collected")
}

// The garbage collector deletes the slices of a deleted Service at any time.
func TestCollectedSlicesAreRecreatedDespiteAStaleCache(t *testing.T) {
	f, address := publishedOne(t)
	f.Client.Cache = f.NewCache()
	for _, o := range []client.Object{f.slice(), f.service()} {
		f.Must(f.Client.Cache.Hold(t.Context(), o))
		f.Must(f.Delete(t.Context(), o))
	}
	f.Client.Cache.Absent(&corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: "storage", Name: "pool"}})
	f.sync(stable(address, one))
	must.Equal(t, f.named(), []string{one.String()}, "slices name")
	must.Equal(t, f.slice().OwnerReferences[0].UID, f.service().UID, "owner of the slice")
}

func TestTakenAddressIsReportedNotReplaced(t *testing.T) {
	f, address := publishedOne(t)
	f.Must(f.Delete(t.Context(), f.service()))
	other := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: "else", Name: "thief"}, Spec: corev1.ServiceSpec{ClusterIP: address}}
	f.Must(f.Create(t.Context(), other))
	result := f.sync(stable(address, one))
	must.True(t, result.State == Taken && !result.ClusterIP.IsValid() && strings.Contains(result.Message, address), "got %+v", result)
	must.True(t, len(f.named()) == 0, "still published: %v", f.named())
	f.Must(f.Delete(t.Context(), other))
	again := f.sync(stable(address, one))
	must.True(t, again.State == Published && again.ClusterIP.String() == address, "the address is free again: %+v", again)
}

func TestForeignServiceIsNeverAdopted(t *testing.T) {
	f := newFixture(t)
	foreign := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: "storage", Name: "pool"}, Spec: corev1.ServiceSpec{Selector: map[string]string{"app": "db"}}}
	f.Must(f.Create(t.Context(), foreign))
	// A slice of the volume publisher has the same name, and is not this writer's.
	shared := &discoveryv1.EndpointSlice{
		ObjectMeta: metav1.ObjectMeta{Namespace: "storage", Name: "pool-fairlead-ipv4", Labels: map[string]string{
			discoveryv1.LabelServiceName: "pool", discoveryv1.LabelManagedBy: rwx.SliceManager}},
		AddressType: discoveryv1.AddressTypeIPv4, Endpoints: []discoveryv1.Endpoint{{Addresses: []string{"192.168.0.9"}}},
	}
	f.Must(f.Create(t.Context(), shared))
	f.Client.Before = func(w fakeapi.Write) error { t.Errorf("%s %s", w.Verb, w.Object.GetName()); return nil }
	result := f.sync(stable("", one))
	must.True(t, result.State == Foreign && !result.ClusterIP.IsValid() && result.Message != "", "got %+v", result)
}

func TestUncachedServiceIsRecognized(t *testing.T) {
	f, address := publishedOne(t)
	s := f.service()
	delete(s.Labels, publish.ServiceLabel)
	f.Must(f.Update(t.Context(), s))
	f.Client.Cache = f.NewCache()
	f.Client.Cache.Absent(&corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: "storage", Name: "pool"}})
	result := f.sync(stable(address, one))
	if result.State != Published || result.Service != publish.Update || f.service().Labels[publish.ServiceLabel] != "pool" {
		t.Errorf("got %+v, labels %v", result, f.service().Labels)
	}
}

func TestDeadAddressIsRemovedFirst(t *testing.T) {
	for _, test := range []struct {
		name string
		dead func(netip.AddrPort) bool
		want [][]string
	}{
		{"dead", func(a netip.AddrPort) bool { return a == one }, [][]string{{}, {two.String()}}},
		{"unknown", nil, [][]string{{}, {two.String()}}},
		{"draining", func(netip.AddrPort) bool { return false }, [][]string{{two.String()}}},
	} {
		t.Run(test.name, func(t *testing.T) {
			f, address := publishedOne(t)
			f.shown = nil
			f.dead = test.dead
			f.sync(stable(address, two))
			must.True(t, reflect.DeepEqual(f.shown, test.want), "slices named %v one after the other, want %v", f.shown, test.want)
		})
	}
}

func TestPortsOfVersion3AreNoDeadAddresses(t *testing.T) {
	f := newFixture(t)
	want := stable("", one)
	want.MountPort = 20048
	want.ClusterIP = f.sync(want).ClusterIP
	f.Client.Before = func(w fakeapi.Write) error { t.Errorf("a second pass writes: %s %T", w.Verb, w.Object); return nil }
	f.sync(want)
}

// Ondat's api-manager compares the first address and the first port (EndpointsIsEqual).
func TestChangedSlicesAreRepaired(t *testing.T) {
	for name, change := range map[string]func(*discoveryv1.EndpointSlice){
		"second endpoint": func(s *discoveryv1.EndpointSlice) {
			s.Endpoints = append(s.Endpoints, discoveryv1.Endpoint{Addresses: []string{"10.0.0.99"}})
		},
		"second address": func(s *discoveryv1.EndpointSlice) { s.Endpoints[0].Addresses = []string{"10.0.0.1", "10.0.0.9"} },
		"other address":  func(s *discoveryv1.EndpointSlice) { s.Endpoints[0].Addresses = []string{"10.0.0.9"} },
		"no endpoint":    func(s *discoveryv1.EndpointSlice) { s.Endpoints = nil },
		"not ready":      func(s *discoveryv1.EndpointSlice) { s.Endpoints[0].Conditions.Ready = ptr.To(false) },
		"not serving":    func(s *discoveryv1.EndpointSlice) { s.Endpoints[0].Conditions.Serving = ptr.To(false) },
		"terminating":    func(s *discoveryv1.EndpointSlice) { s.Endpoints[0].Conditions.Terminating = ptr.To(true) },
		"port":           func(s *discoveryv1.EndpointSlice) { s.Ports[0].Port = ptr.To[int32](111) },
		"name of port":   func(s *discoveryv1.EndpointSlice) { s.Ports[0].Name = ptr.To("x") },
		"protocol":       func(s *discoveryv1.EndpointSlice) { s.Ports[0].Protocol = ptr.To(corev1.ProtocolUDP) },
		"second port": func(s *discoveryv1.EndpointSlice) {
			s.Ports = append(s.Ports, discoveryv1.EndpointPort{Name: ptr.To("x"), Port: ptr.To[int32](1), Protocol: ptr.To(corev1.ProtocolTCP)})
		},
	} {
		f, address := publishedOne(t)
		slice := f.slice()
		right := slice.DeepCopy()
		change(slice)
		f.Must(f.Update(t.Context(), slice))
		result := f.sync(stable(address, one))
		must.True(t, result.Moved, "%s: nothing is written", name)
		must.Equal(t, f.slice().Endpoints, right.Endpoints, "%s: endpoints", name)
		must.Equal(t, f.slice().Ports, right.Ports, "%s: ports", name)
	}
}

func TestServiceWithAnotherAddressPublishesNothing(t *testing.T) {
	f := newFixture(t)
	f.sync(stable("", one))
	result := f.sync(stable("10.96.9.9", one))
	must.True(t, result.State == WrongAddress && !result.ClusterIP.IsValid() && len(f.named()) == 0, "got %+v, slices name %v", result, f.named())
}

func TestFrontendWithoutBackendNamesNothing(t *testing.T) {
	f, address := publishedOne(t)
	result := f.sync(stable(address, netip.AddrPort{}))
	must.True(t, result.State == Published && len(f.named()) == 0, "got %+v, slices name %v", result, f.named())
}

// The condition of the NFSService has the message. A refusal by admission needs no RoleBinding.
func TestMissingRightNamesTheCommand(t *testing.T) {
	const command = "kubectl -n storage create rolebinding fairlead-csi-publisher --clusterrole=fairlead-csi-publisher --serviceaccount=fairlead-system:fairlead-csi-controller"
	for why, named := range map[string]bool{
		`User "system:serviceaccount:fairlead-system:fairlead-csi-controller" cannot create resource "services" in API group "" in the namespace "storage"`: true,
		"ValidatingAdmissionPolicy 'x' with binding 'x' denied request":                                                                                     false,
	} {
		f := newFixture(t)
		f.Client.Before = func(fakeapi.Write) error {
			return apierrors.NewForbidden(schema.GroupResource{Resource: "services"}, "pool", errors.New(why))
		}
		_, err := f.w.Sync(t.Context(), stable("", one), nil)
		must.True(t, apierrors.IsForbidden(err) && strings.Contains(err.Error(), why), "got %v", err)
		must.Check(t, strings.Contains(err.Error(), command) == named, "%v", err)
	}
}
