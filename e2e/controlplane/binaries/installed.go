package binaries

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"time"
)

// versionTimeout is for a program that only prints its version.
const versionTimeout = 3 * time.Second

// searchPath lists the folders in which programs may be found instead of being
// built. KUBEBUILDER_ASSETS is where envtest users keep theirs.
func searchPath(getenv func(string) string) []string {
	return append(filepath.SplitList(getenv("KUBEBUILDER_ASSETS")), filepath.SplitList(getenv("PATH"))...)
}

// versionArgs print the version of a program. Programs that are not listed are always built.
var versionArgs = map[string][]string{
	Etcd: {"--version"}, APIServer: {"--version"}, ControllerManager: {"--version"}, Scheduler: {"--version"}, Kubectl: {"version", "--client"},
}

// minorVersion finds the first version in a text.
var minorVersion = regexp.MustCompile(`[0-9]+\.[0-9]+\.`)

// installed returns the first program in the folders that has the minor version.
func installed(ctx context.Context, name, version string, folders []string) (path string, found bool) {
	args, known := versionArgs[name]
	if !known {
		return "", false
	}
	for _, folder := range folders {
		path := filepath.Join(folder, name)
		if !filepath.IsAbs(path) { // nothing is run from the working folder by accident
			continue
		}
		ctx, cancel := context.WithTimeout(ctx, versionTimeout)
		command := exec.CommandContext(ctx, path, args...)
		command.WaitDelay = time.Second
		output, err := command.CombinedOutput()
		cancel()
		if minor := minorVersion.FindString(string(output)); err == nil && minor != "" && minor == minorVersion.FindString(version) {
			return path, true
		}
	}
	return "", false
}

// link puts a link to a program into the folder of the cache. If the program is removed, it is built.
func (b building) link(path, to string) error {
	to = filepath.Join(b.into, to)
	if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
		return err
	}
	return os.Symlink(path, to)
}
