package rwx

import (
	"github.com/fairlead-io/fairlead/internal/multus"
)

import (
	"math/big"
	"net/netip"
	"strings"
	"testing"

	"github.com/fairlead-io/fairlead/internal/testkit/must"
)

func TestResolve(t *testing.T) {
	const network, addresses, mac = VolumeNetworkAnnotation, VolumeAddressesAnnotation, VolumeMACAnnotation
	const claim, volume, class = "PersistentVolumeClaim default/data", "PersistentVolume pv-1", "StorageClass fast"
	type annotations = map[string]string
	x, y := annotations{network: "team-x/nfs"}, annotations{network: "team-y/nfs"}
	netX, netY := multus.Network{Namespace: "team-x", Name: "nfs"}, multus.Network{Namespace: "team-y", Name: "nfs"}
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
			Request{Network: netX, Source: class, Asker: byClaim, Identity: multus.Identity{Addresses: "10.0.0.9/24", MAC: "02:00:00:00:00:01"}}},
		"addresses on the default network": {nil, annotations{addresses: "10.0.0.8"}, nil, Request{Source: volume, Asker: byVolume, Identity: multus.Identity{Addresses: "10.0.0.8"}}},
		"addresses on a losing network":    {x, annotations{network: "team-y/nfs", addresses: "10.0.0.8"}, nil, Request{Network: netX, Source: claim}},
		"addresses of a class are ignored": {nil, nil, annotations{addresses: "10.0.0.8", mac: "x"}, Request{}},
		"network that is not permitted": {annotations{network: "kube-system/secret", mac: "02:00:00:00:00:01"}, nil, y,
			Request{Source: claim, Problem: "annotation fairlead.io/volume-network of " + claim + " names kube-system/secret: " + NotPermitted}},
		"not permitted, on a losing network": {x, annotations{network: "kube-system/secret"}, nil, Request{Network: netX, Source: claim}},
		"address of another namespace": {annotations{network: "team-x/nfs", addresses: "10.0.0.9,fd00::9"}, nil, nil,
			Request{Source: claim, NotGranted: VolumeAddressesAnnotation, Problem: "claims of namespace default may not ask for address fd00::9: " + askForGrant}},
		"address out of the ranges": {annotations{network: "team-x/nfs", addresses: "10.0.0.10/24"}, annotations{addresses: "10.0.0.1"}, nil,
			Request{Source: claim, NotGranted: VolumeAddressesAnnotation, Problem: "claims of namespace default may not ask for address 10.0.0.10: " + askForGrant}},
		"MAC of another vendor": {annotations{network: "team-x/nfs", mac: "02:00:00:00:00:10"}, nil, nil,
			Request{Source: claim, NotGranted: VolumeMACAnnotation, Problem: "claims of namespace default may not ask for MAC address 02:00:00:00:00:10: " + askForGrant}},
		"address of a network without ranges": {annotations{addresses: "10.0.0.1"}, nil, y,
			Request{Source: claim, NotGranted: VolumeAddressesAnnotation, Problem: "claims of namespace default may not ask for address 10.0.0.1: " + askForGrant}},
		"a PersistentVolume asks for any": {nil, annotations{network: "team-y/nfs", addresses: "172.16.0.1", mac: "0a:00:00:00:00:01"}, nil,
			Request{Network: multus.Network{Namespace: "team-y", Name: "nfs"}, Source: volume, Asker: byVolume, Identity: multus.Identity{Addresses: "172.16.0.1", MAC: "0a:00:00:00:00:01"}}},
		"unreadable network": {annotations{network: "nfs"}, nil, y, Request{Source: claim, Problem: "annotation fairlead.io/volume-network of " + claim + ": " + multus.ErrNotANetwork.Error()}},
		"unreadable address": {annotations{network: "team-x/nfs", addresses: "x"}, nil, nil,
			Request{Source: claim, Problem: "annotation fairlead.io/volume-addresses of " + claim + ": " + `must be one IP address of each family at most, with or without a prefix length, separated by a comma: "x" is not an IP address`}},
		"unreadable, on a losing network": {x, annotations{network: "nfs", mac: "x"}, nil, Request{Network: netX, Source: claim}},
	} {
		t.Run(name, func(t *testing.T) {
			got := Resolve(Permitted{[]multus.Network{netX, {Namespace: "team-y", Name: "nfs"}}, []AddressGrant{
				{Ranges: prefixes("10.0.0.0/24", "fd00::/64"), MACPrefixes: []string{"02:00:00"}},
				{Network: netX, Namespaces: []string{"default"}, Ranges: prefixes("10.0.0.0/29", "10.0.0.9/32"), MACPrefixes: []string{"02:00:00:00:00:01"}},
				{Network: netX, Namespaces: []string{"team-x"}, Ranges: prefixes("10.0.0.0/24")},
			}},
				RequestSource{Asker: Asker{Kind: ClaimKind, Namespace: "default", Name: "data"}, Annotations: test.claim},
				RequestSource{Asker: Asker{Kind: VolumeKind, Name: "pv-1"}, Annotations: test.volume}, RequestSource{Asker: Asker{Kind: ClassKind, Name: "fast"}, Annotations: test.class},
			)
			must.True(t, got == test.want, "got  %+v\nwant %+v", got, test.want)
		})
	}
}

