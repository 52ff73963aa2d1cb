package storage

import (
	"errors"
	"math/big"
	"net/netip"
	"strings"
	"testing"

	"github.com/fairlead-io/fairlead/internal/testkit/must"
)

func TestParseAddresses(t *testing.T) {
	checkParsed(t, ParseAddresses, errNotAddresses, map[string]string{
		" ": "", "192.168.0.10/24": "192.168.0.10/24", "192.168.0.10": "192.168.0.10", "fd00:0:0::0010": "fd00::10",
		"FD00::10/64 , 192.168.0.10/24": "192.168.0.10/24,fd00::10/64",
		// Addresses at the ends of a network that hosts can have.
		"10.0.0.0/31": "10.0.0.0/31", "10.0.0.1/31": "10.0.0.1/31", "10.0.0.7/32": "10.0.0.7/32", "192.168.60.255/16": "192.168.60.255/16",
		"fd00::/127": "fd00::/127", "fd00::ffff:ffff:ffff:ffff/64": "fd00::ffff:ffff:ffff:ffff/64",
	}, map[string]string{
		"x":                    `"x" is not an IP address`,
		"10.0.0.01":            `"10.0.0.01" is not an IP address`,
		"10.0.0.1,":            `"" is not an IP address`,
		"10.0.0.1/33":          `"10.0.0.1/33" is not an address with a prefix length`,
		"10.0.0.1,10.0.0.2/24": "10.0.0.1 and 10.0.0.2/24 are of one family",
		"10.0.0.0/24":          "10.0.0.0/24 is the network's own address",
		"192.168.60.255/24":    "192.168.60.255/24 is the network's broadcast address",
		"10.0.0.3/30":          "10.0.0.3/30 is the network's broadcast address",
		"255.255.255.255":      "255.255.255.255 is reserved (240.0.0.0/4): no interface can have it",
		"240.0.0.1/24":         "240.0.0.1/24 is reserved (240.0.0.0/4): no interface can have it",
		"0.0.0.1":              "0.0.0.1 is reserved (0.0.0.0/8): no interface can have it",
		"fd00::/64":            "fd00::/64 is the anycast address of the network's routers",
		"::ffff:10.0.0.1":      "::ffff:10.0.0.1 is an IPv4 address in IPv6 form: write 10.0.0.1",
		"fe80::1":              "fe80::1 reaches no further than its link",
		"169.254.1.1":          "169.254.1.1 reaches no further than its link",
		"fd00::1%eth0":         "fd00::1%eth0 reaches no further than its link",
		"127.0.0.1":            "127.0.0.1 is no address that a server can have",
		"224.0.0.1/4":          "224.0.0.1/4 is no address that a server can have",
		"::":                   ":: is no address that a server can have",
	})
}

func TestParseMAC(t *testing.T) {
	checkParsed(t, ParseMAC, errNotAMAC, map[string]string{
		"": "", "02:00:5e:00:53:01": "02:00:5e:00:53:01", "00-1B-21-AA-BB-CC": "00:1b:21:aa:bb:cc",
	}, map[string]string{
		"01:00:5e:00:00:01":       "01:00:5e:00:00:01 is for a group of receivers",
		"00:00:00:00:00:00":       "00:00:00:00:00:00 belongs to no interface",
		"02:00:5e:10:00:00:00:01": `"02:00:5e:10:00:00:00:01" has another form`,
		"x":                       `"x" has another form`,
	})
}

// checkParsed wants values parsed, and their results parsed to themselves; others are refused with a problem.
func checkParsed(t *testing.T, parse func(string) (string, error), kind error, accepted, refused map[string]string) {
	t.Helper()
	for value, want := range accepted {
		got, err := parse(value)
		must.Check(t, err == nil && got == want, "%q: got %q, %v; want %q", value, got, err, want)
		if again, err := parse(got); err != nil || again != got {
			t.Errorf("%q reads back as %q, %v", got, again, err)
		}
	}
	for value, problem := range refused {
		got, err := parse(value)
		must.Check(t, errors.Is(err, kind) && err.Error() == kind.Error()+": "+problem && got == "", "%q: got %q, %v; want %s", value, got, err, problem)
	}
}

