package publish

import (
	"fmt"
	"net/netip"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/fairlead-io/fairlead/internal/nfs"
	"github.com/fairlead-io/fairlead/internal/testkit/must"
)

func at(i int) netip.AddrPort {
	return netip.AddrPortFrom(netip.AddrFrom4([4]byte{10, 0, 0, byte(i + 1)}), nfs.DefaultPort)
}

// backends has a letter for each: H, U, F, D; small letters drain.
func backends(word string) []nfs.Backend {
	health := map[string]nfs.Health{"H": nfs.Healthy, "U": nfs.Unknown, "F": nfs.Failing, "D": nfs.Down}
	var list []nfs.Backend
	for i, c := range word {
		letter := string(c)
		list = append(list, nfs.Backend{
			Addr: at(i), Weight: 1, Drain: letter == strings.ToLower(letter), Health: health[strings.ToUpper(letter)],
		})
	}
	return list
}

func TestStableAddressFollowsHealth(t *testing.T) {
	for _, c := range []struct {
		backends  string
		now, want int // -1: none
	}{
		{"HH", 0, 0}, {"HH", 1, 1}, {"DH", 0, 1}, {"DU", 0, 1}, {"DF", 0, 1}, {"Dh", 0, 1},
		{"FH", 0, 1},                                           // the guard keeps it in use elsewhere
		{"UH", 0, 0}, {"FU", 0, 0}, {"FF", 0, 0}, {"DD", 0, 0}, // a restart moves nothing
		{"DD", -1, -1}, {"D", 0, 0}, {"hH", 0, 1}, {"hU", 0, 0}, {"hF", 0, 0}, {"hh", 0, 0}, {"hD", 0, 0}, {"uU", 0, 0}, {"fU", 0, 0},
		{"hHhh", -1, 1}, {"hhHh", -1, 2}, {"Hhhh", -1, 0}, {"DFUH", -1, 3}, {"DFU", -1, 2}, {"DF", -1, 1},
		{"HDD", 7, 0}, {"DD", 7, -1}, {"", 7, -1}, {"", -1, -1},
	} {
		var now, want netip.AddrPort
		if c.now >= 0 {
			now = at(c.now)
		}
		if c.want >= 0 {
			want = at(c.want)
		}
		got := ChooseStable("files", "", now, backends(c.backends))
		if got != want {
			t.Errorf("%s, now %s: %s, want %s", c.backends, now, got, want)
		}
	}
}

func TestStableAddressKeepsItsFamily(t *testing.T) {
	list := backends("H")
	list = append(list, nfs.Backend{Addr: netip.MustParseAddrPort("[fd00::1]:2049"), Health: nfs.Healthy})
	must.Equal(t, ChooseStable("files", corev1.IPv6Protocol, at(0), list), list[1].Addr)
	must.Equal(t, ChooseStable("files", corev1.IPv6Protocol, at(0), list[:1]), netip.AddrPort{})
}

func TestServicesSpreadOverTheSameBackends(t *testing.T) {
	counts := map[netip.AddrPort]int{}
	for i := range 400 {
		counts[ChooseStable(fmt.Sprint("service-", i), "", netip.AddrPort{}, backends("HHHH"))]++
	}
	for b, n := range counts {
		if n < 60 || n > 140 {
			t.Errorf("%s has %d of 400", b, n)
		}
	}
}

func TestSlicesOfOneFrontend(t *testing.T) {
	v4, v6 := at(0), netip.MustParseAddrPort("[fd00::1]:20490")
	for _, c := range []struct {
		clusterIP netip.Addr
		backend   netip.AddrPort
		want      string
	}{
		{netip.Addr{}, v4, "IPv6 [] IPv4 [10.0.0.1:2049]"},
		{netip.Addr{}, v6, "IPv4 [] IPv6 [fd00::1:20490]"},
		{netip.MustParseAddr("10.96.0.1"), v4, "IPv6 [] IPv4 [10.0.0.1:2049]"},
		{netip.MustParseAddr("10.96.0.1"), v6, "IPv4 [] IPv6 []"},
		{netip.MustParseAddr("10.96.0.1"), netip.AddrPort{}, "IPv4 [] IPv6 []"},
	} {
		var got []string
		for _, s := range (Frontend{ClusterIP: c.clusterIP, Backend: c.backend}).Slices() {
			text := ""
			for i, e := range s.Endpoints() {
				text += fmt.Sprintf("%s:%d", e.Addresses[0], *s.Ports()[i].Port)
			}
			got = append(got, fmt.Sprintf("%s [%s]", s.Family, text))
		}
		must.Equal(t, strings.Join(got, " "), c.want, "%s, %s", c.clusterIP, c.backend)
	}
}

func TestServiceNames(t *testing.T) {
	for exposure, want := range map[nfs.Exposure]string{nfs.Stable: "[files]", nfs.PerNode: "[]", nfs.PerNodeStable: "[files-slot-0 files-slot-1]"} {
		must.Equal(t, fmt.Sprint(Names("files", exposure, 2)), want, "%s", exposure)
	}
}

var owner = metav1.OwnerReference{APIVersion: "fairlead.io/v1alpha1", Kind: "NFSService", Name: "files", UID: "1", Controller: ptr.To(true)}

func frontend() Frontend {
	return Frontend{Namespace: "default", Name: "files-slot-3", Service: "files", Owner: owner, Port: 2049, Slot: 3, ClusterIP: netip.MustParseAddr("10.96.0.1"), Backend: at(0)}
}

