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
	"strings"
	"syscall"
	"time"

	controlplane "github.com/fairlead-io/fairlead/e2e/controlplane"
)

// Cache is the folder of what a set builds, with one set of versions.
type Cache struct{ Root string }

// Binary is the path of a program of the control plane.
func (c Cache) Binary(name string) string { return filepath.Join(c.Root, "bin", name) }

// Manifests is the path of the CRDs and of the stages of simulated nodes.
func (c Cache) Manifests() string { return filepath.Join(c.Root, manifestsFolder) }

const manifestsFolder = "manifests"

// base is the folder of all caches.
func base() (string, error) {
	if dir := os.Getenv("FAIRLEAD_CACHE"); dir != "" {
		return filepath.Abs(dir)
	}
	// os.UserCacheDir differs between systems; the README names one place.
	if dir := os.Getenv("XDG_CACHE_HOME"); filepath.IsAbs(dir) {
		return filepath.Join(dir, "fairlead"), nil
	}
	home, err := os.UserHomeDir()
	if err != nil {
		return "", fmt.Errorf("finding the cache folder (set FAIRLEAD_CACHE to name one): %w", err)
	}
	return filepath.Join(home, ".cache", "fairlead"), nil
}

// folderName names a set of versions. The readable part is for people who clean up; the hash makes it exact.
func folderName(version, goVersion, hash string) string {
	// A Go version built with experiments reads "go1.26.0 X:name".
	goVersion = strings.NewReplacer(" ", "-", ":", "-").Replace(goVersion)
	return fmt.Sprintf("%s-%s-%s-%s-%s", version, goVersion, runtime.GOOS, runtime.GOARCH, hash)
}

// pinned is the version that the module of an addon requires.
func (s set) pinned(b building) (string, error) {
	path := filepath.Join(b.source, b.goMod)
	content, err := os.ReadFile(path)
	if err != nil {
		return "", fmt.Errorf("reading the sources of %s: %w", s.name, err)
	}
	version := controlplane.Requirements(string(content))[s.module]
	if version == "" {
		return "", fmt.Errorf("%s requires no version of %s", path, s.module)
	}
	return version, nil
}

// key names the folder of an addon: the hash is over its sources and recipe.
func (s set) key(b building, goVersion string) (key string, err error) {
	hash := sha256.New()
	for _, pattern := range s.sources {
		if pattern == "go.mod" {
			pattern = b.goMod
		}
		files, err := filepath.Glob(filepath.Join(b.source, pattern))
		if err != nil {
			return "", fmt.Errorf("looking for the sources of %s: %w", s.name, err)
		}
		for _, file := range files {
			if strings.HasSuffix(file, "_test.go") {
				continue
			}
			content, err := os.ReadFile(file)
			if err != nil {
				return "", fmt.Errorf("reading the sources of %s: %w", s.name, err)
			}
			name, _ := filepath.Rel(b.source, file) // it is below source
			fmt.Fprintf(hash, "%s %d\n%s", name, len(content), content)
		}
	}
	fmt.Fprint(hash, s.recipe)
	return folderName(b.version, goVersion, hex.EncodeToString(hash.Sum(nil))[:8]), nil
}

// lock takes the lock file at path, and waits for it; waiting is called once if that takes a while. The kernel releases
// the lock when the process ends.
func lock(ctx context.Context, path string, waiting func()) (unlock func(), err error) {
	file, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o644)
	if err != nil {
		return nil, fmt.Errorf("opening lock %s: %w", path, err)
	}
	for attempt := 0; ; attempt++ {
		err := syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
		if err == nil {
			return func() { _ = file.Close() }, nil
		}
		if !errors.Is(err, syscall.EWOULDBLOCK) {
			return nil, errors.Join(fmt.Errorf("taking lock %s: %w", path, err), file.Close())
		}
		if attempt == 0 {
			waiting()
		}
		select {
		case <-ctx.Done():
			return nil, errors.Join(fmt.Errorf("waiting for lock %s: %w", path, context.Cause(ctx)), file.Close())
		case <-time.After(200 * time.Millisecond):
		}
	}
}