func TestResolve(t *testing.T) {
	const network, addresses, mac = VolumeNetworkAnnotation, VolumeAddressesAnnotation, VolumeMACAnnotation
	const claim, volume, class = "PersistentVolumeClaim default/data", "PersistentVolume pv-1", "StorageClass fast"
	type annotations = map[string]string
	x, y := annotations{network: "team-x/nfs"}, annotations{network: "team-y/nfs"}
	netX, netY := Network{"team-x", "nfs"}, Network{"team-y", "nfs"}
	byClaim, byVolume := Asker{Kind: ClaimKind, Namespace: "default", Name: "data"}, Asker{Kind: VolumeKind, Name: "pv-1"}
	for name, test := range map[string]struct {
		claim, volume, class annotations
		want                 Request
	}{
		"nothing":                   {annotations{"a": "b"}, nil, nil, Request{}},
		"the claim first":           {x, y, y, Request{Network: netX, Source: claim}},
		"then the volume":           {nil, x, y, Request{Network: netX, Source: volume}},
		"then the class":            {nil, nil, y, Request{Network: netY, Source: class}},
		"empty chooses the default": {annotations{network: ""}, nil, y, Request{Source: claim}},
		"addresses on the class' network": {annotations{addresses: "10.0.0.9/24"}, annotations{mac: "02:00:00:00:00:01", addresses: "10.0.0.8"}, x,
			Request{Network: netX, Source: class, Asker: byClaim, Identity: Identity{Addresses: "10.0.0.9/24", MAC: "02:00:00:00:00:01"}}},
		"addresses on the default network": {nil, annotations{addresses: "10.0.0.8"}, nil, Request{Source: volume, Asker: byVolume, Identity: Identity{Addresses: "10.0.0.8"}}},
		"addresses on a losing network":    {x, annotations{network: "team-y/nfs", addresses: "10.0.0.8"}, nil, Request{Network: netX, Source: claim}},
		"addresses of a class are ignored": {nil, nil, annotations{addresses: "10.0.0.8", mac: "x"}, Request{}},
		"network that is not permitted": {annotations{network: "kube-system/secret", mac: "02:00:00:00:00:01"}, nil, y,
			Request{Source: claim, Problem: "annotation fairlead.io/volume-network of " + claim + " names kube-system/secret: " + NotPermitted}},
		"not permitted, on a losing network": {x, annotations{network: "kube-system/secret"}, nil, Request{Network: netX, Source: claim}},
		"unreadable network":                 {annotations{network: "nfs"}, nil, y, Request{Source: claim, Problem: "annotation fairlead.io/volume-network of " + claim + ": " + ErrNotANetwork.Error()}},
		"unreadable address": {annotations{network: "team-x/nfs", addresses: "x"}, nil, nil,
			Request{Source: claim, Problem: "annotation fairlead.io/volume-addresses of " + claim + ": " + errNotAddresses.Error() + `: "x" is not an IP address`}},
		"unreadable, on a losing network": {x, annotations{network: "nfs", mac: "x"}, nil, Request{Network: netX, Source: claim}},
	} {
		t.Run(name, func(t *testing.T) {
			got := Resolve([]Network{netX, {"team-y", "nfs"}},
				RequestSource{Asker: Asker{Kind: ClaimKind, Namespace: "default", Name: "data"}, Annotations: test.claim},
				RequestSource{Asker: Asker{Kind: VolumeKind, Name: "pv-1"}, Annotations: test.volume}, RequestSource{Asker: Asker{Kind: ClassKind, Name: "fast"}, Annotations: test.class},
			)
			must.True(t, got == test.want, "got  %+v\nwant %+v", got, test.want)
		})
	}
}

