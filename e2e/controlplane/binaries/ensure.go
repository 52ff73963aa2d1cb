// Package binaries builds the programs of a control plane, and those that tests run beside it, into a cache.
package binaries

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"time"

	controlplane "github.com/fairlead-io/fairlead/e2e/controlplane"
	"github.com/fairlead-io/fairlead/e2e/controlplane/manifests"
	"github.com/fairlead-io/fairlead/e2e/controlplane/progress"
)

// set is what is built together into one folder of the cache: the control plane, or an addon, whose module in e2e has
// requirements that the control plane does not share.
type set struct {
	// name of the set; an addon's is that of its module's folder in e2e, unless folder is another.
	name, folder string
	// takes is how long a build takes on two cores.
	takes string
	// module that is an addon's main requirement: its version names the folder in the cache.
	module string
	// sources are patterns of the files that decide what an addon is, go.mod first.
	sources []string
	// recipe is hashed with the sources. Another text builds the addon again: change it with the steps.
	recipe string
	steps  []step
}

// step of a build. What it makes appears complete or not at all.
type step struct {
	what  string
	makes []string
	do    func(ctx context.Context, b building) error
}

// building is where a step builds.
type building struct {
	// source is the set's module, cache its folder in the cache. What is built into the folder into is moved to cache;
	// temporary is removed after the step.
	source, cache, into, temporary string
	version                        string
	// goMod is the go.mod file of the module in source; empty is go.mod.
	goMod  string
	report *progress.Reporter
	// checkout of the set's main requirement, to build in; empty: Go's module cache has it.
	checkout string
}

// ControlPlane returns the cache of the control plane's programs and manifests. What is missing is built.
func ControlPlane(ctx context.Context, report *progress.Reporter) (Cache, error) {
	versions, err := controlplane.WantedVersions()
	if err != nil {
		return Cache{}, err
	}
	hash, err := controlplane.Fingerprint()
	if err != nil {
		return Cache{}, err
	}
	s, err := controlPlane(versions)
	if err != nil {
		return Cache{}, err
	}
	folder, err := s.ensure(ctx, building{version: versions.Kubernetes}, folderName(versions.Kubernetes, runtime.Version(), hash), report)
	return Cache{folder}, err
}

// Addon returns the folder of an addon. What is missing is built. A name like longhorn@v1.8.1 is that of another version of the
// main requirement, for which there is a file v1.8.1.mod beside go.mod, or for Longhorn a checkout.
func Addon(ctx context.Context, name string, report *progress.Reporter) (string, error) {
	name, version, _ := strings.Cut(name, "@")
	i := slices.IndexFunc(addons, func(s set) bool { return s.name == name })
	if i < 0 {
		var names []string
		for _, addon := range addons {
			names = append(names, addon.name)
		}
		return "", fmt.Errorf("there is no addon %q; there are %s", name, strings.Join(names, ", "))
	}
	s := addons[i]
	source, err := moduleSource()
	if err != nil {
		return "", err
	}
	b := building{source: filepath.Join(filepath.Dir(source), cmp.Or(s.folder, name)), goMod: "go.mod"}
	if b.version, err = s.pinned(b); err != nil {
		return "", err
	}
	if checkout := os.Getenv(LonghornSourceVariable); version != "" && checkout != "" && s.module == longhornModule {
		return s.fromCheckout(ctx, b, version, checkout, report)
	}
	if version != "" && version != b.version {
		b.goMod, b.version = version+".mod", version
		if got, err := s.pinned(b); err != nil || got != version {
			return "", fmt.Errorf("%s does not build %s: there is no %s for it; a checkout of its source can be named by %s=FOLDER", s.name, version, filepath.Join(b.source, b.goMod), LonghornSourceVariable)
		}
	}
	key, err := s.key(b, runtime.Version())
	if err != nil {
		return "", err
	}
	return s.ensure(ctx, b, key, report)
}

// fromCheckout builds in a checkout, each time: Go's build cache knows what has changed.
func (s set) fromCheckout(ctx context.Context, b building, version, checkout string, report *progress.Reporter) (string, error) {
	for _, needed := range []string{"go.mod", "vendor/modules.txt"} {
		if _, err := os.Stat(filepath.Join(checkout, needed)); err != nil {
			return "", fmt.Errorf("%s=%s is not a checkout of longhorn-manager with its vendor folder: %w", LonghornSourceVariable, checkout, err)
		}
	}
	root, err := base()
	if err != nil {
		return "", err
	}
	if b.checkout, err = filepath.Abs(checkout); err != nil {
		return "", err
	}
	b.version = version
	key := version + "-checkout"
	for _, made := range s.steps[0].makes {
		if err := os.RemoveAll(filepath.Join(root, s.name, key, made)); err != nil {
			return "", err
		}
	}
	return s.ensure(ctx, b, key, report)
}

