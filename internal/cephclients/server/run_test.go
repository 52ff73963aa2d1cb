package server

import (
	"context"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/fairlead-io/fairlead/internal/testkit/must"
)

// The test's own binary is the program that is run.
func TestMain(m *testing.M) {
	if len(os.Args) > 2 && os.Args[1] == "as-a-command" {
		switch os.Args[2] {
		case "say":
			os.Stdout.WriteString(strings.Join(os.Args[3:], "|"))
			os.Exit(0)
		case "fail":
			os.Stdout.WriteString("partly")
			os.Stderr.WriteString(strings.Repeat("x", 10*maxComplaint) + "\n")
			os.Exit(38)
		case "flood":
			os.Stdout.WriteString(strings.Repeat("x", 2*maxOutput))
			os.Exit(0)
		case "hang":
			select {}
		}
	}
	os.Exit(m.Run())
}

func TestCommandsRunWithoutAShellAndAreBounded(t *testing.T) {
	self, err := os.Executable()
	must.Do(t, err)
	output, err := Local(t.Context(), self, "as-a-command", "say", "$HOME; `id`", "--image=a b")
	must.Check(t, err == nil && string(output) == "$HOME; `id`|--image=a b", "got %q, %v", output, err)
	if output, err = Local(t.Context(), self, "as-a-command", "fail"); err == nil || output != nil || len(err.Error()) > 2*maxComplaint {
		t.Errorf("got %q, %v", output, err)
	}
	if output, err = Local(t.Context(), self, "as-a-command", "flood"); err != nil || len(output) != maxOutput {
		t.Errorf("got %d bytes, %v", len(output), err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	started := time.Now()
	if _, err = Local(ctx, self, "as-a-command", "hang"); err == nil || time.Since(started) > 4*time.Second {
		t.Errorf("got %v after %v", err, time.Since(started))
	}
	if _, err = Local(t.Context(), "there-is-no-such-program"); err == nil {
		t.Error("no error")
	}
}
