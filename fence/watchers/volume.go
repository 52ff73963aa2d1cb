package watchers

import (
	"errors"
	"fmt"
	"path"
	"strings"
	"unicode"
	"unicode/utf8"
)

// RBDImage is an image that a PersistentVolume is made of.
type RBDImage struct {
	Pool      string
	Namespace string // "" is the pool's own
	Image     string
}

// RBDImageOf finds the image in what a PersistentVolume of Ceph's CSI driver has
// under spec.csi. A static volume's handle is the image's name.
func RBDImageOf(volumeHandle string, attributes map[string]string) (RBDImage, error) {
	image := RBDImage{Pool: attributes["pool"], Namespace: attributes["radosNamespace"], Image: attributes["imageName"]}
	if attributes["staticVolume"] == "true" {
		image.Image = volumeHandle
	}
	return image, image.Validate()
}

// Validate tells whether each name can be told from an option, and from a path
// to a snapshot or another image: the rbd command takes both also in --image.
func (i RBDImage) Validate() error {
	if err := validName(i.Pool); err != nil {
		return fmt.Errorf("pool: %w", err)
	}
	if i.Namespace != "" {
		if err := validName(i.Namespace); err != nil {
			return fmt.Errorf("radosNamespace: %w", err)
		}
	}
	if err := validName(i.Image); err != nil {
		return fmt.Errorf("image: %w", err)
	}
	return nil
}

// StatusArgs are the arguments of the `rbd` command whose output ParseRBDStatus
// reads.
func (i RBDImage) StatusArgs() ([]string, error) {
	if err := i.Validate(); err != nil {
		return nil, err
	}
	args := []string{"status", "--format", "json", "--pool=" + i.Pool}
	if i.Namespace != "" { // rbd doesn't take an empty one
		args = append(args, "--namespace="+i.Namespace)
	}
	return append(args, "--image="+i.Image), nil
}

// String is the image's path, as rbd writes it.
func (i RBDImage) String() string {
	if i.Namespace == "" {
		return i.Pool + "/" + i.Image
	}
	return i.Pool + "/" + i.Namespace + "/" + i.Image
}

// CephFSVolume is the directory that a PersistentVolume is made of.
type CephFSVolume struct {
	FileSystem string
	Path       string // that clients mount
}

// CephFSVolumeOf finds the directory in what a PersistentVolume of Ceph's CSI
// driver has in its volumeAttributes. A static volume has a rootPath.
func CephFSVolumeOf(attributes map[string]string) (CephFSVolume, error) {
	volume := CephFSVolume{FileSystem: attributes["fsName"], Path: attributes["subvolumePath"]}
	if attributes["staticVolume"] == "true" || volume.Path == "" {
		volume.Path = attributes["rootPath"]
	}
	return volume, volume.Validate()
}

// Validate tells whether the path is one that a client can have mounted.
func (v CephFSVolume) Validate() error {
	if err := validName(v.FileSystem); err != nil {
		return fmt.Errorf("fsName: %w", err)
	}
	if err := validPath(v.Path); err != nil {
		return fmt.Errorf("path: %w", err)
	}
	return nil
}

// AllClientsArgs are the arguments of the `ceph` command that asks every MDS, of
// whatever file system, for its clients. It exits with 38 if one of them is a
// standby; whether all has been told is for CephFSVolume.Clients to say.
func AllClientsArgs() []string { return []string{"tell", "mds.*", "client", "ls", "--format", "json"} }

// Clients are the sessions of all who have mounted the volume. It is an error if
// not all who may know have told.
func (v CephFSVolume) Clients(mdss MDSMap, told CephFSClients) ([]CephFSClient, error) {
	if err := v.Validate(); err != nil {
		return nil, err
	}
	fs, err := mdss.FileSystem(v.FileSystem)
	if err != nil {
		return nil, err
	}
	of, err := fs.Clients(told)
	if err != nil {
		return nil, err
	}
	return of.At(v.Path), nil
}

const (
	maxName = 255
	maxPath = 4096
)

// validName takes less than Ceph does: nothing that a command line, a path or a
// log could read as something else.
func validName(name string) error {
	switch {
	case name == "":
		return errors.New("is missing")
	case len(name) > maxName:
		return fmt.Errorf("has %d bytes, more than %d", len(name), maxName)
	case name == "." || name == "..":
		return fmt.Errorf("%q is no name", name)
	case name[0] == '-':
		return fmt.Errorf("%q begins with -", name)
	}
	for _, r := range name {
		if !('a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' || '0' <= r && r <= '9' || strings.ContainsRune("._-+=", r)) {
			return fmt.Errorf("%q has %q in it", name, r)
		}
	}
	return nil
}

func validPath(volumePath string) error {
	switch {
	case volumePath == "":
		return errors.New("is missing")
	case len(volumePath) > maxPath:
		return fmt.Errorf("has %d bytes, more than %d", len(volumePath), maxPath)
	case !utf8.ValidString(volumePath):
		return errors.New("is not UTF-8")
	case volumePath[0] != '/':
		return fmt.Errorf("%q does not begin with /", volumePath)
	case path.Clean(volumePath) != volumePath && path.Clean(volumePath)+"/" != volumePath:
		return fmt.Errorf("%q is not plain", volumePath)
	}
	for _, r := range volumePath {
		if !unicode.IsPrint(r) {
			return fmt.Errorf("%q has %q in it", volumePath, r)
		}
	}
	return nil
}
