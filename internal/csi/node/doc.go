// Package node answers the Node RPCs of the CSI spec (v1.12.0) for NFS shares.
//
// Publishing validates all of the request before it mounts. A target that is mounted
// already is compared with the request; what is dead is mounted again. A mount whose
// read-ahead or mode cannot be set is undone, so that a retry does not find a mount
// that is only half right.
//
// One operation runs per target. Its deadline ends the call; what still hangs in the
// kernel keeps its target in progress (ABORTED) and no other.
package node
