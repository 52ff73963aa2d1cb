package binaries

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"

	controlplane "github.com/fairlead-io/fairlead/e2e/controlplane"
	"github.com/fairlead-io/fairlead/e2e/controlplane/cachedir"
	"github.com/fairlead-io/fairlead/e2e/controlplane/progress"
)

// addon is what tests run beside the control plane. It is built from a module of its own in e2e, whose requirements
// the control plane does not share.
type addon struct {
	// name of the module's folder in e2e, and of the folder in the cache.
	name string
	// takes is how long a build takes on two cores.
	takes string
	// module that is the main requirement: its version names the folder in the cache.
	module string
	// sources are patterns of the files that decide what is built, go.mod first.
	sources []string
	// recipe is hashed with the sources. Another text builds the addon again: change it with the steps.
	recipe string
	steps  []step
}

// step of a build, in the order of the list.
type step struct {
	what string
	do   func(ctx context.Context, b addonBuild) error
}

var errNoAddon = errors.New("there is no such addon")

// EnsureAddon returns the folder of an addon, built unless it is in the cache.
func EnsureAddon(ctx context.Context, name string, report *progress.Reporter) (string, error) {
	i := slices.IndexFunc(addons, func(a addon) bool { return a.name == name })
	if i < 0 {
		return "", fmt.Errorf("%w: %q; coredns, csiaddons and longhorn are", errNoAddon, name)
	}
	a := addons[i]
	source, err := moduleSource()
	if err != nil {
		return "", err
	}
	source = filepath.Join(filepath.Dir(source), a.name)
	version, key, err := a.key(source, runtime.Version())
	if err != nil {
		return "", err
	}
	cache, err := cachedir.Base()
	if err != nil {
		return "", err
	}
	parent := filepath.Join(cache, a.name)
	target := filepath.Join(parent, key)
	if _, err := os.Stat(target); err == nil {
		return target, nil
	}
	unlock, err := cachedir.Lock(ctx, filepath.Join(parent, "lock"), func() {
		report.Printf("waiting for another build of %s", a.name)
	})
	if err != nil {
		return "", err
	}
	defer unlock()
	if _, err := os.Stat(target); err == nil {
		return target, nil // built by the previous holder of the lock
	}
	return target, a.build(ctx, source, target, version, report)
}

// key names the folder of an addon in the cache. The readable part is for people who clean up; the hash makes it exact.
func (a addon) key(source, goVersion string) (version, key string, err error) {
	hash := sha256.New()
	for _, pattern := range a.sources {
		files, err := filepath.Glob(filepath.Join(source, pattern))
		if err != nil {
			return "", "", fmt.Errorf("looking for the sources of %s: %w", a.name, err)
		}
		for _, file := range files {
			if strings.HasSuffix(file, "_test.go") {
				continue
			}
			content, err := os.ReadFile(file)
			if err != nil {
				return "", "", fmt.Errorf("reading the sources of %s: %w", a.name, err)
			}
			name, _ := filepath.Rel(source, file) // it is below source
			fmt.Fprintf(hash, "%s %d\n%s", name, len(content), content)
			if name == "go.mod" {
				version = controlplane.Requirements(string(content))[a.module]
			}
		}
	}
	if version == "" {
		return "", "", fmt.Errorf("%s requires no version of %s", filepath.Join(source, "go.mod"), a.module)
	}
	fmt.Fprint(hash, a.recipe)
	return version, cachedir.Name(version, goVersion, hex.EncodeToString(hash.Sum(nil))[:8]), nil
}

// build makes all of target. The folder appears complete or not at all.
func (a addon) build(ctx context.Context, source, target, version string, report *progress.Reporter) error {
	started := time.Now()
	parent := filepath.Dir(target)
	if err := removeLeftovers(parent); err != nil {
		return err
	}
	temporary, err := os.MkdirTemp(parent, temporaryPrefix) // in the cache, since a rename must stay on one disk
	if err != nil {
		return fmt.Errorf("making a folder to build in: %w", err)
	}
	defer os.RemoveAll(temporary)
	b := addonBuild{source: source, into: filepath.Join(temporary, "built"), temporary: temporary, version: version}
	if err := os.Mkdir(b.into, 0o755); err != nil {
		return fmt.Errorf("making a folder to build in: %w", err)
	}
	report.Printf("building %s %s into %s; this takes %s, once", a.name, version, target, a.takes)
	for i, s := range a.steps {
		if err := report.Do(i+1, len(a.steps), s.what, func() error { return s.do(ctx, b) }); err != nil {
			return fmt.Errorf("%s: %w", s.what, err)
		}
	}
	if err := os.Rename(b.into, target); err != nil {
		return fmt.Errorf("putting %s in place: %w", a.name, err)
	}
	report.Printf("%s complete after %s", a.name, progress.Elapsed(time.Since(started)))
	return nil
}
