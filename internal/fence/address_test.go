package fence

import (
	"net/netip"
	"strings"
	"testing"

	"github.com/fairlead-io/fairlead/internal/testkit/must"
)

func TestParseClientCIDR(t *testing.T) {
	for text, want := range map[string]string{
		"10.0.0.1": "10.0.0.1/32", "10.0.0.1/32": "10.0.0.1/32", "fd00::1": "fd00::1/128", "fd00::1/128": "fd00::1/128", "FD00:0:0::0001": "fd00::1/128",
		"2001:db8::": "2001:db8::/128", "fd00::a:0": "fd00::a:0/128", "::ffff:10.0.0.1": "10.0.0.1/32", "::ffff:10.0.0.1/128": "10.0.0.1/32",
		"10.0.0.0/24": "10.0.0.0/24 is wider than one address", "fd00::1/32": "fd00::1/32 is wider than one address",
		"::ffff:10.0.0.1/32": "::ffff:10.0.0.1/32 is wider than one address", "0.0.0.0": "0.0.0.0 is not an address of one host",
		"0.0.0.0/0": "0.0.0.0/0 is wider than one address", "::": ":: is not an address of one host", "127.0.0.1": "127.0.0.1 is not an address of one host",
		"::ffff:127.0.0.1": "127.0.0.1 is not an address of one host", "224.0.0.1": "224.0.0.1 is not an address of one host",
		"169.254.1.1": "169.254.1.1 is not an address of one host", "fe80::1": "fe80::1 is not an address of one host",
		"fe80::1%eth0": "fe80::1 is not an address of one host", "fd00::1%eth0": "fd00::1/128",
		"fd00::1%eth0/128": `"fd00::1%eth0/128" is no address in CIDR form`, "255.255.255.255": "255.255.255.255 is not an address of one host",
		"10.0.0.1:0/12345": `"10.0.0.1:0/12345" is no address in CIDR form`, "10.0.0.1:6789": `"10.0.0.1:6789" is no address`,
		"10.0.0.1/33": `"10.0.0.1/33" is no address in CIDR form`, "010.0.0.1": `"010.0.0.1" is no address`, "node-1": `"node-1" is no address`,
		"": `"" is no address`,
	} {
		t.Run(text, func(t *testing.T) {
			p, err := ParseClientCIDR(text)
			got := p.String()
			if err != nil {
				got = err.Error()
			}
			must.Equal(t, got, want)
		})
	}
}

// Ceph takes each of these for 10.0.0.1 or fd00::1 (src/msg/msg_types.cc; 10.0.0.1:0/32 is what Rook 1.12 wrote, rook#12286).
func TestNetworkFenceListsAddressInEveryFormOfCeph(t *testing.T) {
	for text, want := range map[string]string{
		"10.0.0.1": "10.0.0.1/32", "10.0.0.1/32": "10.0.0.1/32", "10.0.0.1:0/32": "10.0.0.1/32", "10.0.0.1:0/3710147553": "10.0.0.1/32",
		"10.0.0.1:6789": "10.0.0.1/32", "10.0.0.1/0": "0.0.0.0/0", "10.0.0.9/24": "10.0.0.0/24", "v1:10.0.0.1:0/1": "10.0.0.1/32", "any:10.0.0.1:0/0": "10.0.0.1/32",
		"::ffff:10.0.0.1": "10.0.0.1/32", "::ffff:10.0.0.1/128": "10.0.0.1/32", "::ffff:10.0.0.0/120": "10.0.0.0/24", " 10.0.0.1/32 ": "10.0.0.1/32",
		"fd00::1": "fd00::1/128", "fd00::1/128": "fd00::1/128", "[fd00::1]": "fd00::1/128", "[fd00::1]:0/17": "fd00::1/128", "v2:[fd00::1]:3300/0": "fd00::1/128", "fd00::/64": "fd00::/64",
		"10.0.0.1:x": "", "10.0.0.1:0/x": "", "10.0.0.1/": "", "node-1": "", "": "", "10.0.0.1-10.0.0.9": "",
	} {
		t.Run(text, func(t *testing.T) {
			got, ok := cephAddresses(text)
			must.True(t, ok == (want != "") && (!ok || got.String() == want), "got %s, %t", got, ok)
			must.Equal(t, NetworkFence{CIDRs: []string{"10.0.0.1/32", text}}.unreadable() == "", ok || text == "")
		})
	}
}

func FuzzParseClientCIDR(f *testing.F) {
	for _, text := range []string{"10.0.0.1", "10.0.0.1/32", "fd00::1/128", "::ffff:1.2.3.4", "fe80::1%eth0", "0.0.0.0/0", "10.0.0.1:0/1", "[::1]:0"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		p, err := ParseClientCIDR(text)
		if err != nil {
			must.Equal(t, p.IsValid(), false, "%q", text)
			return
		}
		a := p.Addr()
		must.True(t, p.IsSingleIP() && a.Zone() == "" && !a.Is4In6() && !a.IsUnspecified() && !a.IsLoopback() && !a.IsMulticast(), "%q is read as %s", text, p)
		if again, err := ParseClientCIDR(p.String()); err != nil || again != p {
			t.Fatalf("%s reads back as %s, %v", p, again, err)
		}
		bare, _, _ := strings.Cut(text, "/")
		if parsed, err := netip.ParseAddr(bare); err != nil || parsed.Unmap().WithZone("") != a {
			t.Fatalf("%q is read as %s", text, p)
		}
	})
}
