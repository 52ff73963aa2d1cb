package rwx

import (
	"fmt"
	"testing"
	"time"

	"github.com/fairlead-io/fairlead/internal/multus"
	"github.com/fairlead-io/fairlead/internal/testkit/must"
)

func TestClashes(t *testing.T) {
	one := multus.Attachment{Network: multus.Network{Namespace: "kube-system", Name: "one"}, Interface: "lhnet1"}
	noon := time.Unix(1_000_000, 0)
	reports := func(ips ...string) []multus.Reported {
		return []multus.Reported{{Network: "cbr0", Interface: "eth0", IPs: []string{"10.42.0.1"}}, {Network: one.Network.String(), Interface: "lhnet1", IPs: ips}}
	}
	client := func(name string, ips ...string) Client {
		return Client{Pod: name, Ready: true, Created: noon, Networks: []multus.Attachment{one}, Interfaces: reports(ips...)}
	}
	server := func(name, volume string, after time.Duration, ips ...string) Server {
		return Server{Pod: name, Volume: volume, Ready: true, Created: noon.Add(after), Networks: []multus.Attachment{one}, Reported: reports(ips...)}
	}
	for name, c := range map[string]struct {
		clients []Client
		servers []Server
		want    string
	}{
		"none":                      {[]Client{client("c", "192.168.0.1")}, []Server{server("a", "v-a", 0, "192.168.0.2", "fd00::2")}, "c {} a {}"},
		"two servers":               {nil, []Server{server("a", "v-a", 0, "192.168.0.2"), server("b", "v-b", time.Second, "192.168.0.2")}, "a {b false} b {a true}"},
		"a client and a server":     {[]Client{client("c", "192.168.0.2")}, []Server{server("a", "v-a", time.Second, "192.168.0.2")}, "c {a false} a {c true}"},
		"of one family":             {nil, []Server{server("a", "v-a", 0, "192.168.0.2", "fd00::2"), server("b", "v-b", time.Second, "192.168.0.3", "fd00::2")}, "a {b false} b {a true}"},
		"a fixed address moves":     {nil, []Server{server("a", "v-a", 0, "192.168.0.2"), server("b", "v-a", time.Second, "192.168.0.2")}, "a {} b {}"},
		"one of them is going":      {nil, []Server{server("a", "v-a", 0, "192.168.0.2"), {Pod: "b", Volume: "v-b", Ready: true, Terminating: true, Networks: []multus.Attachment{one}, Reported: reports("192.168.0.2")}}, "a {} b {}"},
		"the cluster network's own": {[]Client{client("c"), client("d")}, nil, "c {} d {}"},
	} {
		t.Run(name, func(t *testing.T) {
			FindClashes(c.clients, c.servers)
			got := ""
			say := func(pod string, clash Clash) {
				text := "{}"
				if clash != (Clash{}) {
					text = fmt.Sprint(clash)
				}
				got += fmt.Sprintf("%s %s ", pod, text)
			}
			for _, c := range c.clients {
				say(c.Pod, c.Clash)
			}
			for _, s := range c.servers {
				say(s.Pod, s.Clash)
			}
			must.Equal(t, got, c.want+" ")
		})
	}
}
