// Package cephcli has the arguments of Ceph's commands, and parses their output: the clients of an RBD image or a CephFS
// directory, and the addresses of Ceph's servers. It starts no process.
//
// Fencing relies on the results, so the parsers fail rather than guess. A missing answer or an unreadable address is an
// error.
package cephcli

import (
	"fmt"
	"net/netip"
	"path"
	"regexp"
)

// MaxVolumes is how many volumes a request may name.
const MaxVolumes = 32

// Request names volumes. The caller chooses the keys.
type Request map[string]Volume

// Volume is an RBD image, or else a directory of a file system.
type Volume struct {
	Pool       string `json:"pool,omitempty"`
	Namespace  string `json:"namespace,omitempty"` // of the pool; may be empty
	Image      string `json:"image,omitempty"`
	FileSystem string `json:"fileSystem,omitempty"`
	Path       string `json:"path,omitempty"`
}

// Answer has the results by the request's keys. Servers are Ceph's managers and metadata servers.
type Answer struct {
	Clients map[string]Found `json:"clients"`
	Servers Found            `json:"servers"`
}

// Found has addresses, or the reason why they are unknown.
type Found struct {
	Addresses []netip.Addr `json:"addresses,omitempty"`
	Problem   string       `json:"problem,omitempty"`
}

// Validate refuses a request that is too large or has a bad volume.
func (r Request) Validate() error {
	if len(r) > MaxVolumes {
		return fmt.Errorf("%d volumes in one request, more than %d", len(r), MaxVolumes)
	}
	for name, v := range r {
		if err := v.Validate(); err != nil {
			return fmt.Errorf("volume %.80q: %w", name, err)
		}
	}
	return nil
}

// word is stricter than Ceph: it matches no option, snapshot, path or rank.
var word = regexp.MustCompile(`^[A-Za-z0-9._+=][A-Za-z0-9._+=-]{0,254}$`)

// Validate refuses names that a command could misread. The path is in no command.
func (v Volume) Validate() error {
	words := []string{v.Pool, v.Image}
	if v.FileSystem != "" {
		words = []string{v.FileSystem}
		if clean := path.Clean(v.Path); len(v.Path) > 4096 || !path.IsAbs(v.Path) || v.Path != clean && v.Path != clean+"/" {
			return fmt.Errorf("%.80q is not a plain absolute path", v.Path)
		}
	} else if v.Namespace != "" {
		words = append(words, v.Namespace)
	}
	for _, w := range words {
		if !word.MatchString(w) {
			return fmt.Errorf("%.80q is not a name", w)
		}
	}
	return nil
}

// StatusArgs ask rbd about an image; see ParseStatus.
func (v Volume) StatusArgs() []string {
	args := []string{"status", "--format=json", "--pool=" + v.Pool, "--image=" + v.Image}
	if v.Namespace != "" { // rbd refuses an empty one
		args = append(args, "--namespace="+v.Namespace)
	}
	return args
}

// ClientLsArgs ask ceph about one rank of a file system; see ParseClientLs.
func ClientLsArgs(fileSystem string, rank int) []string {
	return []string{"tell", fmt.Sprintf("mds.%s:%d", fileSystem, rank), "client", "ls", "--format=json"}
}

// MDSStatArgs and MgrMetadataArgs ask ceph about its servers; see ParseMDSStat and ParseMgrMetadata.
func MDSStatArgs() []string     { return []string{"mds", "stat", "--format=json"} }
func MgrMetadataArgs() []string { return []string{"mgr", "metadata", "--format=json"} }
