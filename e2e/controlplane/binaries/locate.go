package binaries

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"time"
)

// versionTimeout is generous for a program that only prints its version, and
// short enough not to be noticed when it does something else instead.
const versionTimeout = 3 * time.Second

// searchPath lists the folders in which programs may be found instead of being
// built. KUBEBUILDER_ASSETS is where envtest users keep theirs.
func searchPath(getenv func(string) string) []string {
	var folders []string
	if assets := getenv("KUBEBUILDER_ASSETS"); assets != "" {
		folders = append(folders, assets)
	}
	return append(folders, filepath.SplitList(getenv("PATH"))...)
}

// locate returns a program of an acceptable version from the folders.
func locate(ctx context.Context, component Component, folders []string) (path string, found bool) {
	if component.VersionArgs == nil {
		return "", false
	}
	for _, folder := range folders {
		// An empty or relative entry means the working folder, from which
		// nothing should be run by accident.
		if !filepath.IsAbs(folder) {
			continue
		}
		candidate := filepath.Join(folder, component.Name)
		info, err := os.Stat(candidate)
		if err != nil || !info.Mode().IsRegular() || info.Mode()&0o111 == 0 {
			continue
		}
		if accepts(ctx, component, candidate) {
			return candidate, true
		}
	}
	return "", false
}

func accepts(ctx context.Context, component Component, path string) bool {
	ctx, cancel := context.WithTimeout(ctx, versionTimeout)
	defer cancel()
	command := exec.CommandContext(ctx, path, component.VersionArgs...)
	// A child that keeps the pipe open must not keep us waiting.
	command.WaitDelay = time.Second
	output, err := command.CombinedOutput()
	if err != nil {
		return false
	}
	minor, err := minorOf(string(output))
	return err == nil && slices.Contains(component.Minors, minor)
}
