package rwx

import (
	"github.com/fairlead-io/fairlead/internal/multus"
)

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/fairlead-io/fairlead/internal/testkit/must"
)

// The model has the server pods of two volumes as they are: created to the millisecond, their addresses,
// and what Multus has reported. Publish sees what the API shows, where times are whole seconds.
// Invariant 3: exactly those addresses are published that Multus reported for that network on a Ready,
// non-terminating pod.

// pool is small, so that pods get the same address; some must not be published.
var pool = []string{"192.168.0.3", "192.168.0.4", "fd00::3", "::ffff:192.168.0.3", "169.254.0.3", "fe80::3", "224.0.0.3"}

var mayBePublished = map[string]string{
	"192.168.0.3": "192.168.0.3", "192.168.0.4": "192.168.0.4", "fd00::3": "fd00::3", "::ffff:192.168.0.3": "192.168.0.3",
}

// attachable are the networks on their interfaces, and one network on a wrong interface.
var attachable = []multus.Attachment{netA, netB, {Network: netA.Network, Interface: "net1"}}

type serverPod struct {
	volume, uid, node         string
	created                   time.Time
	ready, terminating, ended bool
	// attached are the pod's addresses; reported are those that Multus has reported.
	attached map[multus.Attachment][]string
	reported []multus.Reported
}

type serverModel struct {
	now      time.Time
	pods     []*serverPod
	uids     int
	services map[string]*Service
	clients  multus.Attachment
}

func (m *serverModel) start(t *rapid.T, volume string) {
	m.uids++
	p := &serverPod{
		volume: volume, uid: fmt.Sprint("uid-", rapid.IntRange(0, 9).Draw(t, "order of UIDs"), "-", m.uids), created: m.now,
		node: rapid.SampledFrom([]string{"node-1", "node-2"}).Draw(t, "node"), attached: map[multus.Attachment][]string{},
	}
	for _, network := range attachable {
		p.attached[network] = rapid.SliceOfNDistinct(rapid.SampledFrom(pool), 0, 3, rapid.ID).Draw(t, "addresses")
	}
	m.pods = append(m.pods, p)
}

// multusReports writes the annotation.
func (p *serverPod) multusReports(t *rapid.T) {
	interfaces := []multus.Reported{{Network: "cbr0", Interface: "eth0", IPs: []string{"10.42.0.7"}}}
	for _, network := range attachable {
		interfaces = append(interfaces, multus.Reported{Network: network.Network.String(), Interface: network.Interface, IPs: p.attached[network]})
	}
	text, err := json.Marshal(interfaces)
	must.Do(t, err)
	annotation := rapid.SampledFrom([]string{multus.NetworkStatusAnnotation, "k8s.v1.cni.cncf.io/networks-status"}).Draw(t, "annotation")
	p.reported, err = multus.ReportedInterfaces(map[string]string{annotation: string(text)})
	must.Do(t, err)
}

// seen is the pod as the API shows it.
func (p *serverPod) seen() Server {
	return Server{
		Pod: "share-manager-" + p.volume, UID: p.uid, Volume: p.volume, Node: p.node, Network: netA,
		Reported: p.reported, Ready: p.ready, Terminating: p.terminating, Created: p.created.Truncate(time.Second),
	}
}

// check compares what is published with the model.
func (m *serverModel) check(t *rapid.T, volume string) {
	service := m.services[volume]
	var seen []Server
	for _, p := range m.pods {
		if !p.ended { // lists leave out ended pods
			seen = append(seen, p.seen())
		}
	}
	got := Publish(*service, seen, m.clients)

	network := service.Recorded
	if network.IsZero() {
		network = m.clients
	}
	holders := map[string][]*serverPod{}
	for _, p := range m.pods {
		if p.volume != volume || p.ended || !p.ready || p.terminating || p.reported == nil || service.ClusterIP != ClusterIPNone || network.IsZero() {
			continue
		}
		for _, a := range p.attached[network] {
			if text, ok := mayBePublished[a]; ok && !slices.Contains(holders[text], p) {
				holders[text] = append(holders[text], p)
			}
		}
	}
	var addresses []string
	for _, p := range got {
		addresses = append(addresses, p.Address.String())
		i := slices.IndexFunc(holders[p.Address.String()], func(h *serverPod) bool { return h.uid == p.UID })
		must.True(t, i >= 0, "invariant 3: %s of pod %s is published for %s, and Multus did not report it of a Ready pod", p.Address, p.UID, volume)
		holder := holders[p.Address.String()][i]
		must.True(t, p.Node == holder.node, "%s is published on %s, and pod %s is on %s", p.Address, p.Node, p.UID, holder.node)
		for _, other := range holders[p.Address.String()] {
			must.True(t, !other.created.Truncate(time.Second).After(holder.created), "%s is published of pod %s, and %s is newer", p.Address, p.UID, other.uid)
		}
	}
	want := slices.Sorted(maps.Keys(holders))
	slices.SortFunc(want, func(a, b string) int { return netip.MustParseAddr(a).Compare(netip.MustParseAddr(b)) })
	must.True(t, slices.Equal(addresses, want), "invariant 3: published for %s are %v, to be published %v", volume, addresses, want)
	slices.Reverse(seen)
	again := Publish(*service, seen, m.clients)
	must.True(t, slices.Equal(again, got), "the result depends on the order: %v, then %v", got, again)
}

