package config

import (
	"fmt"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/fairlead-io/fairlead/internal/fence"
	"github.com/fairlead-io/fairlead/internal/testkit/must"
)

func TestOneSourceOfAddressesPerProfile(t *testing.T) {
	for _, test := range []struct {
		profile         FencingProfile
		source, problem string
	}{
		{FencingProfile{}, fence.SourceCSIAddonsNode, ""},
		{FencingProfile{Addresses: AddressesCSIAddons}, fence.SourceCSIAddonsNode, ""},
		{FencingProfile{Addresses: AddressesNode}, fence.SourceNode, ""},
		{FencingProfile{Network: "rook-ceph/public"}, fence.SourceMultus, ""},
		{FencingProfile{Addresses: AddressesNode}, fence.SourceNode, ""},
		{FencingProfile{Addresses: "multus"}, "", "for a Multus network, write network: <namespace>/<name> instead"},
		{FencingProfile{Addresses: AddressesNode, Network: "rook-ceph/public"}, "", "remove addresses, or remove network"},
	} {
		f := Fencing{Profiles: []FencingProfile{test.profile}}
		f.Profiles[0].Name = "rook-ceph"
		f.setDefaults()
		problems := problemsOf(f)
		if got := problems.ToAggregate(); (got != nil) != (test.problem != "") || got != nil && !strings.Contains(got.Error(), test.problem) {
			t.Errorf("%+v: got %v, want %q", test.profile, got, test.problem)
		}
		s, _ := f.Policy().Storages("rook-ceph.rbd.csi.ceph.com")
		must.True(t, test.source == "" || s.Source == test.source, "%+v: got source %s, want %s", test.profile, s.Source, test.source)
	}
}

func TestRangesOfStorageClustersInThePolicy(t *testing.T) {
	f := Fencing{Profiles: []FencingProfile{{
		Name: "rook-ceph", Namespace: "rook-ceph", Mode: Fence, ClientRanges: []string{"10.0.0.0/16"},
		Clusters: []FencingCluster{{ClusterID: "external", ClientRanges: []string{"10.1.2.3/16", "fd00::/8"}}},
	}}}
	s, protected := f.Policy().Storages("rook-ceph.rbd.csi.ceph.com")
	got, want := fmt.Sprint(protected, s.ClientRanges, s.ClusterRanges), "true [10.0.0.0/16] map[external:[10.1.0.0/16 fd00::/8]]"
	must.True(t, got == want, "got %s, want %s", got, want)
}

func problemsOf(f Fencing) field.ErrorList {
	p := &problems{}
	f.validate(p, field.NewPath("fencing"))
	return p.list
}
