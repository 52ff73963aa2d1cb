package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"time"
)

// interruptGrace is how long `go build` may take to remove its own temporary files.
const interruptGrace = 5 * time.Second

// reportEvery is short enough that no CI system takes the build for stuck.
const reportEvery = 15 * time.Second

// compile builds main packages of the module in a folder. Each program is named by the last part of its
// package's path.
func compile(ctx context.Context, folder, into, ldflags string, packages ...string) error {
	command := command(ctx, append([]string{"build", "-C", folder, "-v", "-trimpath", "-ldflags", ldflags, "-o", into + string(filepath.Separator)}, packages...)...)
	said, err := command.StderrPipe()
	if err != nil {
		return fmt.Errorf("go build: %w", err)
	}
	if err := command.Start(); err != nil {
		return fmt.Errorf("go build: %w", err)
	}
	var compiled atomic.Int64
	stop := report(&compiled)
	problems := countPackages(said, &compiled)
	err = command.Wait()
	stop()
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if err != nil {
		return fmt.Errorf("go build: %w\n%s", err, problems)
	}
	return nil
}

// countPackages counts the import paths that `go build -v` prints. All other lines
// explain a failure.
func countPackages(from io.Reader, compiled *atomic.Int64) string {
	var problems strings.Builder
	for lines := bufio.NewScanner(from); lines.Scan(); {
		if line := lines.Text(); strings.ContainsAny(line, " :") {
			fmt.Fprintln(&problems, line)
		} else {
			compiled.Add(1)
		}
	}
	return problems.String()
}

// report prints the progress until it is stopped.
func report(compiled *atomic.Int64) (stop func()) {
	began, done := time.Now(), make(chan struct{})
	go func() {
		for {
			select {
			case <-done:
				return
			case <-time.After(reportEvery):
				fmt.Fprintf(os.Stderr, "building longhorn-manager: %d packages compiled, %s\n", compiled.Load(), time.Since(began).Round(time.Second))
			}
		}
	}()
	return func() { close(done) }
}

// run has go do something, and returns what go prints on its standard output.
func run(ctx context.Context, args ...string) ([]byte, error) {
	output, err := command(ctx, args...).Output()
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	if exit := (*exec.ExitError)(nil); errors.As(err, &exit) {
		return nil, fmt.Errorf("go %s: %w\n%s", args[0], err, exit.Stderr)
	}
	if err != nil {
		return nil, fmt.Errorf("go %s: %w", args[0], err)
	}
	return output, nil
}

func command(ctx context.Context, args ...string) *exec.Cmd {
	command := exec.CommandContext(ctx, "go", args...)
	// A workspace around this module would change the versions that it pins.
	command.Env = append(os.Environ(), "GOWORK=off", "CGO_ENABLED=0")
	command.Cancel = func() error { return command.Process.Signal(os.Interrupt) }
	command.WaitDelay = interruptGrace
	return command
}
