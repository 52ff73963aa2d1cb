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

	"github.com/fairlead-io/fairlead/internal/testkit/must"
)

// The ground that the other tests stand on: a mount by mount(8) moves real bytes, and a
// server that is killed and comes back is no end of it.
func TestMountSurvivesServerThatRestarts(t *testing.T) {
	c, ctx := shared(t), t.Context()
	server, err := c.StartServer(ctx, ServerAddress(40))
	must.Do(t, err)
	target := filepath.Join(c.Dir, "mnt")
	must.Do(t, os.MkdirAll(target, 0o755))
	if out, err := exec.CommandContext(ctx, "mount", "-t", "nfs", "-o", "vers=3,timeo=20", ServerAddress(40).String()+":"+Export, target).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	t.Cleanup(func() { _ = exec.Command("umount", "-l", target).Run() })
	file, err := os.Create(filepath.Join(target, "file"))
	must.Do(t, err)
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
			must.Do(t, server.Kill())
			must.Do(t, server.Start(ctx))
		}
	}
	must.Do(t, file.Close())
	whole, err := os.Open(filepath.Join(c.Share, "file"))
	must.Do(t, err)
	defer whole.Close()
	written := sha256.New()
	if _, err := io.Copy(written, whole); err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(hash.Sum(nil), written.Sum(nil)) {
		t.Error("what the server has differs from what was written")
	}
}
