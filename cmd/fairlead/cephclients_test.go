package main

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"github.com/fairlead-io/fairlead/internal/testkit/must"
)

// An init container copies the program into one whose image has rbd and ceph.
func TestCephClientsCopiesItself(t *testing.T) {
	to := filepath.Join(t.TempDir(), "fairlead")
	cmd := cephClientsCommand()
	cmd.SetArgs([]string{"--copy-to=" + to})
	must.Do(t, cmd.ExecuteContext(t.Context()))
	self, err := os.Executable()
	must.Do(t, err)
	want, _ := os.ReadFile(self)
	got, err := os.ReadFile(to)
	must.Check(t, err == nil && bytes.Equal(got, want), "%d bytes of %d, %v", len(got), len(want), err)
	if info, err := os.Stat(to); err != nil || info.Mode()&0o111 == 0 {
		t.Errorf("%v, %v", info, err)
	}
}
