// Package cachedir is the folder where built binaries and manifests are kept,
// one folder per set of versions.
package cachedir

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"

	controlplane "github.com/fairlead-io/fairlead/e2e/controlplane"
)

// Cache is the folder of one set of versions.
type Cache struct {
	Root string
}

// Open names the cache of the wanted versions; it makes no folder yet.
func Open(goVersion string) (Cache, error) {
	base, err := Base()
	if err != nil {
		return Cache{}, err
	}
	key, err := Key(goVersion)
	if err != nil {
		return Cache{}, err
	}
	return Cache{Root: filepath.Join(base, "controlplane", key)}, nil
}

// Key names a set of versions. The readable part is for people who clean up;
// the fingerprint is what makes it exact.
func Key(goVersion string) (string, error) {
	versions, err := controlplane.WantedVersions()
	if err != nil {
		return "", err
	}
	fingerprint, err := controlplane.Fingerprint()
	if err != nil {
		return "", err
	}
	return Name(versions.Kubernetes, goVersion, fingerprint), nil
}

// Name of a folder in the cache, for this platform.
func Name(version, goVersion, hash string) string {
	// A Go version built with experiments reads "go1.26.0 X:name".
	goVersion = strings.NewReplacer(" ", "-", ":", "-").Replace(goVersion)
	return fmt.Sprintf("%s-%s-%s-%s-%s", version, goVersion, runtime.GOOS, runtime.GOARCH, hash)
}

// Base is the folder of all caches.
func Base() (string, error) {
	if dir := os.Getenv("FAIRLEAD_CACHE"); dir != "" {
		return filepath.Abs(dir)
	}
	// Not os.UserCacheDir: it differs between systems, and what is written in
	// the README should be true on all of them.
	if dir := os.Getenv("XDG_CACHE_HOME"); filepath.IsAbs(dir) {
		return filepath.Join(dir, "fairlead"), nil
	}
	home, err := os.UserHomeDir()
	if err != nil {
		return "", fmt.Errorf("finding the cache folder (set FAIRLEAD_CACHE to name one): %w", err)
	}
	return filepath.Join(home, ".cache", "fairlead"), nil
}

// Bin is where the binaries are.
func (c Cache) Bin() string { return filepath.Join(c.Root, "bin") }

// Binary is where one binary is.
func (c Cache) Binary(name string) string { return filepath.Join(c.Bin(), name) }

// Manifests is where the CRDs and the stages of simulated nodes are.
func (c Cache) Manifests() string { return filepath.Join(c.Root, "manifests") }

// KubernetesModule is the module that another Kubernetes than the pinned one is built in.
func (c Cache) KubernetesModule() string { return filepath.Join(c.Root, "kubernetes") }
