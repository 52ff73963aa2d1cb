package binaries

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"

	controlplane "github.com/fairlead-io/fairlead/e2e/controlplane"
)

// SourceVariable names the environment variable that says where this module's
// source is, for a binary that was moved far away from it.
const SourceVariable = "FAIRLEAD_CONTROLPLANE_SOURCE"

// moduleSource finds the folder of this module, which a build needs. It is
// looked for where one would expect it: named by the environment, where this
// program was compiled, and around the working folder and the program.
func moduleSource() (string, error) {
	if folder := os.Getenv(SourceVariable); folder != "" {
		if !isModuleSource(folder) {
			return "", fmt.Errorf("%s=%s is not the folder of module %s", SourceVariable, folder, controlplane.ModulePath)
		}
		return folder, nil
	}
	var starts []string
	if _, file, _, ok := runtime.Caller(0); ok && filepath.IsAbs(file) {
		starts = append(starts, filepath.Dir(file))
	}
	if folder, err := os.Getwd(); err == nil {
		starts = append(starts, folder)
	}
	if program, err := os.Executable(); err == nil {
		starts = append(starts, filepath.Dir(program))
	}
	for _, start := range starts {
		if folder, found := searchUpwards(start); found {
			return folder, nil
		}
	}
	return "", errors.New("something must be built and the source of the control plane was not found: " +
		"run this inside the repository, or set " + SourceVariable)
}

func searchUpwards(folder string) (string, bool) {
	for {
		for _, candidate := range []string{folder, filepath.Join(folder, "e2e", "controlplane")} {
			if isModuleSource(candidate) {
				return candidate, true
			}
		}
		parent := filepath.Dir(folder)
		if parent == folder {
			return "", false
		}
		folder = parent
	}
}

func isModuleSource(folder string) bool {
	content, err := os.ReadFile(filepath.Join(folder, "go.mod"))
	return err == nil && bytes.HasPrefix(content, []byte("module "+controlplane.ModulePath+"\n"))
}
