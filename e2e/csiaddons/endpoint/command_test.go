package main

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/csi-addons/spec/lib/go/fence"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// What a command has not carried out is not on the list.
func TestCommandsCarryOutFences(t *testing.T) {
	dir := t.TempDir()
	did := filepath.Join(dir, "did")
	script := filepath.Join(dir, "script")
	if err := os.WriteFile(script, []byte("#!/bin/sh\necho \"$@\" >>"+did+"\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	s := fenceServer{list: list(filepath.Join(dir, "blocklist.json")), fence: command(script + " cut"), unfence: "/nonexistent"}
	parameters := map[string]string{"clusterID": "ceph"}
	secrets := map[string]string{"userID": "u", "userKey": "k"}
	cidrs := messages([]string{"10.0.0.1/32", "10.0.0.2/32"})
	if _, err := s.FenceClusterNetwork(t.Context(), &fence.FenceClusterNetworkRequest{Parameters: parameters, Secrets: secrets, Cidrs: cidrs}); err != nil {
		t.Fatal(err)
	}
	if got, err := os.ReadFile(did); err != nil || string(got) != "cut 10.0.0.1/32 10.0.0.2/32\n" {
		t.Errorf("the command got %q, %v", got, err)
	}
	_, err := s.UnfenceClusterNetwork(t.Context(), &fence.UnfenceClusterNetworkRequest{Parameters: parameters, Secrets: secrets, Cidrs: cidrs})
	if status.Code(err) != codes.Internal {
		t.Errorf("a command that fails gives %v", err)
	}
	if got := read(t, string(s.list)); !slices.Equal(got, []string{"10.0.0.1/32", "10.0.0.2/32"}) {
		t.Errorf("%v are blocked", got)
	}
}
