package e2e

import (
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/fairlead-io/fairlead/e2e/typed"
	"github.com/fairlead-io/fairlead/internal/testkit/must"
)

// TestDemoIsAsRecorded compares what make demo prints with the recording in the docs. UPDATE=1 records it. It takes a
// minute, mostly waiting.
func TestDemoIsAsRecorded(t *testing.T) {
	t.Parallel()
	const recorded = "../docs/demo.txt"
	recording := filepath.Join(t.TempDir(), "demo.txt")
	demo := exec.CommandContext(t.Context(), absolute(t, "FAIRLEAD_DEV"), "demo")
	demo.Dir = ".."
	demo.Env = append(os.Environ(), "RECORD="+recording, "KUBECONFIG=", "FAIRLEAD_BINARY="+absolute(t, "FAIRLEAD_BINARY"))
	demo.Cancel = func() error { return demo.Process.Signal(syscall.SIGTERM) } // ends what it has started
	if out, err := demo.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	printed, err := os.ReadFile(recording)
	must.Do(t, err)
	if os.Getenv("UPDATE") != "" {
		must.Do(t, os.WriteFile(recorded, printed, 0o644))
	}
	wanted, err := os.ReadFile(recorded)
	must.Do(t, err)
	if !typed.Matches(string(wanted), string(printed)) {
		t.Errorf("docs/demo.txt shows\n%s\nprinted:\n%s", wanted, printed)
	}
}
