package csi

import (
	"context"
	"errors"
)

// DefaultDriver is the name of the CSI driver where the configuration names none.
const DefaultDriver = "nfs.fairlead.io"

// AddressKey is the key of PublishContext, and of the attachment's metadata, whose
// value is the address that the node mounts: nfs.ParseEndpoint(value, nfs.DefaultPort)
// reads it. The GKE driver writes the same key (lbcontroller.go: "…/assigned-ip").
func AddressKey(driver string) string { return driver + "/assigned-ip" }

// Publisher assigns servers to nodes. The attacher of NFS services implements it.
//
// Errors of the kinds below become the codes of the CSI spec; any other is Internal,
// and is retried.
type Publisher interface {
	// Publish attaches the volume to the node and returns the PublishContext, which
	// has AddressKey. A repeated call returns the same. Whether the mount is read-only
	// makes no difference to the server.
	Publish(ctx context.Context, driver, volumeHandle, nodeID string) (map[string]string, error)
	// Unpublish detaches the volume from the node; an empty nodeID means from all
	// nodes. A volume that is not attached or deleted is no error.
	Unpublish(ctx context.Context, driver, volumeHandle, nodeID string) error
}

// VolumeFinder is an optional interface of a Publisher.
type VolumeFinder interface {
	// HasVolume reports whether a PersistentVolume of the driver has the handle.
	HasVolume(ctx context.Context, driver, volumeHandle string) (bool, error)
}

// Kinds of errors of a Publisher: wrap one of them.
var (
	// ErrNotFound: the volume or the node does not exist (NOT_FOUND).
	ErrNotFound = errors.New("not found")
	// ErrInvalid: the volume's attributes are wrong (INVALID_ARGUMENT).
	ErrInvalid = errors.New("invalid")
	// ErrIncompatible: the volume is attached to the node in another way (ALREADY_EXISTS).
	ErrIncompatible = errors.New("attached in another way")
	// ErrBusy: an operation on the volume and node is in progress (ABORTED).
	ErrBusy = errors.New("in progress")
	// ErrUnavailable: no server can be assigned now (UNAVAILABLE).
	ErrUnavailable = errors.New("no server available")
)
