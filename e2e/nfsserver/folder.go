package main

import (
	"os"
	"path/filepath"
	"syscall"
	"time"

	"github.com/go-git/go-billy/v5"
	nfs "github.com/willscott/go-nfs"
)

// changeable is a folder whose files' attributes can be changed. go-billy's own has no methods for that.
type changeable struct{ billy.Filesystem }

func (c changeable) path(name string) string { return filepath.Join(c.Root(), name) }

func (c changeable) Chmod(name string, mode os.FileMode) error { return os.Chmod(c.path(name), mode) }

func (c changeable) Lchown(name string, uid, gid int) error { return os.Lchown(c.path(name), uid, gid) }

func (c changeable) Chown(name string, uid, gid int) error { return os.Chown(c.path(name), uid, gid) }

func (c changeable) Chtimes(name string, atime, mtime time.Time) error {
	return os.Chtimes(c.path(name), atime, mtime)
}

func fillStat(folder string, stat *nfs.FSStat) error {
	var s syscall.Statfs_t
	if err := syscall.Statfs(folder, &s); err != nil {
		return err
	}
	block := uint64(s.Bsize)
	stat.TotalSize, stat.FreeSize, stat.AvailableSize = s.Blocks*block, s.Bfree*block, s.Bavail*block
	stat.TotalFiles, stat.FreeFiles, stat.AvailableFiles = s.Files, s.Ffree, s.Ffree
	return nil
}
