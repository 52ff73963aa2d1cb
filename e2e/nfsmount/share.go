package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"strconv"
	"syscall"
	"time"

	"github.com/hanwen/go-fuse/v2/fuse"
)

// share is what a server exports, by NFSv3 or NFSv4.1. Errors are errno values.
type share interface {
	getattr(ctx context.Context, h handle) (attributes, syscall.Errno)
	setattr(ctx context.Context, h handle, f *file, s setting) syscall.Errno
	lookup(ctx context.Context, dir handle, name string) (object, syscall.Errno)
	open(ctx context.Context, h handle) (*file, syscall.Errno)
	create(ctx context.Context, dir handle, name string, s setting, exclusive bool) (object, *file, syscall.Errno)
	release(ctx context.Context, f *file)
	read(ctx context.Context, h handle, f *file, offset uint64, count int) ([]byte, syscall.Errno)
	write(ctx context.Context, h handle, f *file, offset uint64, data []byte) (int, syscall.Errno)
	mkdir(ctx context.Context, dir handle, name string, s setting) (object, syscall.Errno)
	symlink(ctx context.Context, dir handle, name, target string, s setting) (object, syscall.Errno)
	readlink(ctx context.Context, h handle) ([]byte, syscall.Errno)
	link(ctx context.Context, h, dir handle, name string) syscall.Errno
	remove(ctx context.Context, dir handle, name string, folder bool) syscall.Errno
	rename(ctx context.Context, from handle, name string, to handle, newName string) syscall.Errno
	readdir(ctx context.Context, dir handle) ([]entry, syscall.Errno)
	statfs(ctx context.Context, h handle) (space, syscall.Errno)
	// leave ends the share's session with the server, if it has one.
	leave()
}

type handle []byte

// attributes of a file. Times are seconds and nanoseconds.
type attributes struct {
	kind, mode, nlink, uid, gid uint32
	size, used, fileID          uint64
	atime, mtime, ctime         [2]uint32
}

// object is a file that was found or made.
type object struct {
	handle     handle
	attributes attributes
}

// setting of attributes; nil is left as it is.
type setting struct {
	mode, uid, gid *uint32
	size           *uint64
	atime, mtime   *[2]uint32
}

type entry struct {
	name   string
	fileID uint64
}

type space struct{ total, free, available, files, freeFiles uint64 }

// errno of a status. The lower values are Unix's.
func errno(status uint32) syscall.Errno {
	switch status {
	case 63:
		return syscall.ENAMETOOLONG
	case 66:
		return syscall.ENOTEMPTY
	case 69:
		return syscall.EDQUOT
	case 70, 10001, 10014: // STALE, BADHANDLE, FHEXPIRED
		return syscall.ESTALE
	case 10004:
		return syscall.ENOTSUP
	case 10012, 10015: // LOCKED, SHARE_DENIED
		return syscall.EACCES
	case 10046: // FILE_OPEN
		return syscall.EBUSY
	}
	if status < 63 {
		return syscall.Errno(status)
	}
	return syscall.EIO
}

// Both versions say with this status that they will serve the call later.
const statusDelay = 10008

// Times between calls that the server wants to be repeated.
const firstPause, lastPause = 100 * time.Millisecond, 2 * time.Second

// pause waits before the call is repeated, unless ctx ends.
func pause(ctx context.Context, last time.Duration) time.Duration {
	next := min(max(2*last, firstPause), lastPause)
	select {
	case <-time.After(next):
	case <-ctx.Done():
	}
	return next
}

// killable ends with the death of the caller. FUSE reports a caller's first signal only, and
// that may be harmless.
func killable(ctx context.Context) (context.Context, context.CancelFunc) {
	until, cancel := context.WithCancel(context.WithoutCancel(ctx))
	pid := uint32(0)
	if caller, ok := fuse.FromContext(ctx); ok {
		pid = caller.Pid
	}
	stop := context.AfterFunc(ctx, func() {
		for until.Err() == nil && !dying(pid) {
			pause(until, 0)
		}
		cancel()
	})
	return until, func() { stop(); cancel() }
}

// dying says whether the thread will end as soon as the kernel lets it. A thread that is not
// seen from here (pid 0) counts as dying.
func dying(pid uint32) bool {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return true
	}
	for line := range bytes.Lines(text) {
		name, value, _ := bytes.Cut(bytes.TrimSpace(line), []byte(":"))
		value = bytes.TrimSpace(value)
		switch string(name) {
		case "State":
			if bytes.ContainsAny(value[:1], "ZX") {
				return true
			}
		case "SigPnd":
			pending, err := strconv.ParseUint(string(value), 16, 64)
			return err != nil || pending>>(syscall.SIGKILL-1)&1 == 1
		}
	}
	return true
}
