package docs

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/fairlead-io/fairlead/internal/testkit/must"
)

// The page promises the exit code of a drill, whatever node could not be fenced.
func TestDrillOfAllNodesKeepsExitCode(t *testing.T) {
	page, err := os.ReadFile("fencing-setup.md")
	must.Do(t, err)
	var loop string
	for line := range strings.Lines(string(page)) {
		if strings.Contains(line, "kubectl get nodes") && strings.Contains(line, "fences drill") {
			loop = line
		}
	}
	stubs := t.TempDir()
	for name, script := range map[string]string{
		"kubectl":  "printf 'node/node-1\\nnode/node-2\\nnode/node-3\\n'",
		"fairlead": `echo "$3"; [ "$3" != "$UNFENCEABLE" ] || exit 2`,
	} {
		must.Do(t, os.WriteFile(filepath.Join(stubs, name), []byte("#!/bin/sh\n"+script+"\n"), 0o755))
	}
	for unfenceable, want := range map[string]int{"": 0, "node-1": 2, "node-3": 2} {
		command := exec.CommandContext(t.Context(), "sh", "-c", loop)
		command.Env = append(os.Environ(), "PATH="+stubs+":"+os.Getenv("PATH"), "UNFENCEABLE="+unfenceable)
		out, err := command.Output()
		code := 0
		var exit *exec.ExitError
		if errors.As(err, &exit) {
			code = exit.ExitCode()
		} else {
			must.Do(t, err)
		}
		must.Equal(t, code, want, "%q", unfenceable)
		must.Equal(t, string(out), "node-1\nnode-2\nnode-3\n", "%q", unfenceable)
	}
}
