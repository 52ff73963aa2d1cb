package nfs

import (
	"bytes"
	"crypto/rand"
	"crypto/sha256"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// The ground that the other tests stand on: a mount by mount(8) moves real bytes, and a
// server that is killed and comes back is no end of it.
func TestMountSurvivesServerThatRestarts(t *testing.T) {
	c, ctx := shared(t), t.Context()
	server, err := c.StartServer(ctx, ServerAddress(40))
	if err != nil {
		t.Fatal(err)
	}
	target := filepath.Join(c.Dir, "mnt")
	if err := os.MkdirAll(target, 0o755); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.CommandContext(ctx, "mount", "-t", "nfs", "-o", "vers=3,timeo=20", ServerAddress(40).String()+":"+Export, target).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	t.Cleanup(func() { _ = exec.Command("umount", "-l", target).Run() })
	file, err := os.Create(filepath.Join(target, "file"))
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	hash, block := sha256.New(), make([]byte, 1<<20)
	for i := range 20 {
		if _, err := rand.Read(block); err != nil {
			t.Fatal(err)
		}
		hash.Write(block)
		if _, err := file.Write(block); err != nil {
			t.Fatal(err)
		}
		if i == 10 {
			if err := server.Kill(); err != nil {
				t.Fatal(err)
			}
			if err := server.Start(ctx); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := file.Close(); err != nil {
		t.Fatal(err)
	}
	whole, err := os.Open(filepath.Join(c.Share, "file"))
	if err != nil {
		t.Fatal(err)
	}
	defer whole.Close()
	written := sha256.New()
	if _, err := io.Copy(written, whole); err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(hash.Sum(nil), written.Sum(nil)) {
		t.Error("what the server has differs from what was written")
	}
}
