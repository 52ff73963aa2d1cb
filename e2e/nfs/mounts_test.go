package nfs

import (
	"os"
	"strings"
	"testing"

	"github.com/fairlead-io/fairlead/internal/csi/mounts"
	"github.com/fairlead-io/fairlead/internal/testkit/must"
)

// mountAt is the mount at a path; false: there is none.
func mountAt(t *testing.T, path string) (mounts.Mount, bool) {
	t.Helper()
	m, ok, err := mounts.At(&mounts.Host{}, path)
	must.Do(t, err)
	return m, ok
}

// unmounted fails the test if anything is left of a mount.
func unmounted(t *testing.T, path string) {
	t.Helper()
	if m, ok := mountAt(t, path); ok {
		t.Errorf("still mounted: %+v", m)
	}
	if _, err := os.Stat(path); !os.IsNotExist(err) {
		t.Errorf("the target is still there: %v", err)
	}
}

// mountedFrom is the server of a mount, and its read-ahead in KiB.
func mountedFrom(t *testing.T, path string) (server string, readAhead int) {
	t.Helper()
	m, ok := mountAt(t, path)
	if !ok {
		t.Fatalf("nothing is mounted at %s", path)
	}
	server, _, _ = strings.Cut(m.Source, ":")
	readAhead, err := (&mounts.Host{}).ReadAhead(m)
	if err != nil {
		t.Error(err)
	}
	return server, readAhead
}
