package multus

import (
	"fmt"
	"net/netip"
	"strings"
	"testing"
	"time"

	netv1 "github.com/k8snetworkplumbingwg/network-attachment-definition-client/pkg/apis/k8s.cni.cncf.io/v1"
	"k8s.io/apimachinery/pkg/types"
)

func mustParse(t *testing.T, ipam string) []pool {
	t.Helper()
	from, err := parseConfig(fmt.Sprintf(`{"cniVersion":"1.0.0","type":"macvlan","ipam":%s}`, ipam))
	if err != nil {
		t.Fatal(err)
	}
	return from
}

func texts(addresses []netip.Addr) string {
	var all []string
	for _, address := range addresses {
		all = append(all, address.String())
	}
	return strings.Join(all, " ")
}

func TestAddressesComeFromTheRangesOfTheNetwork(t *testing.T) {
	for name, c := range map[string]struct{ ipam, want string }{
		"host-local subnet":         {`{"type":"host-local","subnet":"10.1.0.0/24"}`, "10.1.0.2"},
		"host-local range":          {`{"type":"host-local","subnet":"10.1.0.0/24","rangeStart":"10.1.0.50"}`, "10.1.0.50"},
		"host-local one address":    {`{"type":"host-local","subnet":"10.1.0.0/24","rangeStart":"10.1.0.9","rangeEnd":"10.1.0.9"}`, "10.1.0.9"},
		"host-local both families":  {`{"type":"host-local","ranges":[[{"subnet":"10.1.0.0/24"}],[{"subnet":"fd00:1::/64"}]]}`, "10.1.0.2 fd00:1::2"},
		"whereabouts":               {`{"type":"whereabouts","range":"10.2.0.0/24"}`, "10.2.0.2"},
		"whereabouts both families": {`{"type":"whereabouts","ipRanges":[{"range":"10.2.0.0/24"},{"range":"fd00:2::/64"}]}`, "10.2.0.2 fd00:2::2"},
		"dhcp gives none here":      {`{"type":"dhcp"}`, ""},
		"no IPAM":                   {`{}`, ""},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := newLedger().assign("pod", "net1", mustParse(t, c.ipam), nil)
			if err != nil {
				t.Fatal(err)
			}
			if texts(got) != c.want {
				t.Errorf("addresses are %q, want %q", texts(got), c.want)
			}
		})
	}
}

func TestConfigurationListUsesFirstPlugin(t *testing.T) {
	from, err := parseConfig(`{"plugins":[{"type":"macvlan","ipam":{"type":"host-local","subnet":"10.1.0.0/24"}},{"type":"tuning"}]}`)
	if err != nil || len(from) != 1 {
		t.Errorf("pools are %v, %v; want one pool", from, err)
	}
}

func TestBrokenConfigurationIsRefused(t *testing.T) {
	for _, config := range []string{
		"", "{", `{"ipam":{"type":"calico-ipam"}}`, `{"ipam":{"type":"host-local","subnet":"10.0.0.0"}}`,
		`{"ipam":{"type":"host-local","subnet":"10.0.0.0/24","rangeStart":"10.0.1.1"}}`,
		`{"ipam":{"type":"whereabouts","range":"10.0.0.0/24","exclude":["10.0.0.4/30"]}}`,
		`{"ipam":{"type":"whereabouts","range":"10.0.0.5-10.0.0.9/24"}}`, `{"ipam":{"type":"static"}}`,
	} {
		if from, err := parseConfig(config); err == nil {
			t.Errorf("%q is read as %v, want an error", config, from)
		}
	}
}

func TestAddressesAreUniqueAmongLivePodsAndReused(t *testing.T) {
	ledger := newLedger()
	// A /29 has six host addresses, one of which is the gateway.
	from := mustParse(t, `{"type":"host-local","subnet":"10.1.0.0/29"}`)
	seen := map[string]bool{}
	for n := range 5 {
		got, err := ledger.assign(types.UID(fmt.Sprint(n)), "net1", from, nil)
		if err != nil {
			t.Fatal(err)
		}
		if seen[texts(got)] {
			t.Errorf("%s is given twice", texts(got))
		}
		seen[texts(got)] = true
	}
	if got, err := ledger.assign("late", "net1", from, nil); err == nil {
		t.Fatalf("a full range gives %s", texts(got))
	}
	ledger.release("3")
	if got, err := ledger.assign("late", "net1", from, nil); err != nil || texts(got) != "10.1.0.5" {
		t.Errorf("after a release: %q, %v; want the released address", texts(got), err)
	}
}

func TestLedgerRepeatsItsAnswer(t *testing.T) {
	ledger := newLedger()
	from := mustParse(t, `{"type":"host-local","subnet":"10.1.0.0/24"}`)
	first, err := ledger.assign("pod", "net1", from, nil)
	if err != nil {
		t.Fatal(err)
	}
	second, err := ledger.assign("pod", "net1", from, nil)
	if err != nil || texts(first) != texts(second) {
		t.Errorf("addresses are %q and then %q, %v", texts(first), texts(second), err)
	}
	other, err := ledger.assign("pod", "net2", from, nil)
	if err != nil || texts(other) == texts(first) {
		t.Errorf("a second interface gets %q, %v; want another address", texts(other), err)
	}
}