// asCreated is what the API server makes of a Service.
func asCreated() *corev1.Service {
	s := frontend().Object()
	s.UID = "2"
	s.Spec.InternalTrafficPolicy = ptr.To(corev1.ServiceInternalTrafficPolicyCluster)
	s.Labels["team"], s.Annotations = "storage", map[string]string{"note": "kept"}
	return s
}

func TestServiceIsRepaired(t *testing.T) {
	want := frontend().Object()
	must.Equal(t, Check(asCreated(), want).Action, Keep, "as created")
	for name, change := range map[string]func(*corev1.Service){
		"port":         func(s *corev1.Service) { s.Spec.Ports[0].Port = 111 },
		"target port":  func(s *corev1.Service) { s.Spec.Ports[0].TargetPort.IntVal = 111 },
		"name of port": func(s *corev1.Service) { s.Spec.Ports[0].Name = "x" },
		"protocol":     func(s *corev1.Service) { s.Spec.Ports[0].Protocol = corev1.ProtocolUDP },
		"second port":  func(s *corev1.Service) { s.Spec.Ports = append(s.Spec.Ports, s.Spec.Ports[0]) },
		"selector":     func(s *corev1.Service) { s.Spec.Selector = map[string]string{"app": "x"} },
		"type":         func(s *corev1.Service) { s.Spec.Type = corev1.ServiceTypeNodePort; s.Spec.Ports[0].NodePort = 30000 },
		"external name": func(s *corev1.Service) {
			s.Spec.Type, s.Spec.ExternalName, s.Spec.ClusterIP = corev1.ServiceTypeExternalName, "x", ""
		},
		"external IPs": func(s *corev1.Service) { s.Spec.ExternalIPs = []string{"1.2.3.4"} },
		"internal traffic": func(s *corev1.Service) {
			s.Spec.InternalTrafficPolicy = ptr.To(corev1.ServiceInternalTrafficPolicyLocal)
		},
		"session affinity": func(s *corev1.Service) { s.Spec.SessionAffinity = corev1.ServiceAffinityClientIP },
		"not ready too":    func(s *corev1.Service) { s.Spec.PublishNotReadyAddresses = true },
		"label":            func(s *corev1.Service) { delete(s.Labels, ServiceLabel) },
		"slot":             func(s *corev1.Service) { s.Labels[SlotLabel] = "4" },
		"owner":            func(s *corev1.Service) { s.OwnerReferences[0].Controller = nil },
	} {
		have := asCreated()
		change(have)
		got := Check(have, want)
		if got.Action != Update || got.Message == "" {
			t.Errorf("%s: %s", name, got.Action)
			continue
		}
		must.Equal(t, Check(got.Service, want).Action, Keep, "%s: after the update", name)
		if s := got.Service; s.Labels["team"] != "storage" || s.Annotations["note"] != "kept" || s.Spec.ClusterIP != "10.96.0.1" || s.Spec.Ports[0].NodePort != 0 {
			t.Errorf("%s: %+v", name, s)
		}
	}
}

func TestServiceOfSomebodyElseIsNotAdopted(t *testing.T) {
	want := frontend().Object()
	have := asCreated()
	have.OwnerReferences[0].UID = "another"
	if got := Check(have, want); got.Action != Foreign || !strings.Contains(got.Message, "belongs to an earlier NFSService files") {
		t.Errorf("got %+v", got)
	}
	have.OwnerReferences = nil
	if got := Check(have, want); got.Action != Foreign || got.Service != nil || !strings.Contains(got.Message, "does not belong to NFSService files") {
		t.Errorf("got %+v", got)
	}
}

// Ondat's api-manager publishes whatever address a recreated Service gets.
func TestAddressOutlivesItsService(t *testing.T) {
	want := frontend().Object()
	got := Check(nil, want)
	if got.Action != Create || got.Service.Spec.ClusterIP != "10.96.0.1" || got.Service.Spec.Selector != nil || got.Service.Spec.IPFamilies[0] != corev1.IPv4Protocol {
		t.Errorf("got %+v", got)
	}
	have := asCreated()
	have.DeletionTimestamp = &metav1.Time{}
	must.Equal(t, Check(have, want).Action, Wait, "being deleted")
	for _, address := range []string{"10.96.0.2", corev1.ClusterIPNone} {
		have := asCreated()
		have.Spec.ClusterIP = address
		if got := Check(have, want); got.Action != WrongAddress || !strings.Contains(got.Message, "10.96.0.1") {
			t.Errorf("%s: %+v", address, got)
		}
	}
	first := Frontend{Namespace: "default", Name: "files", Service: "files", Owner: owner, Port: 2049, Slot: -1}.Object()
	if first.Spec.ClusterIP != "" || first.Spec.IPFamilies != nil || first.Labels[SlotLabel] != "" {
		t.Errorf("got %+v", first.Spec)
	}
	created := first.DeepCopy()
	created.Spec.ClusterIP = "10.96.0.7"
	headless := created.DeepCopy()
	headless.Spec.ClusterIP = corev1.ClusterIPNone
	if got := Check(headless, first); got.Action != WrongAddress || strings.Contains(got.Message, "mounted") {
		t.Errorf("headless: %+v", got)
	}
	must.Equal(t, Check(created, first).Action, Keep, "an address that is not recorded yet")
}
