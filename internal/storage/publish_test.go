package storage

import (
	"net/netip"
	"reflect"
	"slices"
	"testing"
	"time"
)

// begin is a moment like any other.
var begin = time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)

func at(seconds float64) time.Time { return begin.Add(time.Duration(seconds * float64(time.Second))) }

// on is an interface as Multus reports it.
func on(a Attachment, ips ...string) Reported {
	return Reported{Network: a.Network.String(), Interface: a.Interface, IPs: ips}
}

// serving is a Ready server pod of volume v.
func serving(pod string, reported ...Reported) Server {
	return Server{Pod: pod, UID: "uid-" + pod, Volume: "v", Node: "node-of-" + pod, Reported: reported, Ready: true, Created: begin}
}

func published(pod string, addresses ...string) []Published {
	var list []Published
	for _, a := range addresses {
		list = append(list, Published{Address: netip.MustParseAddr(a), Pod: pod, UID: "uid-" + pod, Node: "node-of-" + pod})
	}
	return list
}

func TestPublishTakesWhatMultusReportsOfReadyServersAndNothingElse(t *testing.T) {
	eth0 := Reported{Network: "cbr0", Interface: "eth0", IPs: []string{"10.42.0.7"}}
	headless := Service{Name: "v", Volume: "v", ClusterIP: ClusterIPNone, Recorded: netA}
	for name, test := range map[string]struct {
		service  Service // headless, if it has no name
		fallback Attachment
		servers  []Server
		want     []Published
	}{
		"a server": {
			servers: []Server{serving("a", eth0, on(netA, "192.168.0.3"))},
			want:    published("a", "192.168.0.3"),
		},
		"no server": {},
		"both families, in one order whatever Multus' is": {
			servers: []Server{serving("a", on(netA, "fd00::3", "192.168.0.3"))},
			want:    published("a", "192.168.0.3", "fd00::3"),
		},
		"Longhorn bug: not Ready": {
			servers: []Server{with(serving("a", on(netA, "192.168.0.3")), func(s *Server) { s.Ready = false })},
		},
		"Longhorn bug: terminating, though still Ready": {
			servers: []Server{with(serving("a", on(netA, "192.168.0.3")), func(s *Server) { s.Terminating = true })},
		},
		"Longhorn bug: Multus is late, and the pod's own address is no stand-in": {
			servers: []Server{serving("a", eth0)},
		},
		"nothing is reported at all": {servers: []Server{serving("a")}},
		"of another volume": {
			servers: []Server{with(serving("a", on(netA, "192.168.0.3")), func(s *Server) { s.Volume = "w" })},
		},
		"on another interface of the network": {
			servers: []Server{serving("a", on(Attachment{netA.Network, "net1"}, "192.168.0.3"))},
		},
		"on the interface, of another network": {
			servers: []Server{serving("a", on(Attachment{netB.Network, netA.Interface}, "192.168.0.3"))},
		},
		"of several interfaces the one": {
			servers: []Server{serving("a", eth0, on(netB, "192.168.1.3"), on(netA, "192.168.0.3"))},
			want:    published("a", "192.168.0.3"),
		},
		"reported without an address": {servers: []Server{serving("a", on(netA))}},
		"a status that is broken is as good as none": {
			servers: []Server{serving("a", on(netA, "192.168.0.3", "192.168.0")), serving("b", on(netA, "192.168.0.4"))},
			want:    published("b", "192.168.0.4"),
		},
		"broken for another network": {
			servers: []Server{serving("a", on(netB, "192.168.0"), on(netA, "192.168.0.3"))},
			want:    published("a", "192.168.0.3"),
		},
		"an IPv4 address in IPv6's clothes": {
			servers: []Server{serving("a", on(netA, "::ffff:192.168.0.3"))},
			want:    published("a", "192.168.0.3"),
		},
		"the same address in both clothes is one": {
			servers: []Server{serving("a", on(netA, "192.168.0.3", "::ffff:192.168.0.3"))},
			want:    published("a", "192.168.0.3"),
		},
		"what the API refuses, or nobody could reach": {
			servers: []Server{serving("a", on(netA,
				"fe80::1", "fe80::1%eth0", "169.254.0.3", "127.0.0.1", "::1", "0.0.0.0", "::", "224.0.0.1", "239.0.0.1", "ff02::1", "ff05::1", "255.255.255.255", "fd00::1%eth0", "::ffff:169.254.0.3",
				"192.168.0.3"))},
			want: published("a", "192.168.0.3"),
		},
		"two servers, as while one is replaced": {
			servers: []Server{serving("b", on(netA, "192.168.0.3")), serving("a", on(netA, "192.168.0.4"))},
			want:    append(published("b", "192.168.0.3"), published("a", "192.168.0.4")...),
		},
		"a fixed address that has moved is the newer pod's": {
			servers: []Server{
				serving("old", on(netA, "192.168.0.3")),
				with(serving("new", on(netA, "192.168.0.3")), func(s *Server) { s.Created = at(1) }),
			},
			want: published("new", "192.168.0.3"),
		},
		"a fixed address whose newer pod is not Ready yet stays with the older": {
			servers: []Server{
				serving("old", on(netA, "192.168.0.3")),
				with(serving("new", on(netA, "192.168.0.3")), func(s *Server) { s.Created, s.Ready = at(1), false }),
			},
			want: published("old", "192.168.0.3"),
		},
		"one address, created in the same second: the same pod each time": {
			servers: []Server{serving("b", on(netA, "192.168.0.3")), serving("a", on(netA, "192.168.0.3"))},
			want:    published("a", "192.168.0.3"),
		},
		"a Service with a cluster IP": {
			service: Service{Name: "v", Volume: "v", ClusterIP: "10.43.0.1", Recorded: netA},
			servers: []Server{serving("a", eth0, on(netA, "192.168.0.3"))},
		},
		"a headless Service without a record follows the clients": {
			service: Service{Name: "v", Volume: "v", ClusterIP: ClusterIPNone}, fallback: netB,
			servers: []Server{serving("a", on(netA, "192.168.0.3"), on(netB, "192.168.1.3"))},
			want:    published("a", "192.168.1.3"),
		},
		"a headless Service without a record, clients on the cluster network": {
			service: Service{Name: "v", Volume: "v", ClusterIP: ClusterIPNone},
			servers: []Server{serving("a", eth0, Reported{IPs: []string{"10.42.0.7"}}, on(netA, "192.168.0.3"))},
		},
		"a record wins over what clients are on": {
			fallback: netB,
			servers:  []Server{serving("a", on(netA, "192.168.0.3"), on(netB, "192.168.1.3"))},
			want:     published("a", "192.168.0.3"),
		},
	} {
		t.Run(name, func(t *testing.T) {
			service := test.service
			if service.Name == "" {
				service = headless
			}
			given := slices.Clone(test.servers)
			got := Publish(service, test.servers, test.fallback)
			if !reflect.DeepEqual(got, test.want) {
				t.Fatalf("got  %v\nwant %v", got, test.want)
			}
			if !reflect.DeepEqual(test.servers, given) {
				t.Fatalf("the servers became %v", test.servers)
			}
			slices.Reverse(given)
			if again := Publish(service, given, test.fallback); !reflect.DeepEqual(again, got) {
				t.Fatalf("in another order %v", again)
			}
		})
	}
}

