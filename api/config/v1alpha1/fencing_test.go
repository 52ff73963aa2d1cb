package v1alpha1

import (
	"fmt"
	"testing"
)

// A storage cluster's own ranges reach whoever fences, and the others keep the profile's.
func TestRangesOfStorageClustersInThePolicy(t *testing.T) {
	f := Fencing{Profiles: []FencingProfile{{
		Name: "rook-ceph", Namespace: "rook-ceph", Mode: Fence, ClientRanges: []string{"10.0.0.0/16"},
		Clusters: []FencingCluster{{ClusterID: "external", ClientRanges: []string{"10.1.2.3/16", "fd00::/8"}}},
	}}}
	s, protected := f.Policy().Storages("rook-ceph.rbd.csi.ceph.com")
	if got, want := fmt.Sprint(protected, s.ClientRanges, s.ClusterRanges), "true [10.0.0.0/16] map[external:[10.1.0.0/16 fd00::/8]]"; got != want {
		t.Fatalf("got %s, want %s", got, want)
	}
}