// ensure makes a folder of the cache complete. If it is complete, nothing is said and nothing is run.
func (s set) ensure(ctx context.Context, b building, key string, report *progress.Reporter) (string, error) {
	root, err := base()
	if err != nil {
		return "", err
	}
	folder := filepath.Join(root, s.name, key)
	if len(s.missing(folder)) == 0 {
		return folder, nil
	}
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return "", fmt.Errorf("making the cache folder: %w", err)
	}
	unlock, err := lock(ctx, filepath.Join(folder, "lock"), func() { report.Printf("waiting for another build into %s", folder) })
	if err != nil {
		return "", err
	}
	defer unlock()
	missing := s.missing(folder)
	if len(missing) == 0 {
		return folder, nil // built by the previous holder of the lock
	}
	if b.source == "" {
		if b.source, err = moduleSource(); err != nil {
			return "", err
		}
	}
	started := time.Now()
	report.Printf("building %s %s into %s; this takes %s, once", s.name, b.version, folder, s.takes)
	b.cache, b.report = folder, report
	for i, step := range missing {
		if err := report.Do(i+1, len(missing), step.what, func() error { return step.run(ctx, b) }); err != nil {
			return "", fmt.Errorf("%s: %w", step.what, err)
		}
	}
	report.Printf("%s complete after %s", s.name, progress.Elapsed(started))
	return folder, nil
}

func (s set) missing(folder string) []step {
	return slices.DeleteFunc(slices.Clone(s.steps), func(step step) bool {
		return !slices.ContainsFunc(step.makes, func(name string) bool {
			_, err := os.Stat(filepath.Join(folder, name))
			return err != nil
		})
	})
}

// run a step in a temporary folder of the cache: a rename must stay on one disk.
func (s step) run(ctx context.Context, b building) error {
	leftovers, _ := filepath.Glob(filepath.Join(b.cache, ".building-*")) // of a build that was killed
	for _, leftover := range leftovers {
		if err := os.RemoveAll(leftover); err != nil {
			return err
		}
	}
	var err error
	if b.temporary, err = os.MkdirTemp(b.cache, ".building-"); err != nil {
		return fmt.Errorf("making a folder to build in: %w", err)
	}
	defer os.RemoveAll(b.temporary)
	b.into = filepath.Join(b.temporary, "built")
	if err := os.MkdirAll(b.into, 0o755); err != nil {
		return err
	}
	if err := s.do(ctx, b); err != nil {
		return err
	}
	for _, name := range s.makes {
		to := filepath.Join(b.cache, name)
		err := errors.Join(os.RemoveAll(to), os.MkdirAll(filepath.Dir(to), 0o755), os.Rename(filepath.Join(b.into, name), to))
		if err != nil {
			return fmt.Errorf("putting %s in place: %w", name, err)
		}
	}
	return nil
}

// compile builds main packages of the module in a folder into a folder of the cache, without symbol tables: stack traces
// don't need them. Each program is named by the last part of its package's path.
func (b building) compile(ctx context.Context, folder, to, ldflags string, packages ...string) error {
	args := []string{"build", "-trimpath", "-ldflags", "-s -w " + ldflags, "-o", filepath.Join(b.into, to) + string(filepath.Separator)}
	if folder == "." {
		args = append(args, b.modfile()...)
	}
	return runGo(ctx, filepath.Join(b.source, folder), append(args, packages...)...)
}

// modfile is the flag that names another file than go.mod.
func (b building) modfile() []string {
	if b.checkout != "" || b.goMod == "" || b.goMod == "go.mod" {
		return nil
	}
	return []string{"-modfile=" + b.goMod}
}

// moduleFolder is where the sources of a required module are.
func (b building) moduleFolder(ctx context.Context, module string) (string, error) {
	if b.checkout != "" && module == longhornModule {
		return b.checkout, nil
	}
	return manifests.DownloadedFolder(ctx, module, b.source, b.modfile()...)
}

// copyFromModule copies a file or folder of a required module.
func (b building) copyFromModule(ctx context.Context, module, from, to string) error {
	folder, err := b.moduleFolder(ctx, module)
	if err != nil {
		return err
	}
	from, to = filepath.Join(folder, from), filepath.Join(b.into, to)
	info, err := os.Stat(from)
	if err != nil {
		return err
	}
	if info.IsDir() {
		return os.CopyFS(to, os.DirFS(from))
	}
	content, err := os.ReadFile(from)
	if err != nil {
		return err
	}
	return os.WriteFile(to, content, 0o644)
}

// interruptGrace is how long `go build` may take to remove its own temporary files after it was interrupted.
const interruptGrace = 5 * time.Second

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
