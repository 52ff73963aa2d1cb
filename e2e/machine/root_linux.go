package machine

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
)

// programs is a folder that the real machine does not have.
const programs = "/fairlead-machine/programs"

// additions has what is laid over folders of the real machine.
const additions = "/fairlead-machine/additions"

// makeRoot makes the root folder of this process' mount namespace: a folder in memory
// with the real one's entries in it.
func makeRoot(spec Spec, root string) error {
	// Or mounts made here would appear in the real machine.
	if err := mount("", "/", "", syscall.MS_REC|syscall.MS_PRIVATE); err != nil {
		return err
	}
	if err := mount("tmpfs", root, "tmpfs", 0); err != nil {
		return err
	}
	if err := bindEntries(root); err != nil {
		return err
	}
	steps := []func(Spec, string) error{mountProc, makeFolders, writeFiles, writeHosts, bindFolders, addFiles}
	for _, step := range steps {
		if err := step(spec, root); err != nil {
			return err
		}
	}
	return enter(root)
}

// bindEntries shows what the real root has, but for the processes of the real machine.
func bindEntries(root string) error {
	entries, err := os.ReadDir("/")
	if err != nil {
		return err
	}
	for _, entry := range entries {
		from, to := "/"+entry.Name(), filepath.Join(root, entry.Name())
		switch {
		case entry.Name() == "proc":
		case entry.Type()&os.ModeSymlink != 0:
			target, err := os.Readlink(from)
			if err != nil {
				return err
			}
			if err := os.Symlink(target, to); err != nil {
				return err
			}
		case entry.IsDir():
			if err := os.Mkdir(to, 0o755); err != nil {
				return err
			}
			if err := mount(from, to, "", syscall.MS_BIND|syscall.MS_REC); err != nil {
				return err
			}
		}
	}
	// A copy of the new root came along with the folder that it is in.
	if err := syscall.Unmount(filepath.Join(root, root), syscall.MNT_DETACH); err != nil && !errors.Is(err, syscall.EINVAL) {
		return fmt.Errorf("unmounting %s in itself: %w", root, err)
	}
	return nil
}

func mountProc(_ Spec, root string) error {
	proc := filepath.Join(root, "proc")
	if err := os.Mkdir(proc, 0o555); err != nil {
		return err
	}
	return mount("proc", proc, "proc", 0)
}

func makeFolders(spec Spec, root string) error {
	for _, folder := range spec.Folders {
		at := filepath.Join(root, folder)
		if err := mount("tmpfs", at, "tmpfs", 0); err != nil {
			return err
		}
	}
	return nil
}

func writeFiles(spec Spec, root string) error {
	files := slices.Clone(spec.Files)
	for _, program := range spec.Programs {
		files = append(files, File{Path: filepath.Join(programs, program.Path), Text: program.Text, Program: true})
	}
	for _, file := range files {
		if err := owned(spec, file.Path); err != nil {
			return err
		}
		mode := os.FileMode(0o644)
		if file.Program {
			mode = 0o755
		}
		at := filepath.Join(root, file.Path)
		if err := os.MkdirAll(filepath.Dir(at), 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(at, []byte(file.Text), mode); err != nil {
			return err
		}
	}
	return nil
}

// owned refuses a path that would be written to the real machine's disk.
func owned(spec Spec, path string) error {
	for _, folder := range spec.Folders {
		if strings.HasPrefix(path, folder+"/") {
			return nil
		}
	}
	top, _, _ := strings.Cut(strings.TrimPrefix(path, "/"), "/")
	if _, err := os.Lstat("/" + top); err == nil {
		return fmt.Errorf("%s is in a folder of the real machine", path)
	}
	return nil
}

func writeHosts(spec Spec, root string) error {
	text := "127.0.0.1 localhost\n"
	for _, name := range slices.Sorted(maps.Keys(spec.Hosts)) {
		text += fmt.Sprintf("%s %s\n", spec.Hosts[name], name)
	}
	file := filepath.Join(root, filepath.Dir(programs), "hosts")
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		return err
	}
	if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
		return err
	}
	return mount(file, filepath.Join(root, "etc", "hosts"), "", syscall.MS_BIND)
}

func bindFolders(spec Spec, root string) error {
	for to, from := range spec.Binds {
		if err := owned(spec, to+"/"); err != nil {
			return err
		}
		at := filepath.Join(root, to)
		if err := os.MkdirAll(at, 0o755); err != nil {
			return err
		}
		if err := mount(filepath.Join(root, from), at, "", syscall.MS_BIND|syscall.MS_REC); err != nil {
			return err
		}
	}
	return nil
}

// enter makes the folder the root, and takes the real one away.
func enter(root string) error {
	folder, err := os.Getwd()
	if err != nil {
		return err
	}
	before := filepath.Join(root, ".before")
	if err := os.Mkdir(before, 0o700); err != nil {
		return err
	}
	if err := syscall.PivotRoot(root, before); err != nil {
		return fmt.Errorf("changing the root: %w", err)
	}
	if err := os.Chdir(folder); err != nil {
		return err
	}
	if err := syscall.Unmount("/.before", syscall.MNT_DETACH); err != nil {
		return fmt.Errorf("unmounting the real root: %w", err)
	}
	return errors.Join(os.Remove("/.before"), syscall.Sethostname([]byte("node-1")))
}

func mount(from, to, kind string, flags uintptr) error { return mountWith(from, to, kind, flags, "") }

func mountWith(from, to, kind string, flags uintptr, options string) error {
	if err := syscall.Mount(from, to, kind, flags, options); err != nil {
		return fmt.Errorf("mounting %s%s at %s: %w", kind, from, to, err)
	}
	return nil
}

// addFiles lays a folder with the file over the one that it is added to.
func addFiles(spec Spec, root string) error {
	for _, path := range slices.Sorted(maps.Keys(spec.Added)) {
		folder, err := filepath.EvalSymlinks(filepath.Dir(path))
		if err != nil {
			return err
		}
		over := filepath.Join(root, additions, folder)
		if err := os.MkdirAll(over, 0o755); err != nil {
			return err
		}
		if err := os.Symlink(spec.Added[path], filepath.Join(over, filepath.Base(path))); err != nil {
			return err
		}
		at := filepath.Join(root, folder)
		if err := mountWith("overlay", at, "overlay", syscall.MS_RDONLY, "lowerdir="+over+":"+at); err != nil {
			return err
		}
	}
	return nil
}
