package multus

import (
	"net/netip"
	"strings"
	"testing"

	"github.com/fairlead-io/fairlead/internal/testkit/must"
)

func TestDoubt(t *testing.T) {
	for name, c := range map[string]struct{ config, want string }{
		"a file on the nodes": {"", ""},
		"not JSON":            {"type: macvlan", ""},
		"no ipam":             {`{"type":"macvlan","master":"eth1"}`, "plugin macvlan assigns no addresses"},
		"an empty ipam":       {`{"type":"ipvlan","ipam":{}}`, "plugin ipvlan assigns no addresses"},
		"one that assigns":    {`{"type":"ovn-k8s-cni-overlay","name":"x"}`, ""},
		"static":              {`{"type":"host-device","ipam":{"type":"static","addresses":[{"address":"10.9.9.9/24"}]}}`, "the same addresses"},
		"host-local":          {`{"type":"macvlan","ipam":{"type":"host-local","subnet":"10.0.0.0/24"}}`, "pods on two nodes get the same one"},
		"a shared directory":  {`{"type":"macvlan","ipam":{"type":"host-local","dataDir":"/srv/addresses","subnet":"10.0.0.0/24"}}`, ""},
		"a list of plugins":   {`{"plugins":[{"type":"macvlan","ipam":{"type":"host-local"}},{"type":"tuning"}]}`, "pods on two nodes get the same one"},
		"DHCP":                {`{"plugins":[{"type":"ipvlan","ipam":{"type":"dhcp"}},{"type":"tuning"}]}`, ""},
		"a large range":       {`{"type":"macvlan","ipam":{"type":"whereabouts","range":"192.168.50.0/24"}}`, ""},
		"a large range, IPv6": {`{"type":"sriov","ipam":{"type":"whereabouts","range":"fd00:40::/64"}}`, ""},
		"a small range":       {`{"type":"macvlan","ipam":{"type":"whereabouts","range":"192.168.50.0/29"}}`, "its range has 6 addresses, and 10 pods need one"},
		"a part of a range":   {`{"type":"macvlan","ipam":{"type":"whereabouts","range":"192.168.50.0/24","range_start":"192.168.50.250","range_end":"192.168.50.254"}}`, "its range has 5 addresses"},
		"from and to":         {`{"type":"macvlan","ipam":{"type":"whereabouts","range":"192.168.50.10-192.168.50.20/24"}}`, ""},
		"from and to, small":  {`{"type":"macvlan","ipam":{"type":"whereabouts","range":"fd00::10-fd00::12/64"}}`, "its range has 3 addresses"},
		"several ranges":      {`{"type":"macvlan","ipam":{"type":"whereabouts","ipRanges":[{"range":"192.168.50.0/29"},{"range":"192.168.51.0/29"}]}}`, ""},
		"an unknown form":     {`{"type":"macvlan","ipam":{"type":"whereabouts","range":"x"}}`, ""},
	} {
		t.Run(name, func(t *testing.T) {
			got := Doubt(c.config, 10)
			must.True(t, (got == "") == (c.want == "") && strings.Contains(got, c.want), "got %q", got)
		})
	}
}

func TestMisfit(t *testing.T) {
	for name, c := range map[string]struct{ config, address, want string }{
		"whereabouts":              {`{"ipam":{"type":"whereabouts","range":"192.168.70.0/24","exclude":["192.168.70.0/26"]}}`, "192.168.70.9", ""},
		"as long as the subnet":    {`{"ipam":{"type":"whereabouts","range":"192.168.70.0/24"}}`, "192.168.70.9/24", ""},
		"wider than the subnet":    {`{"ipam":{"type":"whereabouts","range":"192.168.70.0/24"}}`, "192.168.70.9/1", "has prefix length 1, which is wider than the network's subnet 192.168.70.0/24"},
		"outside":                  {`{"ipam":{"type":"whereabouts","range":"192.168.70.0/24"}}`, "192.168.71.9", "is outside of the network's subnet 192.168.70.0/24"},
		"from and to":              {`{"ipam":{"type":"whereabouts","range":"192.168.70.10-192.168.70.20/24"}}`, "192.168.70.99", ""},
		"the gateway":              {`{"ipam":{"type":"whereabouts","range":"192.168.70.0/24","gateway":"192.168.70.1"}}`, "192.168.70.1", "is the network's gateway"},
		"host-local":               {`{"ipam":{"type":"host-local","ranges":[[{"subnet":"10.0.0.0/24","gateway":"10.0.0.1"}],[{"subnet":"fd00::/64"}]]}}`, "fd00::5", ""},
		"host-local, the gateway":  {`{"ipam":{"type":"host-local","ranges":[[{"subnet":"10.0.0.0/24","gateway":"10.0.0.1"}]]}}`, "10.0.0.1", "is the network's gateway"},
		"a family without subnets": {`{"ipam":{"type":"host-local","subnet":"10.0.0.0/24"}}`, "fd00::5", ""},
		"DHCP":                     {`{"ipam":{"type":"dhcp"}}`, "10.0.0.1", ""},
		"a file on the nodes":      {"", "10.0.0.1", ""},
	} {
		t.Run(name, func(t *testing.T) {
			fixed, err := netip.ParsePrefix(c.address)
			if err != nil {
				address := netip.MustParseAddr(c.address)
				fixed = netip.PrefixFrom(address, address.BitLen())
			}
			must.Equal(t, Misfit(c.config, fixed), c.want)
		})
	}
}

func FuzzDoubt(f *testing.F) {
	f.Add(`{"type":"macvlan","ipam":{"type":"whereabouts","range":"192.168.50.10-192.168.50.20/24"}}`)
	f.Fuzz(func(_ *testing.T, config string) {
		Doubt(config, 3)
		Misfit(config, netip.MustParsePrefix("192.168.50.10/24"))
	})
}
