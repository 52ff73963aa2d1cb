package multus

import (
	"fmt"
	"strings"
	"testing"

	netv1 "github.com/k8snetworkplumbingwg/network-attachment-definition-client/pkg/apis/k8s.cni.cncf.io/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

const (
	oneFamily    = `{"type":"host-local","subnet":"10.1.0.0/24"}`
	bothFamilies = `{"type":"host-local","ranges":[[{"subnet":"10.1.0.0/24"}],[{"subnet":"fd00:1::/64"}]]}`
	// small has six host addresses, one of which is the gateway.
	small = `{"type":"host-local","subnet":"10.1.0.0/29"}`
)

func podNamed(name string) *corev1.Pod {
	pod := runningPod()
	pod.Name, pod.UID = name, types.UID(name)
	return pod
}

// give returns the addresses of a pod's one interface.
func (l *ledger) addresses(t *testing.T, pod *corev1.Pod, ipam string, requested ...string) (string, error) {
	t.Helper()
	subnets, err := parseConfig(fmt.Sprintf(`{"cniVersion":"1.0.0","type":"macvlan","ipam":%s}`, ipam))
	if err != nil {
		t.Fatal(err)
	}
	interfaces := []attached{{NetworkSelectionElement: netv1.NetworkSelectionElement{IPRequest: requested}, subnets: subnets}}
	if err := l.give(pod, interfaces); err != nil {
		return "", err
	}
	var all []string
	for _, address := range interfaces[0].addresses {
		all = append(all, address.String())
	}
	return strings.Join(all, " "), nil
}

func (l *ledger) wants(t *testing.T, pod *corev1.Pod, ipam, want string, requested ...string) {
	t.Helper()
	if got, err := l.addresses(t, pod, ipam, requested...); err != nil || got != want {
		t.Errorf("pod %s gets %q, %v; want %q", pod.Name, got, err, want)
	}
}

func TestAddressesComeFromSubnetsOfTheNetwork(t *testing.T) {
	for ipam, want := range map[string]string{oneFamily: "10.1.0.2", bothFamilies: "10.1.0.2 fd00:1::2", `{}`: ""} {
		newLedger().wants(t, podNamed("a"), ipam, want)
	}
}

func TestBrokenConfigurationIsRefused(t *testing.T) {
	for _, config := range []string{"", "{", `{"ipam":{"type":"calico-ipam"}}`, `{"ipam":{"type":"host-local","subnet":"10.0.0.0"}}`, `{"ipam":{"type":"static"}}`} {
		if subnets, err := parseConfig(config); err == nil {
			t.Errorf("%q is read as %v, want an error", config, subnets)
		}
	}
}

func TestAddressesAreUniqueAmongLivePodsAndReused(t *testing.T) {
	l := newLedger()
	seen := map[string]bool{}
	for n := range 5 {
		got, err := l.addresses(t, podNamed(fmt.Sprint(n)), small)
		if err != nil || seen[got] {
			t.Errorf("%q is given twice, or not: %v", got, err)
		}
		seen[got] = true
	}
	if got, err := l.addresses(t, podNamed("late"), small); err == nil {
		t.Fatalf("a full subnet gives %s", got)
	}
	l.release(client.ObjectKeyFromObject(podNamed("3")))
	l.wants(t, podNamed("late"), small, "10.1.0.5")
}

func TestRequestedAddressesReplaceThoseOfTheirFamily(t *testing.T) {
	newLedger().wants(t, podNamed("a"), bothFamilies, "10.1.0.77 fd00:1::2", "10.1.0.77/24")
	if _, err := newLedger().addresses(t, podNamed("a"), bothFamilies, "nonsense"); err == nil {
		t.Error("a request that is no address is accepted")
	}
}

func TestWhereaboutsAssignsAnAddressBesideTheRequestedOne(t *testing.T) {
	const ipam = `{"type":"whereabouts","range":"10.1.0.0/24","exclude":["10.1.0.0/26"]}`
	newLedger().wants(t, podNamed("a"), ipam, "10.1.0.10 10.1.0.64", "10.1.0.10/24")
}

func TestSharedAddressIsFreeWhenBothPodsAreGone(t *testing.T) {
	const pair = `{"type":"host-local","subnet":"10.1.0.0/30"}` // one address beside the gateway's
	l := newLedger()
	l.wants(t, podNamed("a"), pair, "10.1.0.2", "10.1.0.2")
	l.wants(t, podNamed("b"), pair, "10.1.0.2", "10.1.0.2")
	l.release(client.ObjectKeyFromObject(podNamed("a")))
	if got, err := l.addresses(t, podNamed("c"), pair); err == nil {
		t.Errorf("while b lives, c gets %s", got)
	}
	l.release(client.ObjectKeyFromObject(podNamed("b")))
	l.wants(t, podNamed("c"), pair, "10.1.0.2")
}

func TestSandboxKeepsItsAddressesUntilItIsGone(t *testing.T) {
	l, pod := newLedger(), podNamed("a")
	l.wants(t, pod, oneFamily, "10.1.0.2")
	if l.given(pod) == nil {
		t.Error("before its status is seen, the sandbox has nothing")
	}
	pod.Annotations[netv1.NetworkStatusAnnot] = `[{"name":"cbr0"}]`
	if l.given(pod) == nil {
		t.Error("once its status is seen, the sandbox has nothing")
	}
	pod.Annotations[netv1.NetworkStatusAnnot] = "[]"
	if given := l.given(pod); given != nil {
		t.Errorf("the next sandbox has %v of the one before", given)
	}
	l.wants(t, pod, oneFamily, "10.1.0.3")
	successor := podNamed("a")
	successor.UID = "other"
	if given := l.given(successor); given != nil {
		t.Errorf("another pod of the name has %v", given)
	}
	l.wants(t, successor, oneFamily, "10.1.0.4")
	successor.Status.Phase = corev1.PodFailed
	if given := l.given(successor); given != nil {
		t.Errorf("a pod that has ended has %v", given)
	}
}
