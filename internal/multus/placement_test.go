package multus

import (
	"errors"
	"reflect"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/fairlead-io/fairlead/internal/testkit/must"
)

var (
	netX = VolumeAttachment(Network{"team-x", "nfs"})
	netY = VolumeAttachment(Network{"team-y", "nfs"})
)

// Pods keep their interface names over an upgrade of Fairlead only if these never change.
func TestInterfaceNamesOfVolumeNetworks(t *testing.T) {
	for network, want := range map[Network]string{
		{"team-x", "nfs"}: "team-x/nfs@fl890694b199", {"team-y", "nfs"}: "team-y/nfs@flbd23753839", {}: "",
	} {
		must.Equal(t, VolumeAttachment(network).String(), want)
	}
	parsed, err := ParseAttachment(netX.String())
	must.Check(t, err == nil && parsed == netX && parsed.ForVolumes(), "reads back as %+v, %v", parsed, err)
	for _, other := range []Attachment{{}, {Network: netX.Network, Interface: "lhnet1"}, {Network: netX.Network, Interface: netY.Interface}} {
		must.Check(t, !other.ForVolumes(), "%s is taken for one of ours", other)
	}
}

func TestVolumeAttachments(t *testing.T) {
	got, err := VolumeAttachments("x,"+netY.String()+",kube-system/a@lhnet1,"+netX.String()+","+netX.Network.String()+"@net1", "pod-ns")
	want := []Attachment{netX, netY}
	must.Check(t, err == nil && slices.Equal(got, want), "got %v, %v", got, err)
	if _, err := VolumeAttachments("[", "pod-ns"); !errors.Is(err, errNotASelection) {
		t.Errorf("got %v", err)
	}
	if got, err := VolumeAttachments("", "pod-ns"); err != nil || got != nil {
		t.Errorf("got %v, %v", got, err)
	}
}

func TestAddPlacement(t *testing.T) {
	both := Identity{Addresses: "10.0.0.9/24,fd00::9", MAC: "02:00:00:00:00:01"}
	const fixed = `, "ips": ["10.0.0.9/24", "fd00::9"], "mac": "02:00:00:00:00:01"}`
	const a = `{"namespace": "kube-system", "name": "a", "interface": "lhnet1"`
	for name, test := range map[string]struct {
		annotation string
		identity   Identity
		want       string
		refused    error
	}{
		"nothing fixed, in Longhorn's text":        {want: "[" + a + "}]"},
		"nothing fixed, the short form stays":      {annotation: "x", want: "x,kube-system/a@lhnet1"},
		"fixed":                                    {identity: both, want: "[" + a + fixed + "]"},
		"only a MAC":                               {identity: Identity{MAC: "02:00:00:00:00:01"}, want: "[" + a + `, "mac": "02:00:00:00:00:01"}]`},
		"fixed, the short form becomes JSON":       {annotation: "x, ns/y@net2", identity: both, want: `[{"namespace": "pod-ns", "name": "x"}, {"namespace": "ns", "name": "y", "interface": "net2"}, ` + a + fixed + "]"},
		"asked for already, by the storage system": {annotation: "[" + a + "}]", identity: both, want: "[" + a + fixed + "]"},
		"fixed already": {
			annotation: `[{"interface":"lhnet1","name":"a","namespace":"kube-system","mac":"02:00:00:00:00:01","ips":["fd00::9","10.0.0.9/24"]}]`, identity: both,
			want: `[{"interface":"lhnet1","name":"a","namespace":"kube-system","mac":"02:00:00:00:00:01","ips":["fd00::9","10.0.0.9/24"]}]`,
		},
		"fixed in part": {annotation: "[" + a + `, "mac": "02:00:00:00:00:01"}]`, identity: both, want: "[" + a + `, "mac": "02:00:00:00:00:01", "ips": ["10.0.0.9/24", "fd00::9"]}]`},
		"empty fields":  {annotation: "[" + a + `, "ips": [ ], "MAC": ""}]`, identity: both, want: `[{"interface":"lhnet1","name":"a","namespace":"kube-system", "ips": ["10.0.0.9/24", "fd00::9"], "mac": "02:00:00:00:00:01"}]`},
		"other fields stay": {annotation: `[{"name":"x",  "future": 1e2}, ` + a + `, "infinibandGUID": "g"}]`, identity: both,
			want: `[{"name":"x",  "future": 1e2}, ` + a + `, "infinibandGUID": "g"` + fixed + "]"},
		"other addresses there": {annotation: "[" + a + `, "ips": ["10.0.0.8"]}]`, identity: both, refused: ErrOtherIdentity},
		"another MAC there":     {annotation: "[" + a + `, "mac": "02:00:00:00:00:02"}]`, identity: both, refused: ErrOtherIdentity},
		"unreadable":            {annotation: "[", identity: both, refused: errNotASelection},
	} {
		t.Run(name, func(t *testing.T) {
			if test.refused != nil {
				test.want = test.annotation
			}
			got, err := AddPlacement(test.annotation, "pod-ns", Placement{netA, test.identity})
			must.True(t, got == test.want && errors.Is(err, test.refused), "got  %s, %v\nwant %s", got, err, test.want)
			if again, err := AddPlacement(got, "pod-ns", Placement{netA, test.identity}); test.refused == nil && (err != nil || again != got) {
				t.Fatalf("again: %s, %v", again, err)
			}
		})
	}
}

func TestAddPlacementOnlyAddsAndIsIdempotent(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		checkAddPlacement(t, genAnnotation(t), Placement{rapid.SampledFrom([]Attachment{netA, netX}).Draw(t, "network"), Identity{Addresses: "10.0.0.9"}})
	})
}

func FuzzAddPlacement(f *testing.F) {
	for _, seed := range seeds {
		f.Add(seed, "10.0.0.9/24", "02:00:00:00:00:01")
	}
	f.Add(`[{"namespace":"kube-system","name":"a","interface":"lhnet1","IPS":null,"Mac":""}]`, "10.0.0.9", "")
	f.Fuzz(func(t *testing.T, annotation, addresses, mac string) {
		addresses, err := ParseAddresses(addresses)
		if err != nil {
			return
		}
		if mac, err = ParseMAC(mac); err != nil {
			return
		}
		checkAddPlacement(t, annotation, Placement{netA, Identity{addresses, mac}})
	})
}

func checkAddPlacement(t must.TB, annotation string, p Placement) {
	got, err := AddPlacement(annotation, "pod-ns", p)
	if err != nil {
		must.True(t, got == annotation, "%q: refused with %v, and yet changed to %q", annotation, err, got)
		return
	}
	before, after := mustParse(t, annotation), mustParse(t, got)
	if !slices.Contains(before, p.Network) {
		before = append(before, p.Network)
	}
	must.True(t, reflect.DeepEqual(before, after), "%q: selections were %v and are %v", annotation, before, after)
	if again, err := AddPlacement(got, "pod-ns", p); err != nil || again != got {
		t.Fatalf("added again: %q, %v; before %q", again, err, got)
	}
}
