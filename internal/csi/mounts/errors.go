package mounts

import (
	"errors"
	"slices"
	"strings"
)

// ErrTimeout: the operation did not end in time; it may still take effect.
var ErrTimeout = errors.New("no answer in time")

// Kinds of failures of commands, by their output.
var (
	ErrDenied      = errors.New("denied by the server")
	ErrInvalid     = errors.New("refused as invalid")
	ErrNoExport    = errors.New("not exported by the server")
	ErrUnreachable = errors.New("server not reachable")
	// ErrNoLocks: rpc.statd, which NFSv3 needs for locks, does not run on the node.
	ErrNoLocks = errors.New("no rpc.statd for the locks of NFSv3: mount with nolock, or with vers=4.1, or run rpc.statd on the nodes")
	// ErrNoKey: Kerberos has no valid key on the node.
	ErrNoKey = errors.New("no valid Kerberos key: rpc.gssd must run on the node, with a keytab that the server knows")
	// ErrNoNFS: the node can't mount NFS at all.
	ErrNoNFS = errors.New("the node cannot mount NFS: its kernel has no module nfs, or mount.nfs is missing where the node plugin runs mount")
	// ErrNotMounted: umount(8) found nothing to unmount.
	ErrNotMounted = errors.New("not mounted")
	// ErrDead: the mount will never work again. Only a new mount helps.
	ErrDead = errors.New("the mount is dead")
)

// texts of mount.nfs (nfs-utils 2.6.2, error.c), umount (util-linux 2.38) and stat, in small letters.
var texts = []struct {
	kind error
	text []string
}{
	{ErrNotMounted, []string{"not mounted", "no mount point specified"}},
	{ErrNoLocks, []string{"rpc.statd is not running", "failed to start rpc.statd"}},
	// ENOKEY, EKEYEXPIRED, EKEYREVOKED and EKEYREJECTED, as glibc writes them.
	{ErrNoKey, []string{"required key not available", "key has expired", "key has been revoked", "key was rejected"}},
	// What mount(8) says without a helper, and of ENODEV.
	{ErrNoNFS, []string{"helper program", "unknown filesystem type", "no such device"}},
	{ErrDenied, []string{"access denied", "operation not permitted", "permission denied"}},
	{ErrInvalid, []string{"incorrect mount option", "bad option", "invalid argument", "not supported"}},
	{ErrUnreachable, []string{"connection refused", "timed out", "no route to host", "network is unreachable", "host is down", "unable to receive"}},
	// ESTALE, ENOTCONN, ESHUTDOWN and ECONNABORTED, as glibc and musl write them. k8s.io/mount-utils
	// (IsCorruptedMnt) counts more: EIO is a soft mount whose server is away, EACCES a directory that root may not read.
	{ErrDead, []string{"stale file handle", "transport endpoint is not connected", "socket not connected", "cannot send after", "caused connection abort", "connection aborted"}},
	{ErrNoExport, []string{"no such file or directory"}},
}

// kindOf is the kind of failure in a command's output; nil if unknown.
func kindOf(output string) error {
	output = strings.ToLower(output)
	for _, t := range texts {
		if slices.ContainsFunc(t.text, func(text string) bool { return strings.Contains(output, text) }) {
			return t.kind
		}
	}
	return nil
}
