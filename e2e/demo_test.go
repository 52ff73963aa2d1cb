package e2e

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"

	"github.com/fairlead-io/fairlead/e2e/typed"
	"github.com/fairlead-io/fairlead/internal/testkit/must"
)

// TestDemoIsAsRecorded runs make demo, and compares its steps and commands with the recording in the docs. What it prints
// between them depends on time. UPDATE=1 records it. It takes a minute, mostly waiting.
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
	if want, got := steps(wanted), steps(printed); !typed.Matches(want, got) {
		t.Errorf("docs/demo.txt shows\n%s\nthe demo has\n%s", want, got)
	}
}

// steps are the headings and commands of a recording.
func steps(recording []byte) string {
	return strings.Join(regexp.MustCompile(`(?m)^(==|\$) .*$`).FindAllString(string(recording), -1), "\n")
}
