package nfs

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/fairlead-io/fairlead/internal/testkit/must"
)

// The other tests rely on it: mount(8) mounts real shares, and a mount survives a server that restarts.
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
	hash, _, err := write(filepath.Join(target, "file"), 20, func() error { return errors.Join(server.Kill(), server.Start(ctx)) })
	must.Do(t, err)
	must.Do(t, sameFile(filepath.Join(c.Share, "file"), hash))
}
