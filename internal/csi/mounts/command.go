package mounts

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"time"
)

// killDelay is how long pipes stay open after a command was killed.
const killDelay = 3 * time.Second

// run runs a command, and kills it with all it has started when the context ends.
// mount(8) runs mount.nfs, which does the waiting. It returns once the command has
// ended. A command that the kernel keeps blocked also blocks the caller.
func run(ctx context.Context, name string, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, name, args...)
	var output bytes.Buffer
	cmd.Stdout, cmd.Stderr = &output, &output
	cmd.Env = append(os.Environ(), "LC_ALL=C")
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.WaitDelay = killDelay
	err := cmd.Run()
	text := strings.Join(strings.Fields(output.String()), " ")
	switch {
	case err == nil:
		return text, nil
	case ctx.Err() != nil:
		return "", fmt.Errorf("%s was killed: %w: %w %s", name, ErrTimeout, ctx.Err(), text)
	case errors.Is(err, exec.ErrNotFound):
		return "", fmt.Errorf("%w: the image needs mount, nfs-common and coreutils", err)
	}
	if kind := kindOf(text); kind != nil {
		return "", fmt.Errorf("%w: %s", kind, text)
	}
	return "", fmt.Errorf("%s: %w: %s", name, err, text)
}