func with[T any](value T, change func(*T)) T {
	change(&value)
	return value
}

// A server of Longhorn 1.10 keeps its interface when 1.11 names another for the same network.
func TestServerIsPublishedOnItsOwnInterface(t *testing.T) {
	network := Network{"kube-system", "storage-net"}
	server := Server{
		Pod: "share-manager-v", UID: "uid", Volume: "v", Ready: true, Network: Attachment{network, "lhnet1"},
		Reported: []Reported{{Network: "kube-system/storage-net", Interface: "lhnet1", IPs: []string{"192.168.0.7"}}},
	}
	service := Service{Name: "v", Volume: "v", ClusterIP: ClusterIPNone}
	published := Publish(service, []Server{server}, Attachment{network, "lhnet2"})
	if len(published) != 1 || published[0].Address.String() != "192.168.0.7" {
		t.Errorf("published %v", published)
	}
	server.Networks = []Attachment{{network, "lhnet1"}, {network, "lhnet2"}}
	server.Reported = append(server.Reported, Reported{Network: "kube-system/storage-net", Interface: "lhnet2", IPs: []string{"192.168.0.8"}})
	published = Publish(service, []Server{server}, Attachment{network, "lhnet2"})
	if len(published) != 1 || published[0].Address.String() != "192.168.0.8" {
		t.Errorf("with both interfaces, published %v", published)
	}
}

func TestServerIsPublishedOnItsSecondNetworksInterface(t *testing.T) {
	own, older := Attachment{netB.Network, "lhvol0"}, Attachment{netA.Network, "lhnet1"}
	server := with(serving("a", on(own, "192.168.1.3"), on(older, "192.168.0.3")), func(s *Server) {
		s.Network, s.Networks = own, []Attachment{own, older}
	})
	service := Service{Name: "v", Volume: "v", ClusterIP: ClusterIPNone}
	got := Publish(service, []Server{server}, Attachment{netA.Network, "lhnet2"})
	if want := published("a", "192.168.0.3"); !reflect.DeepEqual(got, want) {
		t.Errorf("got  %v\nwant %v", got, want)
	}
}
