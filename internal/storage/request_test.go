package storage

import (
	"errors"
	"math/big"
	"net/netip"
	"strings"
	"testing"
)

func TestParseAddresses(t *testing.T) {
	for name, test := range map[string]struct{ value, want, problem string }{
		"none":                   {value: " "},
		"one, with a prefix":     {value: "192.168.0.10/24", want: "192.168.0.10/24"},
		"one, without":           {value: "192.168.0.10", want: "192.168.0.10"},
		"both, IPv4 first":       {value: "FD00::10/64 , 192.168.0.10/24", want: "192.168.0.10/24,fd00::10/64"},
		"IPv6, the short way":    {value: "fd00:0:0::0010", want: "fd00::10"},
		"a point-to-point pair":  {value: "10.0.0.0/31", want: "10.0.0.0/31"},
		"a host of its own":      {value: "10.0.0.7/32", want: "10.0.0.7/32"},
		"no address":             {value: "x", problem: `"x" is not an IP address`},
		"no prefix":              {value: "10.0.0.1/33", problem: `"10.0.0.1/33" is not an address with a prefix length`},
		"an empty item":          {value: "10.0.0.1,", problem: `"" is not an IP address`},
		"two of a family":        {value: "10.0.0.1,10.0.0.2/24", problem: "10.0.0.1 and 10.0.0.2/24 are of one family"},
		"the network itself":     {value: "10.0.0.0/24", problem: "10.0.0.0/24 is the network's own address"},
		"broadcast":              {value: "192.168.60.255/24", problem: "192.168.60.255/24 is the network's broadcast address"},
		"broadcast of a /30":     {value: "10.0.0.3/30", problem: "10.0.0.3/30 is the network's broadcast address"},
		"the last of a /31":      {value: "10.0.0.1/31", want: "10.0.0.1/31"},
		"255 inside a /16":       {value: "192.168.60.255/16", want: "192.168.60.255/16"},
		"broadcast everywhere":   {value: "255.255.255.255", problem: "255.255.255.255 is reserved (240.0.0.0/4): no interface can have it"},
		"class E":                {value: "240.0.0.1/24", problem: "240.0.0.1/24 is reserved (240.0.0.0/4): no interface can have it"},
		"this network":           {value: "0.0.0.1", problem: "0.0.0.1 is reserved (0.0.0.0/8): no interface can have it"},
		"subnet routers":         {value: "fd00::/64", problem: "fd00::/64 is the anycast address of the network's routers"},
		"the first of a /127":    {value: "fd00::/127", want: "fd00::/127"},
		"the last of IPv6":       {value: "fd00::ffff:ffff:ffff:ffff/64", want: "fd00::ffff:ffff:ffff:ffff/64"},
		"link-local of IPv6":     {value: "fe80::1", problem: "fe80::1 reaches no further than its link"},
		"multicast of IPv4":      {value: "224.0.0.1/4", problem: "224.0.0.1/4 is no address that a server can have"},
		"IPv4 in IPv6 form":      {value: "::ffff:10.0.0.1", problem: "::ffff:10.0.0.1 is an IPv4 address in IPv6 form: write 10.0.0.1"},
		"with a zone":            {value: "fe80::1%eth0", problem: "fe80::1%eth0 reaches no further than its link"},
		"link-local":             {value: "169.254.1.1", problem: "169.254.1.1 reaches no further than its link"},
		"loopback":               {value: "127.0.0.1", problem: "127.0.0.1 is no address that a server can have"},
		"multicast":              {value: "ff0e::1", problem: "ff0e::1 is no address that a server can have"},
		"unspecified":            {value: "::", problem: ":: is no address that a server can have"},
		"leading zeros, as Go's": {value: "10.0.0.01", problem: `"10.0.0.01" is not an IP address`},
	} {
		t.Run(name, func(t *testing.T) {
			checkParsed(t, ParseAddresses, ErrNotAddresses, test.value, test.want, test.problem)
		})
	}
}

