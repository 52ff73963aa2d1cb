package rwx

import (
	"github.com/fairlead-io/fairlead/internal/multus"
)

import (
	"net/netip"
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/fairlead-io/fairlead/internal/testkit/must"
)

// begin is a moment like any other.
var begin = time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)

func at(seconds float64) time.Time { return begin.Add(time.Duration(seconds * float64(time.Second))) }

// on is an interface as Multus reports it.
func on(a multus.Attachment, ips ...string) multus.Reported {
	return multus.Reported{Network: a.Network.String(), Interface: a.Interface, IPs: ips}
}

// serving is a Ready server pod of volume v.
func serving(pod string, reported ...multus.Reported) Server {
	return Server{Pod: pod, UID: "uid-" + pod, Volume: "v", Node: "node-of-" + pod, Reported: reported, Ready: true, Created: begin}
}

func published(pod string, addresses ...string) []Published {
	var list []Published
	for _, a := range addresses {
		list = append(list, Published{Address: netip.MustParseAddr(a), Pod: pod, UID: "uid-" + pod, Node: "node-of-" + pod})
	}
	return list
}

func TestPublishTakesReportedAddressesOfReadyServers(t *testing.T) {
	eth0 := multus.Reported{Network: "cbr0", Interface: "eth0", IPs: []string{"10.42.0.7"}}
	recorded := Service{Name: "v", Volume: "v", ClusterIP: ClusterIPNone, Recorded: netA}
	unrecorded, clusterIP := recorded, recorded
	unrecorded.Recorded, clusterIP.ClusterIP = multus.Attachment{}, "10.43.0.1"
	a := serving("a", on(netA, "192.168.0.3"))
	// Servers of Longhorn 1.10 keep their interface when 1.11 names another for the same network.
	renamed, own := multus.Attachment{Network: netA.Network, Interface: "lhnet2"}, multus.Attachment{Network: netB.Network, Interface: "lhvol0"}
	older := with(a, func(s *Server) { s.Network = netA })
	both := with(serving("a", on(netA, "192.168.0.3"), on(renamed, "192.168.0.8")), func(s *Server) { s.Network, s.Networks = netA, []multus.Attachment{netA, renamed} })
	second := with(serving("a", on(own, "192.168.1.3"), on(netA, "192.168.0.3")), func(s *Server) { s.Network, s.Networks = own, []multus.Attachment{own, netA} })
	for name, test := range map[string]struct {
		service  Service
		fallback multus.Attachment
		servers  []Server
		want     []Published
	}{
		"one server":       {recorded, multus.Attachment{}, []Server{a}, published("a", "192.168.0.3")},
		"no server":        {recorded, multus.Attachment{}, nil, nil},
		"IPv4 before IPv6": {recorded, multus.Attachment{}, []Server{serving("a", on(netA, "fd00::3", "192.168.0.3"))}, published("a", "192.168.0.3", "fd00::3")},
		"two servers": {recorded, multus.Attachment{}, []Server{serving("b", on(netA, "192.168.0.3")), serving("a", on(netA, "192.168.0.4"))},
			append(published("b", "192.168.0.3"), published("a", "192.168.0.4")...)},

		"Longhorn bug: not Ready":                     {recorded, multus.Attachment{}, []Server{with(a, func(s *Server) { s.Ready = false })}, nil},
		"Longhorn bug: Ready and terminating":         {recorded, multus.Attachment{}, []Server{with(a, func(s *Server) { s.Terminating = true })}, nil},
		"Longhorn bug: only the pod's own address":    {recorded, multus.Attachment{}, []Server{serving("a", eth0)}, nil},
		"nothing reported":                            {recorded, multus.Attachment{}, []Server{serving("a")}, nil},
		"no address reported":                         {recorded, multus.Attachment{}, []Server{serving("a", on(netA))}, nil},
		"another volume":                              {recorded, multus.Attachment{}, []Server{with(a, func(s *Server) { s.Volume = "w" })}, nil},
		"another interface of the network":            {recorded, multus.Attachment{}, []Server{serving("a", on(multus.Attachment{Network: netA.Network, Interface: "net1"}, "192.168.0.3"))}, nil},
		"the interface on another network":            {recorded, multus.Attachment{}, []Server{serving("a", on(multus.Attachment{Network: netB.Network, Interface: netA.Interface}, "192.168.0.3"))}, nil},
		"several interfaces":                          {recorded, multus.Attachment{}, []Server{serving("a", eth0, on(netB, "192.168.1.3"), on(netA, "192.168.0.3"))}, published("a", "192.168.0.3")},
		"status broken for another network":           {recorded, multus.Attachment{}, []Server{serving("a", on(netB, "192.168.0"), on(netA, "192.168.0.3"))}, published("a", "192.168.0.3")},
		"IPv4 in IPv6 form is published once as IPv4": {recorded, multus.Attachment{}, []Server{serving("a", on(netA, "192.168.0.3", "::ffff:192.168.0.3"))}, published("a", "192.168.0.3")},
		"a broken status publishes nothing": {recorded, multus.Attachment{}, []Server{serving("a", on(netA, "192.168.0.3", "192.168.0")), serving("b", on(netA, "192.168.0.4"))},
			published("b", "192.168.0.4")},
		"addresses that the API refuses or no node reaches": {recorded, multus.Attachment{}, []Server{serving("a", on(netA,
			"fe80::1", "fe80::1%eth0", "169.254.0.3", "127.0.0.1", "::1", "0.0.0.0", "::", "224.0.0.1", "239.0.0.1", "ff02::1", "ff05::1", "255.255.255.255", "fd00::1%eth0", "::ffff:169.254.0.3",
			"192.168.0.3"))}, published("a", "192.168.0.3")},

		"a fixed address passes to the newer pod": {recorded, multus.Attachment{}, []Server{a, with(serving("new", on(netA, "192.168.0.3")), func(s *Server) { s.Created = at(1) })},
			published("new", "192.168.0.3")},
		"a fixed address stays until the newer pod is Ready": {recorded, multus.Attachment{},
			[]Server{a, with(serving("new", on(netA, "192.168.0.3")), func(s *Server) { s.Created, s.Ready = at(1), false })}, published("a", "192.168.0.3")},
		"one address on two pods of the same second": {recorded, multus.Attachment{}, []Server{serving("b", on(netA, "192.168.0.3")), a}, published("a", "192.168.0.3")},

		"only the fixed address of a family": {recorded, multus.Attachment{}, []Server{with(serving("a", on(netA, "192.168.0.64", "192.168.0.10", "fd00::3")), fixed("192.168.0.10"))},
			published("a", "192.168.0.10", "fd00::3")},
		"a fixed address that IPAM ignored": {recorded, multus.Attachment{}, []Server{with(serving("a", on(netA, "192.168.0.64")), fixed("192.168.0.10"))},
			published("a", "192.168.0.64")},

		"Service with a cluster IP":                 {clusterIP, multus.Attachment{}, []Server{serving("a", eth0, on(netA, "192.168.0.3"))}, nil},
		"no record follows clients":                 {unrecorded, netB, []Server{serving("a", on(netA, "192.168.0.3"), on(netB, "192.168.1.3"))}, published("a", "192.168.1.3")},
		"no record, clients on the cluster network": {unrecorded, multus.Attachment{}, []Server{serving("a", eth0, multus.Reported{IPs: []string{"10.42.0.7"}}, on(netA, "192.168.0.3"))}, nil},
		"the record wins over clients":              {recorded, netB, []Server{serving("a", on(netA, "192.168.0.3"), on(netB, "192.168.1.3"))}, published("a", "192.168.0.3")},

		"an old server keeps its interface":        {unrecorded, renamed, []Server{older}, published("a", "192.168.0.3")},
		"the clients' interface of two":            {unrecorded, renamed, []Server{both}, published("a", "192.168.0.8")},
		"an old server with a network of a volume": {unrecorded, renamed, []Server{second}, published("a", "192.168.0.3")},
	} {
		t.Run(name, func(t *testing.T) {
			given := slices.Clone(test.servers)
			got := Publish(test.service, test.servers, test.fallback)
			must.True(t, reflect.DeepEqual(got, test.want), "got  %v\nwant %v", got, test.want)
			must.True(t, reflect.DeepEqual(test.servers, given), "the servers became %v", test.servers)
			slices.Reverse(given)
			again := Publish(test.service, given, test.fallback)
			must.True(t, reflect.DeepEqual(again, got), "in another order %v", again)
		})
	}
}

func fixed(address string) func(*Server) {
	return func(s *Server) { s.Fixed = multus.FixedAddresses(`[{"name": "net", "ips": ["` + address + `/24"]}]`) }
}

func with[T any](value T, change func(*T)) T {
	change(&value)
	return value
}
