package mounts

import (
	"context"
	"strings"
)

// FsType is the type that mount(8) gets: it finds mount.nfs, which picks the version.
const FsType = "nfs"

// Mount is one line of mountinfo (proc(5)).
type Mount struct {
	// ID tells mounts apart while they exist.
	ID                     int
	Source, Target, FsType string
	// Major and Minor number the device: the BDI is /sys/class/bdi/MAJOR:MINOR.
	Major, Minor int
	// Options of the mount; SuperOptions of the superblock, which NFS mounts may share.
	Options, SuperOptions []string
}

// IsNFS reports whether the mount is of an NFS client: the kernel's, or a helper in user
// space, whose type mountinfo shows as fuse.nfs.
func (m Mount) IsNFS() bool {
	return m.FsType == "nfs" || m.FsType == "nfs4" || strings.HasSuffix(m.FsType, ".nfs")
}

// Usage of a file system in bytes and inodes, as statfs(2) has it.
type Usage struct {
	Bytes, BytesFree, BytesAvailable int64
	Inodes, InodesFree               int64
}

// System is what the node plugin asks of the operating system. Host is the real one.
type System interface {
	// Mounts lists what is mounted, in the order of mounting, without asking a server.
	Mounts() ([]Mount, error)
	// Mount mounts; it makes no directories.
	Mount(ctx context.Context, source, target string, options []string) error
	// Unmount unmounts what is on top of the target; with force, requests to the server are aborted.
	Unmount(ctx context.Context, target string, force bool) error
	// Statfs asks the server. ErrTimeout: it has not answered within the context's
	// deadline; ErrDead: the mount has no server any more.
	Statfs(ctx context.Context, path string) (Usage, error)
	// Chmod sets the mode of the mounted directory. ErrTimeout as with Statfs.
	Chmod(ctx context.Context, path string, mode uint32) error
	// ReadAhead returns the read-ahead of the mount's device in KiB, without asking a server.
	ReadAhead(m Mount) (int, error)
	// SetReadAhead sets that read-ahead. The kernel rounds to whole pages.
	SetReadAhead(m Mount, kb int) error
}

// Shares reports whether another mount has the same superblock, and so the same connections. A forced unmount fails the
// requests of all these mounts.
func Shares(list []Mount, m Mount) (Mount, bool) {
	for _, other := range list {
		if other.Major == m.Major && other.Minor == m.Minor && other.Target != m.Target {
			return other, true
		}
	}
	return Mount{}, false
}

// At returns what is mounted on top of the target, and whether anything is.
func At(s System, target string) (Mount, bool, error) {
	list, err := s.Mounts()
	if err != nil {
		return Mount{}, false, err
	}
	for i := len(list) - 1; i >= 0; i-- {
		if list[i].Target == target {
			return list[i], true, nil
		}
	}
	return Mount{}, false, nil
}