func TestOnlyReportedAddressesOfReadyServersArePublished(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := &serverModel{now: begin, clients: netA, services: map[string]*Service{
			"v": {Name: "v", Volume: "v", ClusterIP: ClusterIPNone, Recorded: netA}, "w": {Name: "w", Volume: "w", ClusterIP: ClusterIPNone, Recorded: netA},
		}}
		volume := func() string { return rapid.SampledFrom([]string{"v", "w"}).Draw(t, "volume") }
		pod := func() *serverPod {
			if len(m.pods) == 0 {
				return &serverPod{}
			}
			return rapid.SampledFrom(m.pods).Draw(t, "pod")
		}
		t.Repeat(map[string]func(*rapid.T){
			"": func(t *rapid.T) {
				m.check(t, "v")
				m.check(t, "w")
			},
			"a server starts": func(t *rapid.T) { m.start(t, volume()) },
			"Multus reports": func(t *rapid.T) {
				if p := pod(); p.uid != "" {
					p.multusReports(t)
				}
			},
			"a pod gets Ready":    func(*rapid.T) { pod().ready = true },
			"a pod gets NotReady": func(*rapid.T) { pod().ready = false },
			"a pod terminates":    func(*rapid.T) { pod().terminating = true }, // Ready to the end, as pods are
			"a pod ends":          func(*rapid.T) { pod().ended = true },
			"a pod is deleted": func(*rapid.T) {
				gone := pod()
				m.pods = slices.DeleteFunc(m.pods, func(p *serverPod) bool { return p == gone })
			},
			"a server moves with its fixed addresses": func(t *rapid.T) {
				if old := pod(); old.uid != "" {
					m.start(t, old.volume)
					m.pods[len(m.pods)-1].attached = old.attached
				}
			},
			"its Service is recreated": func(t *rapid.T) {
				s := m.services[volume()]
				s.ClusterIP = rapid.SampledFrom([]string{ClusterIPNone, ClusterIPNone, "10.43.0.1"}).Draw(t, "cluster IP")
				s.Recorded = rapid.SampledFrom([]multus.Attachment{{}, netA, netB}).Draw(t, "recorded")
			},
			"clients move": func(t *rapid.T) {
				m.clients = rapid.SampledFrom([]multus.Attachment{{}, netA, netB}).Draw(t, "clients")
			},
			"time passes": func(t *rapid.T) {
				m.now = m.now.Add(time.Duration(rapid.IntRange(1, 1500).Draw(t, "milliseconds")) * time.Millisecond)
			},
			// Without this, two servers seldom serve at once.
			"a server comes up": func(t *rapid.T) {
				m.start(t, volume())
				p := m.pods[len(m.pods)-1]
				p.multusReports(t)
				p.ready = true
			},
		})
	})
}

func FuzzPublish(f *testing.F) {
	for _, seed := range []string{
		"", "[]", "null", "[null]", "{", `[{"name": "kube-system/a", "interface": "lhnet1", "ips": ["192.168.0.3", "fd00::3"], "mac": "02:00"}]`,
		`[{"name": "kube-system/a", "interface": "lhnet1", "ips": ["::ffff:192.168.0.3%eth0", "192.168.0.3", "fe80::1", "fd00::1%x"]}]`,
		`[{"name": "kube-system/a", "interface": "lhnet1", "ips": ["192.168.0.256"]}]`, `[{"name": "kube-system/a", "interface": "lhnet1", "ips": [1]}]`,
		`[{"name": "kube-system/a", "interface": "lhnet1", "ips": null}, {"name": "kube-system/a", "interface": "lhnet1", "ips": ["0.0.0.0", "255.255.255.255"]}]`,
		`[{"NAME": "kube-system/a", "Interface": "lhnet1", "ips": ["10.0.0.1"]}]`, "[{\"name\": \"\xff\"}]",
	} {
		f.Add(seed, true)
		f.Add(seed, false)
	}
	f.Fuzz(func(t *testing.T, annotation string, recorded bool) {
		service := Service{Name: "v", Volume: "v", ClusterIP: ClusterIPNone}
		if recorded {
			service.Recorded = netA
		}
		reported, err := multus.ReportedInterfaces(map[string]string{multus.NetworkStatusAnnotation: annotation})
		must.True(t, err == nil || reported == nil, "%q: got %v with %v", annotation, reported, err)
		known, _ := multus.AddressesOn(reported, netA)
		got := Publish(service, []Server{serving("a", reported...), serving("b", reported...)}, netA)
		for i, p := range got {
			a := p.Address
			must.True(t, a.IsValid() && a.Zone() == "" && !a.Is4In6() && a.IsGlobalUnicast() && !a.IsLinkLocalUnicast() && !a.IsLoopback() && !a.IsMulticast() && !a.IsUnspecified(),
				"%q: %s is published", annotation, a)
			must.True(t, slices.ContainsFunc(known, func(k netip.Addr) bool { return k.Unmap() == a }), "%q: %s is published, and was not reported", annotation, a)
			must.True(t, i <= 0 || got[i-1].Address.Less(a), "%q: not sorted, or twice: %v", annotation, got)
		}
	})
}