func TestParseMAC(t *testing.T) {
	for name, test := range map[string]struct{ value, want, problem string }{
		"none":               {value: ""},
		"local":              {value: "02:00:5e:00:53:01", want: "02:00:5e:00:53:01"},
		"a vendor's, dashes": {value: "00-1B-21-AA-BB-CC", want: "00:1b:21:aa:bb:cc"},
		"multicast":          {value: "01:00:5e:00:00:01", problem: "01:00:5e:00:00:01 is for a group of receivers"},
		"broadcast":          {value: "ff:ff:ff:ff:ff:ff", problem: "ff:ff:ff:ff:ff:ff is for a group of receivers"},
		"all zero":           {value: "00:00:00:00:00:00", problem: "00:00:00:00:00:00 is nobody's"},
		"too long":           {value: "02:00:5e:10:00:00:00:01", problem: `"02:00:5e:10:00:00:00:01" has another form`},
		"no MAC":             {value: "x", problem: `"x" has another form`},
	} {
		t.Run(name, func(t *testing.T) { checkParsed(t, ParseMAC, ErrNotAMAC, test.value, test.want, test.problem) })
	}
}

// checkParsed also holds that what is returned reads back as itself.
func checkParsed(t *testing.T, parse func(string) (string, error), kind error, value, want, problem string) {
	t.Helper()
	got, err := parse(value)
	if problem != "" {
		if !errors.Is(err, kind) || err.Error() != kind.Error()+": "+problem || got != "" {
			t.Fatalf("got %q, %v", got, err)
		}
		return
	}
	if err != nil || got != want {
		t.Fatalf("got %q, %v; want %q", got, err, want)
	}
	if again, err := parse(got); err != nil || again != got {
		t.Fatalf("%q reads back as %q, %v", got, again, err)
	}
}

func TestResolve(t *testing.T) {
	const network, addresses, mac = VolumeNetworkAnnotation, VolumeAddressesAnnotation, VolumeMACAnnotation
	a, b := Network{"team-x", "nfs"}, Network{"team-y", "nfs"}
	for name, test := range map[string]struct {
		claim, volume, class map[string]string
		want                 Request
	}{
		"nothing": {claim: map[string]string{"a": "b"}},
		"the claim first": {
			claim: map[string]string{network: "team-x/nfs"}, volume: map[string]string{network: "team-y/nfs"}, class: map[string]string{network: "team-y/nfs"},
			want: Request{Network: a, Source: "PersistentVolumeClaim default/data"},
		},
		"then the volume": {
			volume: map[string]string{network: "team-x/nfs"}, class: map[string]string{network: "team-y/nfs"},
			want: Request{Network: a, Source: "PersistentVolume pv-1"},
		},
		"then the class": {class: map[string]string{network: "team-y/nfs"}, want: Request{Network: b, Source: "StorageClass fast"}},
		"an empty one is a choice too": {
			claim: map[string]string{network: ""}, class: map[string]string{network: "team-y/nfs"},
			want: Request{Source: "PersistentVolumeClaim default/data"},
		},
		"addresses on the network of the class": {
			claim: map[string]string{addresses: "10.0.0.9/24"}, volume: map[string]string{mac: "02:00:00:00:00:01", addresses: "10.0.0.8"}, class: map[string]string{network: "team-x/nfs"},
			want: Request{Network: a, Source: "StorageClass fast", Asker: Asker{Kind: ClaimKind, Namespace: "default", Name: "data"}, Identity: Identity{Addresses: "10.0.0.9/24", MAC: "02:00:00:00:00:01"}},
		},
		"addresses on the network that all are on": {
			volume: map[string]string{addresses: "10.0.0.8"},
			want:   Request{Source: "PersistentVolume pv-1", Asker: Asker{Kind: VolumeKind, Name: "pv-1"}, Identity: Identity{Addresses: "10.0.0.8"}},
		},
		"addresses for a network that does not win": {
			claim: map[string]string{network: "team-x/nfs"}, volume: map[string]string{network: "team-y/nfs", addresses: "10.0.0.8"},
			want: Request{Network: a, Source: "PersistentVolumeClaim default/data"},
		},
		"a class has no say in addresses": {class: map[string]string{addresses: "10.0.0.8", mac: "x"}},
		"unreadable network": {
			claim: map[string]string{network: "nfs"}, class: map[string]string{network: "team-y/nfs"},
			want: Request{Source: "PersistentVolumeClaim default/data", Problem: "annotation fairlead.io/volume-network of PersistentVolumeClaim default/data: must be <namespace>/<NetworkAttachmentDefinition>"},
		},
		"unreadable address": {
			claim: map[string]string{network: "team-x/nfs", addresses: "x"},
			want:  Request{Source: "PersistentVolumeClaim default/data", Problem: "annotation fairlead.io/volume-addresses of PersistentVolumeClaim default/data: " + ErrNotAddresses.Error() + `: "x" is not an IP address`},
		},
		"unreadable, but overruled": {
			claim: map[string]string{network: "team-x/nfs"}, volume: map[string]string{network: "nfs", mac: "x"},
			want: Request{Network: a, Source: "PersistentVolumeClaim default/data"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			got := Resolve(
				RequestSource{Kind: ClaimKind, Namespace: "default", Name: "data", Annotations: test.claim}, RequestSource{Kind: VolumeKind, Namespace: "", Name: "pv-1", Annotations: test.volume}, RequestSource{Kind: ClassKind, Namespace: "", Name: "fast", Annotations: test.class},
			)
			if got != test.want {
				t.Fatalf("got  %+v\nwant %+v", got, test.want)
			}
		})
	}
}