func TestRequestedAddressesReplaceThoseOfTheirFamily(t *testing.T) {
	from := mustParse(t, `{"type":"host-local","ranges":[[{"subnet":"10.1.0.0/24"}],[{"subnet":"fd00:1::/64"}]]}`)
	got, err := newLedger().assign("pod", "net1", from, []string{"10.1.0.77/24"})
	if err != nil || texts(got) != "10.1.0.77 fd00:1::2" {
		t.Errorf("addresses are %q, %v", texts(got), err)
	}
	if _, err := newLedger().assign("pod", "net1", from, []string{"nonsense"}); err == nil {
		t.Error("a request that is no address is accepted")
	}
}

func TestSharedAddressIsFreeWhenBothPodsAreGone(t *testing.T) {
	ledger := newLedger()
	from := mustParse(t, `{"type":"host-local","subnet":"10.1.0.0/24"}`)
	for _, pod := range []types.UID{"a", "b"} {
		if _, err := ledger.assign(pod, "net1", from, []string{"10.1.0.2"}); err != nil {
			t.Fatal(err)
		}
	}
	ledger.release("a")
	if got, err := ledger.assign("c", "net1", from, nil); err != nil || texts(got) != "10.1.0.3" {
		t.Errorf("while b lives: %q, %v; want the next address", texts(got), err)
	}
	ledger.release("b")
	if got, err := ledger.assign("d", "net1", from, nil); err != nil || texts(got) != "10.1.0.2" {
		t.Errorf("when both are gone: %q, %v; want their address", texts(got), err)
	}
}

func TestNewSandboxGetsOtherAddresses(t *testing.T) {
	ledger := newLedger()
	// Two host addresses beside the gateway's.
	from := mustParse(t, `{"type":"host-local","subnet":"10.1.0.0/29","rangeEnd":"10.1.0.3"}`)
	for _, want := range []string{"10.1.0.2", "10.1.0.3", "10.1.0.2"} {
		got, err := ledger.assign("pod", "net1", from, nil)
		if err != nil || texts(got) != want {
			t.Errorf("addresses are %q, %v; want %s", texts(got), err, want)
		}
		ledger.renew("pod")
	}
	if got, err := ledger.assign("other", "net1", from, nil); err != nil || texts(got) != "10.1.0.2" {
		t.Errorf("another pod gets %q, %v; want what was given back", texts(got), err)
	}
	if got, err := ledger.assign("third", "net1", from, nil); err != nil || texts(got) != "10.1.0.3" {
		t.Errorf("a third pod gets %q, %v", texts(got), err)
	}
	ledger.release("third")
	ledger.release("other")
	if got, err := ledger.assign("pod", "net1", from, []string{"10.1.0.2"}); err != nil || texts(got) != "10.1.0.2" {
		t.Errorf("asked for, it is %q, %v; want it as before", texts(got), err)
	}
}

func TestFormerAddressIsGivenIfNoOtherIsFree(t *testing.T) {
	ledger := newLedger()
	from := mustParse(t, `{"type":"host-local","subnet":"10.1.0.0/29","rangeEnd":"10.1.0.2"}`)
	for range 2 {
		if got, err := ledger.assign("pod", "net1", from, nil); err != nil || texts(got) != "10.1.0.2" {
			t.Errorf("addresses are %q, %v; want the only one", texts(got), err)
		}
		ledger.renew("pod")
	}
}

func TestLongestDelayCounts(t *testing.T) {
	network := func(text string) *netv1.NetworkAttachmentDefinition {
		n := &netv1.NetworkAttachmentDefinition{}
		n.Annotations = map[string]string{DelayAnnotation: text}
		return n
	}
	for name, c := range map[string]struct {
		pod      string
		networks []*netv1.NetworkAttachmentDefinition
		want     time.Duration
	}{
		"none":             {"", []*netv1.NetworkAttachmentDefinition{{}}, 0},
		"the pod's":        {"3s", []*netv1.NetworkAttachmentDefinition{network("1s")}, 3 * time.Second},
		"a network's":      {"", []*netv1.NetworkAttachmentDefinition{network("1s"), network("200ms")}, time.Second},
		"without networks": {"5ms", nil, 5 * time.Millisecond},
	} {
		t.Run(name, func(t *testing.T) {
			pod := runningPod()
			pod.Annotations[DelayAnnotation] = c.pod
			if got, err := delay(pod, c.networks); err != nil || got != c.want {
				t.Errorf("the delay is %s, %v; want %s", got, err, c.want)
			}
		})
	}
	if got, err := delay(runningPod(), []*netv1.NetworkAttachmentDefinition{network("soon")}); err == nil {
		t.Errorf("a delay that can't be read is %s", got)
	}
}

func TestDelayBeginsWithFirstRequest(t *testing.T) {
	ledger := newLedger()
	start := time.Now()
	for _, c := range []struct {
		delay, after, want time.Duration
	}{
		{0, 0, 0},
		{3 * time.Second, 0, 3 * time.Second},
		{3 * time.Second, time.Second, 2 * time.Second},
		{time.Second, time.Second, 0}, // shortened meanwhile
	} {
		if got := ledger.left("pod", c.delay, start.Add(c.after)); got != c.want {
			t.Errorf("after %s, %s of %s is left, want %s", c.after, got, c.delay, c.want)
		}
	}
	ledger.attached("pod")
	if got := ledger.left("pod", time.Second, start.Add(time.Minute)); got != time.Second {
		t.Errorf("its next sandbox waits for %s, want a second", got)
	}
}
