//go:build linux

package nodes

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

const cgroupFolder = "/sys/fs/cgroup"

// allCgroups is the parent of the clusters' cgroups, which are the parents of their nodes' cgroups.
const allCgroups = "fairlead-nodes"

// makeCgroup makes a cgroup in each hierarchy of cgroup v1.
func makeCgroup(path string) error {
	hierarchies, err := filepath.Glob(filepath.Join(cgroupFolder, "*", "cgroup.procs"))
	if err != nil {
		return err
	}
	for _, procs := range hierarchies {
		folder := filepath.Join(filepath.Dir(procs), path)
		if err := os.MkdirAll(folder, 0o755); err != nil {
			return err
		}
		if err := seedCPUSet(filepath.Dir(procs), path); err != nil {
			return err
		}
	}
	return nil
}

// seedCPUSet gives a new cgroup of the hierarchy cpuset its parent's CPUs and memory: without them, it takes no process.
func seedCPUSet(hierarchy, path string) error {
	for _, file := range []string{"cpuset.cpus", "cpuset.mems"} {
		value, err := os.ReadFile(filepath.Join(hierarchy, file))
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err != nil {
			return err
		}
		at := hierarchy
		for part := range strings.SplitSeq(path, "/") {
			at = filepath.Join(at, part)
			if err := os.WriteFile(filepath.Join(at, file), value, 0o644); err != nil {
				return err
			}
		}
	}
	return nil
}

// removeCgroups removes a cgroup and all cgroups in it. None has a process any more.
func removeCgroups(path string) error {
	tops, err := filepath.Glob(filepath.Join(cgroupFolder, "*", path))
	if err != nil {
		return err
	}
	var problems []error
	for _, top := range tops {
		var folders []string
		err := filepath.WalkDir(top, func(path string, entry fs.DirEntry, err error) error {
			if err == nil && entry.IsDir() {
				folders = append(folders, path)
			}
			return err
		})
		problems = append(problems, err)
		for _, folder := range slices.Backward(folders) {
			problems = append(problems, os.Remove(folder))
		}
	}
	return errors.Join(problems...)
}
