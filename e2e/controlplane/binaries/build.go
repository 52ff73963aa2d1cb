package binaries

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"
)

// interruptGrace is how long `go build` may take to remove its own temporary
// files after it was interrupted.
const interruptGrace = 5 * time.Second

// build compiles one component and puts it at target. The target appears
// complete or not at all.
func build(ctx context.Context, source string, component Component, target string) error {
	temporary := temporaryName(target)
	defer os.Remove(temporary)

	args := []string{"build", "-trimpath", "-ldflags", linkerFlags(component), "-o", temporary}
	if component.OwnModule {
		args = append(args, "-mod=mod") // The module has no go.sum yet.
	}
	if err := runGo(ctx, source, append(args, component.Package)...); err != nil {
		return err
	}
	if err := os.Rename(temporary, target); err != nil {
		return fmt.Errorf("putting %s in place: %w", component.Name, err)
	}
	return nil
}

// runGo runs a command of Go's in the folder of a module.
func runGo(ctx context.Context, folder string, args ...string) error {
	command := exec.CommandContext(ctx, "go", args...)
	command.Dir = folder
	// A workspace around a module would change the versions it is pinned to. Without cgo, all programs share one build cache.
	command.Env = append(os.Environ(), "GOWORK=off", "CGO_ENABLED=0")
	// A group of its own, so that Ctrl-C reaches the compiler once, through us.
	command.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	command.Cancel = func() error { return syscall.Kill(-command.Process.Pid, syscall.SIGINT) }
	command.WaitDelay = interruptGrace
	output, err := command.CombinedOutput()
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if err != nil {
		return fmt.Errorf("go %s %s: %w\n%s", args[0], args[len(args)-1], err, output)
	}
	return nil
}

// linkerFlags leaves out symbol tables, which halves what is written to disk;
// stack traces don't need them.
func linkerFlags(component Component) string {
	flags := []string{"-s", "-w"}
	for name, value := range component.Variables {
		flags = append(flags, "-X="+name+"="+value)
	}
	slices.Sort(flags[2:])
	return strings.Join(flags, " ")
}

const temporaryPrefix = ".building-"

// temporaryName is next to the target, since a rename must stay on one disk.
func temporaryName(target string) string {
	return filepath.Join(filepath.Dir(target), temporaryPrefix+filepath.Base(target))
}

// removeLeftovers removes what a build that was killed has left. It may be
// called only by the holder of the cache's lock.
func removeLeftovers(folder string) error {
	leftovers, err := filepath.Glob(filepath.Join(folder, temporaryPrefix+"*"))
	if err != nil {
		return fmt.Errorf("looking for leftovers in %s: %w", folder, err)
	}
	for _, leftover := range leftovers {
		if err := os.RemoveAll(leftover); err != nil {
			return fmt.Errorf("removing leftover %s: %w", leftover, err)
		}
	}
	return nil
}
