package main

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
)

// module has longhorn-manager's main in its root.
const module = "github.com/longhorn/longhorn-manager"

// attacher has a module of its own: it needs another version of Kubernetes' libraries.
const (
	attacher       = "github.com/kubernetes-csi/external-attacher/v4/cmd/csi-attacher"
	attacherFolder = "attacher"
)

// locate names the folder that belongs to the sources here. The readable part of the
// name is for people who clean up. The hash covers all that decides what is built.
func locate() (dir, version string, err error) {
	base, err := cache()
	if err != nil {
		return "", "", err
	}
	names, err := sources()
	if err != nil {
		return "", "", err
	}
	hash := sha256.New()
	for _, name := range names {
		content, err := os.ReadFile(name)
		if err != nil {
			return "", "", fmt.Errorf("reading the sources (run this in e2e/longhorn): %w", err)
		}
		fmt.Fprintf(hash, "%s %d\n%s", name, len(content), content)
		if name == "go.mod" {
			version = required(string(content), module)
		}
	}
	if version == "" {
		return "", "", errors.New("go.mod requires no version of longhorn-manager")
	}
	// A Go version built with experiments reads "go1.26.0 X:name".
	goVersion := strings.NewReplacer(" ", "-", ":", "-").Replace(runtime.Version())
	key := fmt.Sprintf("%s-%s-%s-%s-%s", version, goVersion, runtime.GOOS, runtime.GOARCH, hex.EncodeToString(hash.Sum(nil))[:8])
	return filepath.Join(base, "longhorn", key), version, nil
}

// sources are the requirements, the stand-in for pods and the build itself.
func sources() ([]string, error) {
	names := []string{"go.mod", filepath.Join(attacherFolder, "go.mod")}
	for _, pattern := range []string{"instances/*.go", "ensure/*.go"} {
		matches, err := filepath.Glob(pattern)
		if err != nil {
			return nil, fmt.Errorf("looking for sources: %w", err)
		}
		names = append(names, matches...)
	}
	return slices.DeleteFunc(names, func(name string) bool { return strings.HasSuffix(name, "_test.go") }), nil
}

// required reads a version from a go.mod.
func required(goMod, module string) string {
	for line := range strings.Lines(goMod) {
		fields := strings.Fields(strings.TrimPrefix(line, "require "))
		if len(fields) >= 2 && fields[0] == module {
			return fields[1]
		}
	}
	return ""
}

// cache is the folder that also holds the control plane (e2e/controlplane/cachedir).
func cache() (string, error) {
	if dir := os.Getenv("FAIRLEAD_CACHE"); dir != "" {
		return filepath.Abs(dir)
	}
	if dir := os.Getenv("XDG_CACHE_HOME"); filepath.IsAbs(dir) {
		return filepath.Join(dir, "fairlead"), nil
	}
	home, err := os.UserHomeDir()
	if err != nil {
		return "", fmt.Errorf("finding the cache folder (set FAIRLEAD_CACHE to name one): %w", err)
	}
	return filepath.Join(home, ".cache", "fairlead"), nil
}
