package mounts

import (
	"errors"
	"slices"
	"strings"
	"syscall"
)

// ErrTimeout: the operation did not end in time; it may still take effect.
var ErrTimeout = errors.New("no answer in time")

// Kinds of failures of mount(8), by what it writes.
var (
	ErrDenied      = errors.New("denied by the server")
	ErrInvalid     = errors.New("refused as invalid")
	ErrNoExport    = errors.New("not exported by the server")
	ErrUnreachable = errors.New("server not reachable")
	// ErrNoLocks: rpc.statd, which NFSv3 needs for locks, does not run on the node.
	ErrNoLocks = errors.New("no rpc.statd for the locks of NFSv3: mount with nolock, or with vers=4.1")
	// ErrNotMounted: umount(8) found nothing to unmount.
	ErrNotMounted = errors.New("not mounted")
)

// texts of mount.nfs and umount (nfs-utils 2.6.2, error.c; util-linux 2.38), in small letters.
var texts = []struct {
	kind error
	text []string
}{
	{ErrNotMounted, []string{"not mounted", "no mount point specified"}},
	{ErrNoLocks, []string{"rpc.statd is not running", "failed to start rpc.statd"}},
	{ErrDenied, []string{"access denied", "operation not permitted", "permission denied"}},
	{ErrInvalid, []string{"incorrect mount option", "bad option", "invalid argument", "not supported", "unknown filesystem type"}},
	{ErrUnreachable, []string{"connection refused", "timed out", "no route to host", "network is unreachable", "host is down", "unable to receive"}},
	{ErrNoExport, []string{"reason given by server: no such file or directory", "stale file handle", "no such file or directory"}},
}

// kindOf is the kind of what mount(8) wrote; nil if it is none of the known.
func kindOf(output string) error {
	output = strings.ToLower(output)
	for _, t := range texts {
		if slices.ContainsFunc(t.text, func(text string) bool { return strings.Contains(output, text) }) {
			return t.kind
		}
	}
	return nil
}

// IsDead says whether the error means that the mount will never work again, so that
// mounting anew is the only way. k8s.io/mount-utils (IsCorruptedMnt) counts more:
// EIO is a soft mount whose server is away, EACCES a directory that root may not read.
func IsDead(err error) bool {
	for _, dead := range []syscall.Errno{syscall.ESTALE, syscall.ENOTCONN, syscall.ENODEV, syscall.ESHUTDOWN, syscall.ECONNABORTED} {
		if errors.Is(err, dead) {
			return true
		}
	}
	return false
}
