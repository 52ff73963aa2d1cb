package watchers

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"
)

// FileSystem is a CephFS and the MDSs that serve it. `client ls` doesn't say
// which file system a client is of; that its MDS does.
type FileSystem struct {
	Name   string
	Ranks  []int          // that there have to be
	Active map[int]string // rank to the MDS that serves it
}

// MDSMap is all file systems and MDSs of a Ceph.
type MDSMap struct {
	FileSystems []FileSystem
	// Hosts are the addresses of all MDSs, with the standbys. None of them may be
	// fenced: an MDS at a blocked address starts over and over, and keeps its rank.
	Hosts []netip.Addr
}

// FileSystem finds one by its name.
func (m MDSMap) FileSystem(name string) (FileSystem, error) {
	for _, fs := range m.FileSystems {
		if fs.Name == name {
			return fs, nil
		}
	}
	return FileSystem{}, fmt.Errorf("there is no file system %q", name)
}

type mds struct {
	Name  string `json:"name"`
	Rank  int    `json:"rank"`
	State string `json:"state"`
	Addr  string `json:"addr"`
}

// MDSStatArgs are the arguments of the `ceph` command that ParseMDSStat reads.
func MDSStatArgs() []string { return []string{"mds", "stat", "--format", "json"} }

// ParseMDSStat reads the output of `ceph mds stat --format json`.
func ParseMDSStat(output []byte) (MDSMap, error) {
	text, err := one(output)
	if err != nil {
		return MDSMap{}, fmt.Errorf("mds stat: %w", err)
	}
	var stat struct {
		FSMap struct {
			FileSystems *[]struct {
				MDSMap struct {
					Name string         `json:"fs_name"`
					In   []int          `json:"in"`
					Info map[string]mds `json:"info"`
				} `json:"mdsmap"`
			} `json:"filesystems"`
			Standbys []mds `json:"standbys"`
		} `json:"fsmap"`
	}
	if err := json.Unmarshal(text, &stat); err != nil {
		return MDSMap{}, fmt.Errorf("mds stat: %w", err)
	}
	if stat.FSMap.FileSystems == nil {
		return MDSMap{}, errors.New("mds stat: the answer says nothing of file systems")
	}
	all := stat.FSMap.Standbys
	var found MDSMap
	for _, listed := range *stat.FSMap.FileSystems {
		fs := FileSystem{Name: listed.MDSMap.Name, Ranks: listed.MDSMap.In, Active: map[int]string{}}
		slices.Sort(fs.Ranks)
		for _, mds := range listed.MDSMap.Info {
			if mds.State == "up:active" {
				fs.Active[mds.Rank] = mds.Name
			}
			all = append(all, mds)
		}
		found.FileSystems = append(found.FileSystems, fs)
	}
	for _, mds := range all {
		address, err := ParseAddress(mds.Addr)
		if err != nil {
			return MDSMap{}, fmt.Errorf("mds stat: mds %q: %w", mds.Name, err)
		}
		found.Hosts = append(found.Hosts, address.IP)
	}
	found.Hosts = sorted(found.Hosts)
	return found, nil
}

// Clients are those clients in what MDSs have told that are of this file system.
// It is an error if one of its ranks isn't served, or its MDS has not answered:
// then there may be clients that nobody has told of.
func (f FileSystem) Clients(told CephFSClients) (CephFSClients, error) {
	if len(f.Ranks) == 0 {
		return CephFSClients{}, fmt.Errorf("file system %q has no MDS", f.Name)
	}
	var names []string
	for _, rank := range f.Ranks {
		name, ok := f.Active[rank]
		if !ok {
			return CephFSClients{}, fmt.Errorf("file system %q: no MDS is active as rank %d", f.Name, rank)
		}
		names = append(names, name)
	}
	if len(names) == 1 && slices.Equal(told.Answered, []string{""}) {
		return told, nil // there is only one MDS, so its name was not told
	}
	var of CephFSClients
	var silent []string
	for _, name := range names {
		if !slices.Contains(told.Answered, name) {
			silent = append(silent, name)
		}
		of.Answered = append(of.Answered, name)
	}
	if len(silent) > 0 {
		return CephFSClients{}, fmt.Errorf("file system %q: no answer of mds %s", f.Name, strings.Join(silent, ", "))
	}
	for _, client := range told.Clients {
		if slices.Contains(names, client.MDS) {
			of.Clients = append(of.Clients, client)
		}
	}
	return of, nil
}
