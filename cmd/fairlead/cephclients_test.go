package main

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"
)

// An init container copies the program into one whose image has rbd and ceph.
func TestCephClientsCopiesItself(t *testing.T) {
	to := filepath.Join(t.TempDir(), "fairlead")
	cmd := cephClientsCommand()
	cmd.SetArgs([]string{"--copy-to=" + to})
	if err := cmd.ExecuteContext(t.Context()); err != nil {
		t.Fatal(err)
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	want, _ := os.ReadFile(self)
	got, err := os.ReadFile(to)
	if err != nil || !bytes.Equal(got, want) {
		t.Errorf("%d bytes of %d, %v", len(got), len(want), err)
	}
	if info, err := os.Stat(to); err != nil || info.Mode()&0o111 == 0 {
		t.Errorf("%v, %v", info, err)
	}
}