func TestSharedIdentity(t *testing.T) {
	mine := Identity{Addresses: "10.0.0.9/24,fd00::9", MAC: "02:00:00:00:00:01"}
	for theirs, want := range map[Identity]string{
		{}: "", {Addresses: "10.0.0.90/24", MAC: "02:00:00:00:00:02"}: "", {Addresses: "10.0.0.9"}: "address 10.0.0.9",
		{Addresses: "fd00::9/64"}: "address fd00::9", {MAC: "02:00:00:00:00:01"}: "MAC address 02:00:00:00:00:01",
	} {
		must.Equal(t, mine.Shared(theirs), want, "%+v", theirs)
	}
}

// A request is well formed or empty, for any text of the annotations.
func FuzzResolve(f *testing.F) {
	for _, seed := range [][3]string{{"team-x/nfs", "10.0.0.1/24,fd00::1", "02:00:00:00:00:01"}, {"", "", ""}, {"x", "fe80::1%eth0", "x"}, {" a/b ", "1.2.3.4 , ::1", "01-00-00-00-00-00"},
		{"a/b", "10.0.0.255/24", ""}, {"a/b", "255.255.255.255", ""}, {"a/b", "240.0.0.1/4", ""}, {"a/b", "fd00::/64,10.0.0.0/31", ""}, {"a/b", "0.1.2.3", ""}} {
		f.Add(seed[0], seed[1], seed[2], seed[0])
	}
	f.Fuzz(func(t *testing.T, network, addresses, mac, ofClass string) {
		permitted, _ := ParseNetwork(network)
		r := Resolve([]Network{permitted},
			RequestSource{Asker: Asker{Kind: ClaimKind, Namespace: "default", Name: "data"}, Annotations: map[string]string{VolumeNetworkAnnotation: network, VolumeAddressesAnnotation: addresses, VolumeMACAnnotation: mac}},
			RequestSource{}, RequestSource{Asker: Asker{Kind: ClassKind, Name: "fast"}, Annotations: map[string]string{VolumeNetworkAnnotation: ofClass}},
		)
		if r.Problem != "" {
			must.True(t, r.Network.IsZero() && r.Identity.IsZero(), "asks though it can't be read: %+v", r)
			return
		}
		if again, err := ParseNetwork(r.Network.String()); err != nil || again != r.Network {
			t.Fatalf("network %q reads back as %q, %v", r.Network, again, err)
		}
		if again, err := ParseAddresses(r.Identity.Addresses); err != nil || again != r.Identity.Addresses || len(r.Identity.IPs()) > 2 {
			t.Fatalf("addresses %q read back as %q, %v", r.Identity.Addresses, again, err)
		}
		for _, ip := range r.Identity.IPs() {
			checkHostAddress(t, ip)
		}
		if again, err := ParseMAC(r.Identity.MAC); err != nil || again != r.Identity.MAC {
			t.Fatalf("MAC %q reads back as %q, %v", r.Identity.MAC, again, err)
		}
		must.True(t, !strings.ContainsAny(r.Identity.Addresses+r.Identity.MAC, " \"\\"), "would have to be escaped: %+v", r.Identity)
	})
}

// checkHostAddress wants an address that an interface in its network can have.
func checkHostAddress(t *testing.T, text string) {
	t.Helper()
	ip, _, _ := strings.Cut(text, "/")
	address, err := netip.ParseAddr(ip)
	must.True(t, err == nil && address.IsGlobalUnicast() && address.Zone() == "", "%s is accepted: %v", text, err)
	first := address.AsSlice()[0]
	must.True(t, !address.Is4() || first != 0 && first < 224, "%s is accepted", text)
	prefix, err := netip.ParsePrefix(text)
	if err != nil {
		return // no prefix length
	}
	host := prefix.Addr().BitLen() - prefix.Bits()
	if host < 2 {
		return
	}
	bits := new(big.Int).SetBytes(address.AsSlice())
	mask := new(big.Int).Sub(new(big.Int).Lsh(big.NewInt(1), uint(host)), big.NewInt(1))
	number := new(big.Int).And(bits, mask)
	must.True(t, number.Sign() != 0 && (!address.Is4() || number.Cmp(mask) != 0), "%s is accepted", text)
}
