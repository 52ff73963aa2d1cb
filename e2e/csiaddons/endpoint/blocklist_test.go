package main

import (
	"fmt"
	"path/filepath"
	"slices"
	"sync"
	"testing"
)

// Endpoints that block at the same time lose nothing of each other's.
func TestEndpointsShareTheBlockList(t *testing.T) {
	file := filepath.Join(t.TempDir(), "blocklist.json")
	const endpoints, each = 8, 20
	var done sync.WaitGroup
	for e := range endpoints {
		done.Go(func() {
			for i := range each {
				if err := list(file).block("ceph", []string{fmt.Sprintf("10.0.%d.%d/32", e, i)}); err != nil {
					t.Error(err)
				}
			}
		})
	}
	done.Wait()
	if got := len(read(t, file)); got != endpoints*each {
		t.Errorf("%d are blocked, want %d", got, endpoints*each)
	}
}

func TestWhatIsBlockedTwiceIsUnblockedOnce(t *testing.T) {
	file := filepath.Join(t.TempDir(), "blocklist.json")
	rbd, cephfs := list(file), list(file)
	for _, step := range []struct {
		name string
		do   func() error
		want []string
	}{
		{"one blocks", func() error { return rbd.block("ceph", []string{"10.0.0.2/32", "10.0.0.1/32"}) }, []string{"10.0.0.1/32", "10.0.0.2/32"}},
		{"the other too", func() error { return cephfs.block("ceph", []string{"10.0.0.1/32"}) }, []string{"10.0.0.1/32", "10.0.0.2/32"}},
		{"another storage", func() error { return rbd.block("other", []string{"10.0.0.3/32"}) }, []string{"10.0.0.1/32", "10.0.0.2/32"}},
		{"one unblocks", func() error { return rbd.unblock("ceph", []string{"10.0.0.1/32"}) }, []string{"10.0.0.2/32"}},
		{"what is not blocked", func() error { return cephfs.unblock("ceph", []string{"10.0.0.1/32"}) }, []string{"10.0.0.2/32"}},
		{"the last", func() error { return cephfs.unblock("ceph", []string{"10.0.0.2/32"}) }, nil},
	} {
		if err := step.do(); err != nil {
			t.Fatalf("%s: %v", step.name, err)
		}
		if got := read(t, file); !slices.Equal(got, step.want) {
			t.Errorf("%s: %v are blocked, want %v", step.name, got, step.want)
		}
	}
}

func read(t *testing.T, file string) []string {
	t.Helper()
	all, err := list(file).read()
	if err != nil {
		t.Fatal(err)
	}
	return all["ceph"]
}
