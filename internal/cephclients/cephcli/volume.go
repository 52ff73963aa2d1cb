// Package cephcli has the few questions that Ceph's commands are asked, and reads their answers: who has an RBD
// image or a CephFS directory open, and where Ceph's servers are. It starts no process.
//
// Fencing goes by these answers, so the parsers fail rather than guess: no answer is an error and not "no clients",
// and an address that can't be read is an error and not left out.
package cephcli

import (
	"fmt"
	"net/netip"
	"path"
	"regexp"
)

// MaxVolumes is how many volumes a request may name.
const MaxVolumes = 32

// Request has volumes by names of the caller's.
type Request map[string]Volume

// Volume is an RBD image, or else a directory of a file system.
type Volume struct {
	Pool       string `json:"pool,omitempty"`
	Namespace  string `json:"namespace,omitempty"` // of the pool; may be empty
	Image      string `json:"image,omitempty"`
	FileSystem string `json:"fileSystem,omitempty"`
	Path       string `json:"path,omitempty"`
}

// Answer has what was found, by the request's names. Servers are Ceph's managers and metadata servers.
type Answer struct {
	Clients map[string]Found `json:"clients"`
	Servers Found            `json:"servers"`
}

// Found are addresses, or why they are not known.
type Found struct {
	Addresses []netip.Addr `json:"addresses,omitempty"`
	Problem   string       `json:"problem,omitempty"`
}

// Validate refuses what may not be in a request.
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

// word takes less than Ceph does: nothing that looks like an option, a snapshot, a path or a rank.
var word = regexp.MustCompile(`^[A-Za-z0-9._+=][A-Za-z0-9._+=-]{0,254}$`)

// Validate refuses what a command could take for something else. The path is in no command.
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
