package beside

import (
	"os"
	"testing"
	"time"

	"github.com/fairlead-io/fairlead/e2e/sandbox"
)

func TestManagerRunsBesideFairlead(t *testing.T) {
	began := time.Now()
	ctx := t.Context()
	c, err := Start(ctx, Options{Dir: testDir(t), Fairlead: os.Getenv("FAIRLEAD_BINARY"), Out: os.Stderr})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Stop()
	defer hold(t, c)
	lap := func(what string, err error) {
		if err != nil {
			t.Fatalf("%s: %v\n%s", what, err, c.Describe(ctx))
		}
		t.Logf("%s after %s", what, time.Since(began))
	}
	lap("started", nil)
	lap("install", c.Install(ctx, sandbox.CertManager))
	lap("run", c.RunFairlead(ctx, 1, 1))
	lap("create", c.CreateVolume(ctx, "pvc-1", "rwx"))
	lap("attach", c.Attach(ctx, "pvc-1", "csi-1"))
	lap("attached", c.WaitVolume(ctx, "pvc-1", "attached"))
	lap("served", c.WaitServed(ctx, "pvc-1"))
	t.Log(c.Describe(ctx))
	lap("detach", c.Detach(ctx, "pvc-1", "csi-1"))
	lap("detached", c.WaitVolume(ctx, "pvc-1", "detached"))
	lap("restarted", c.Manager.Restart(ctx))
	lap("delete", c.DeleteVolume(ctx, "pvc-1"))
	writes, err := c.ReadWrites()
	lap("writes", err)
	for _, w := range writes {
		t.Log(w)
	}
}

func testDir(t *testing.T) string {
	if d := os.Getenv("BESIDE_DIR"); d != "" {
		return d
	}
	return t.TempDir()
}
