package mounts

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"

	"golang.org/x/sync/singleflight"
	mount "k8s.io/mount-utils"
)

// Host is this machine. The zero value is usable; use one for the process.
type Host struct {
	// MountInfo is /proc/self/mountinfo, BDI /sys/class/bdi, where they are empty.
	MountInfo, BDI string

	// calls may hang. At most one runs for a key: later callers wait for that call.
	calls singleflight.Group
}

// Mounts lists what is mounted.
func (h *Host) Mounts() ([]Mount, error) {
	infos, err := mount.ParseMountInfo(cmp.Or(h.MountInfo, "/proc/self/mountinfo"))
	if err != nil {
		return nil, fmt.Errorf("reading what is mounted: %w", err)
	}
	list := make([]Mount, len(infos))
	for i, m := range infos {
		list[i] = Mount{ID: m.ID, Source: unescape(m.Source), Target: unescape(m.MountPoint), FsType: m.FsType, Major: m.Major, Minor: m.Minor, Options: m.MountOptions, SuperOptions: m.SuperOptions}
		// The directory was removed by another client of the server; the mount is still there.
		for _, suffix := range []string{"//deleted", " (deleted)"} {
			list[i].Target = strings.TrimSuffix(list[i].Target, suffix)
		}
	}
	return list, nil
}

var escape = regexp.MustCompile(`\\[0-3][0-7]{2}`)

// unescape reads \040 and the like, which mountinfo writes for blanks, tabs, line ends,
// backslashes and "#" (seq_path in the kernel).
func unescape(text string) string {
	return escape.ReplaceAllStringFunc(text, func(digits string) string {
		code, _ := strconv.ParseUint(digits[1:], 8, 8) // it matched
		return string([]byte{byte(code)})
	})
}

// run runs a command, unless the same one runs, and waits until it ends or the context does.
func (h *Host) run(ctx context.Context, name string, args ...string) (string, error) {
	return h.once(ctx, name+" "+strings.Join(args, " "), func() (any, error) { return run(ctx, name, args...) })
}

func (h *Host) once(ctx context.Context, key string, f func() (any, error)) (string, error) {
	running := h.calls.DoChan(key, f)
	select {
	case result := <-running:
		text, _ := result.Val.(string)
		return text, result.Err
	case <-ctx.Done():
		return "", fmt.Errorf("%s: %w: %w", key, ErrTimeout, ctx.Err())
	}
}

// Mount runs mount(8). Options that it does not know are for mount.nfs to refuse.
func (h *Host) Mount(ctx context.Context, source, target string, options []string) error {
	_, err := run(ctx, "mount", mount.MakeMountArgs(source, target, FsType, options)...)
	return err
}

// Unmount runs umount(8) so that it asks nothing of the server itself: no
// canonicalized path (-c), no umount.nfs, which would call the server's mount daemon (-i).
func (h *Host) Unmount(ctx context.Context, target string, force bool) error {
	args := []string{"-c", "-i", target}
	if force {
		args = append([]string{"-f"}, args...)
	}
	_, err := h.run(ctx, "umount", args...)
	return err
}

// statFormat are the block size, blocks, free blocks, those for others than root, inodes, free inodes.
const statFormat = "%S %b %f %a %c %d"

// Statfs asks the server how full the share is. stat(1) does it, since a process can be
// killed: a thread in the kernel would keep the mount busy until the server answers.
func (h *Host) Statfs(ctx context.Context, path string) (Usage, error) {
	text, err := h.run(ctx, "stat", "-f", "-c", statFormat, "--", path)
	if err != nil {
		return Usage{}, err
	}
	return parseUsage(text)
}

// Chmod sets the mode of the directory.
func (h *Host) Chmod(ctx context.Context, path string, mode uint32) error {
	_, err := h.run(ctx, "chmod", strconv.FormatUint(uint64(mode), 8), "--", path)
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

// SetReadAhead writes the read-ahead of the mount's BDI. The GKE driver uses a shell for that.
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

// parseUsage reads statFormat.
func parseUsage(text string) (Usage, error) {
	var size int64
	var u Usage
	if _, err := fmt.Sscan(text, &size, &u.Bytes, &u.BytesFree, &u.BytesAvailable, &u.Inodes, &u.InodesFree); err != nil {
		return Usage{}, fmt.Errorf("reading %q of stat(1): %w", text, err)
	}
	u.Bytes, u.BytesFree, u.BytesAvailable = u.Bytes*size, u.BytesFree*size, u.BytesAvailable*size
	return u, nil
}
