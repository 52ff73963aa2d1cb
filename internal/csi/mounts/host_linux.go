package mounts

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
	mount "k8s.io/mount-utils"
)

// Host is this machine. The zero value is usable; use one for the process.
type Host struct {
	// MountInfo is /proc/self/mountinfo, BDI /sys/class/bdi, where they are empty.
	MountInfo, BDI string

	calls calls
}

// Mounts lists what is mounted.
func (h *Host) Mounts() ([]Mount, error) {
	return readMountInfo(cmp.Or(h.MountInfo, "/proc/self/mountinfo"))
}

// Mount runs mount(8). Options that it does not know are for mount.nfs to refuse.
func (h *Host) Mount(ctx context.Context, source, target string, options []string) error {
	return run(ctx, "mount", mount.MakeMountArgs(source, target, FsType, options)...)
}

// Unmount runs umount(8) so that it asks nothing of the server itself: no
// canonicalized path (-c), no umount.nfs, which would call the server's mount daemon (-i).
func (h *Host) Unmount(ctx context.Context, target string, force bool) error {
	args := []string{"-c", "-i", target}
	if force {
		args = append([]string{"-f"}, args...)
	}
	return run(ctx, "umount", args...)
}

// Statfs asks the server how full the share is.
func (h *Host) Statfs(ctx context.Context, path string) (Usage, error) {
	got, err := h.calls.do(ctx, "statfs "+path, func() (any, error) {
		var s unix.Statfs_t
		if err := unix.Statfs(path, &s); err != nil {
			return nil, &os.PathError{Op: "statfs", Path: path, Err: err}
		}
		return usage(s), nil
	})
	if err != nil {
		return Usage{}, err
	}
	return got.(Usage), nil
}

// Chmod sets the mode of the directory.
func (h *Host) Chmod(ctx context.Context, path string, mode uint32) error {
	_, err := h.calls.do(ctx, fmt.Sprintf("chmod %o %s", mode, path), func() (any, error) {
		if err := unix.Chmod(path, mode); err != nil {
			return nil, &os.PathError{Op: "chmod", Path: path, Err: err}
		}
		return nil, nil
	})
	return err
}

// ReadAhead reads the read-ahead of the mount's BDI.
func (h *Host) ReadAhead(m Mount) (int, error) {
	text, err := os.ReadFile(h.bdi(m))
	if err != nil {
		return 0, fmt.Errorf("reading the read-ahead: %w", err)
	}
	kb, err := strconv.Atoi(strings.TrimSpace(string(text)))
	if err != nil {
		return 0, fmt.Errorf("reading the read-ahead: %w", err)
	}
	return kb, nil
}

// SetReadAhead writes it. No shell is involved, as it is in the GKE driver.
func (h *Host) SetReadAhead(m Mount, kb int) error {
	f, err := os.OpenFile(h.bdi(m), os.O_WRONLY, 0)
	if err == nil {
		_, err = f.WriteString(strconv.Itoa(kb))
		err = errors.Join(err, f.Close())
	}
	if err != nil {
		return fmt.Errorf("writing the read-ahead: %w", err)
	}
	return nil
}

func (h *Host) bdi(m Mount) string {
	return filepath.Join(cmp.Or(h.BDI, "/sys/class/bdi"), fmt.Sprintf("%d:%d", m.Major, m.Minor), "read_ahead_kb")
}

func usage(s unix.Statfs_t) Usage {
	size := int64(s.Bsize)
	return Usage{
		Bytes: int64(s.Blocks) * size, BytesFree: int64(s.Bfree) * size, BytesAvailable: int64(s.Bavail) * size,
		Inodes: int64(s.Files), InodesFree: int64(s.Ffree),
	}
}
