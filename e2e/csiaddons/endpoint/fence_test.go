package main

import (
	"path/filepath"
	"slices"
	"testing"

	"github.com/csi-addons/spec/lib/go/fence"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

func TestRequestsAreCheckedAsByCephCSI(t *testing.T) {
	secrets := map[string]string{"userID": "csi-rbd-provisioner", "userKey": "secret"}
	cluster := map[string]string{"clusterID": "ceph"}
	for _, test := range []struct {
		name                string
		parameters, secrets map[string]string
		cidrs               []string
		want                codes.Code
		blocked             []string
	}{
		{name: "nothing", want: codes.InvalidArgument},
		{name: "no CIDR", parameters: cluster, secrets: secrets, want: codes.InvalidArgument},
		{name: "no cluster", secrets: secrets, cidrs: []string{"10.0.0.1/32"}, want: codes.InvalidArgument},
		{name: "no secret", parameters: cluster, cidrs: []string{"10.0.0.1/32"}, want: codes.InvalidArgument},
		{name: "no key", parameters: cluster, secrets: map[string]string{"userID": "x"}, cidrs: []string{"10.0.0.1/32"}, want: codes.InvalidArgument},
		{name: "an address alone", parameters: cluster, secrets: secrets, cidrs: []string{"10.0.0.1"}, want: codes.InvalidArgument},
		{name: "one of two is none", parameters: cluster, secrets: secrets, cidrs: []string{"10.0.0.1/32", "x"}, want: codes.InvalidArgument},
		{
			name: "both families", parameters: cluster, secrets: secrets, cidrs: []string{"10.0.0.1/32", "FD00:0::1/128"},
			want: codes.OK, blocked: []string{"10.0.0.1/32", "fd00::1/128"},
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			s := fenceServer{list: list(filepath.Join(t.TempDir(), "blocklist.json"))}
			r := &fence.FenceClusterNetworkRequest{Parameters: test.parameters, Secrets: test.secrets, Cidrs: messages(test.cidrs)}
			_, err := s.FenceClusterNetwork(t.Context(), r)
			if got := status.Code(err); got != test.want {
				t.Errorf("it answers %v, want %v", err, test.want)
			}
			if got := read(t, string(s.list)); !slices.Equal(got, test.blocked) {
				t.Errorf("%v are blocked, want %v", got, test.blocked)
			}
		})
	}
}
