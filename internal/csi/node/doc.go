// Package node answers the Node RPCs of the CSI spec (v1.12.0) for NFS shares.
//
// Publishing validates the whole request before it mounts. An existing mount is compared with the request; a dead mount is
// replaced. If the read-ahead or the mode of a mount can't be set, the mount is undone, so that a retry starts again.
//
// One operation runs per target. Its deadline ends the call. If the operation still hangs in the kernel, only its own
// target stays in progress (ABORTED).
package node