func TestSharedIdentity(t *testing.T) {
	mine := Identity{Addresses: "10.0.0.9/24,fd00::9", MAC: "02:00:00:00:00:01"}
	for name, test := range map[string]struct {
		theirs Identity
		want   string
	}{
		"nothing":                         {},
		"another":                         {theirs: Identity{Addresses: "10.0.0.90/24", MAC: "02:00:00:00:00:02"}},
		"an address, whatever its prefix": {theirs: Identity{Addresses: "10.0.0.9"}, want: "address 10.0.0.9"},
		"an address of IPv6":              {theirs: Identity{Addresses: "fd00::9/64"}, want: "address fd00::9"},
		"a MAC":                           {theirs: Identity{MAC: "02:00:00:00:00:01"}, want: "MAC address 02:00:00:00:00:01"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := mine.Shared(test.theirs); got != test.want {
				t.Fatalf("got %q, want %q", got, test.want)
			}
		})
	}
	if got := (Identity{}).Shared(Identity{}); got != "" {
		t.Errorf("nothing shares %q with nothing", got)
	}
}

// What is asked is well formed or nothing, whatever is written.
func FuzzResolve(f *testing.F) {
	for _, seed := range [][3]string{{"team-x/nfs", "10.0.0.1/24,fd00::1", "02:00:00:00:00:01"}, {"", "", ""}, {"x", "fe80::1%eth0", "x"}, {" a/b ", "1.2.3.4 , ::1", "01-00-00-00-00-00"},
		{"a/b", "10.0.0.255/24", ""}, {"a/b", "255.255.255.255", ""}, {"a/b", "240.0.0.1/4", ""}, {"a/b", "fd00::/64,10.0.0.0/31", ""}, {"a/b", "0.1.2.3", ""}} {
		f.Add(seed[0], seed[1], seed[2], seed[0])
	}
	f.Fuzz(func(t *testing.T, network, addresses, mac, ofClass string) {
		r := Resolve(
			RequestSource{Kind: ClaimKind, Namespace: "default", Name: "data", Annotations: map[string]string{VolumeNetworkAnnotation: network, VolumeAddressesAnnotation: addresses, VolumeMACAnnotation: mac}},
			RequestSource{}, RequestSource{Kind: ClassKind, Name: "fast", Annotations: map[string]string{VolumeNetworkAnnotation: ofClass}},
		)
		if r.Problem != "" {
			if !r.Network.IsZero() || !r.Identity.IsZero() {
				t.Fatalf("asks though it can't be read: %+v", r)
			}
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
		if strings.ContainsAny(r.Identity.Addresses+r.Identity.MAC, " \"\\") {
			t.Fatalf("would have to be escaped: %+v", r.Identity)
		}
	})
}

// checkHostAddress wants an address that an interface in its network can have.
func checkHostAddress(t *testing.T, text string) {
	t.Helper()
	ip, _, _ := strings.Cut(text, "/")
	address, err := netip.ParseAddr(ip)
	if err != nil || !address.IsGlobalUnicast() || address.Zone() != "" {
		t.Fatalf("%s is accepted: %v", text, err)
	}
	if first := address.AsSlice()[0]; address.Is4() && (first == 0 || first >= 224) {
		t.Fatalf("%s is accepted", text)
	}
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
	if number.Sign() == 0 || address.Is4() && number.Cmp(mask) == 0 {
		t.Fatalf("%s is accepted", text)
	}
}