func prefixes(texts ...string) (all []netip.Prefix) {
	for _, text := range texts {
		all = append(all, netip.MustParsePrefix(text))
	}
	return all
}

// A request is well formed or empty, for any text of the annotations.
func FuzzResolve(f *testing.F) {
	for _, seed := range [][3]string{{"team-x/nfs", "10.0.0.1/24,fd00::1", "02:00:00:00:00:01"}, {"", "", ""}, {"x", "fe80::1%eth0", "x"}, {" a/b ", "1.2.3.4 , ::1", "01-00-00-00-00-00"},
		{"a/b", "10.0.0.255/24", ""}, {"a/b", "255.255.255.255", ""}, {"a/b", "240.0.0.1/4", ""}, {"a/b", "fd00::/64,10.0.0.0/31", ""}, {"a/b", "0.1.2.3", ""}} {
		f.Add(seed[0], seed[1], seed[2], seed[0])
	}
	f.Fuzz(func(t *testing.T, network, addresses, mac, ofClass string) {
		permitted, _ := multus.ParseNetwork(network)
		r := Resolve(Permitted{[]multus.Network{permitted}, []AddressGrant{{Network: permitted, Ranges: prefixes("0.0.0.0/0", "::/0"), MACPrefixes: []string{"02"}}, {Ranges: prefixes("10.0.0.0/8")}}},
			RequestSource{Asker: Asker{Kind: ClaimKind, Namespace: "default", Name: "data"}, Annotations: map[string]string{VolumeNetworkAnnotation: network, VolumeAddressesAnnotation: addresses, VolumeMACAnnotation: mac}},
			RequestSource{}, RequestSource{Asker: Asker{Kind: ClassKind, Name: "fast"}, Annotations: map[string]string{VolumeNetworkAnnotation: ofClass}},
		)
		if r.Problem != "" {
			must.True(t, r.Network.IsZero() && r.Identity.IsZero(), "asks though it can't be read: %+v", r)
			return
		}
		if again, err := multus.ParseNetwork(r.Network.String()); err != nil || again != r.Network {
			t.Fatalf("network %q reads back as %q, %v", r.Network, again, err)
		}
		if again, err := multus.ParseAddresses(r.Identity.Addresses); err != nil || again != r.Identity.Addresses || len(r.Identity.IPs()) > 2 {
			t.Fatalf("addresses %q read back as %q, %v", r.Identity.Addresses, again, err)
		}
		for _, ip := range r.Identity.IPs() {
			checkHostAddress(t, ip)
		}
		if again, err := multus.ParseMAC(r.Identity.MAC); err != nil || again != r.Identity.MAC {
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
