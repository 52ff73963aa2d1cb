package options

import "strings"

const (
	readAhead = "read_ahead_kb"
	sloppy    = "sloppy"
)

// choices are options of nfs(5) and mount(8) of which one holds, by what they decide.
var choices = map[string]string{
	"version":   "vers nfsvers v3 v4 v4.0 v4.1 v4.2",
	"transport": "proto tcp udp rdma",
	"recovery":  "soft softerr hard",
	"atime":     "atime noatime relatime strictatime",
	"rw":        "ro rw",
	"sync":      "sync async",
	"silent":    "silent loud",
}

// switches are options of two spellings, with and without "no".
const switches = "rdirplus fsc lock cto ac acl sharecache resvport migration intr softreval trunkdiscovery alignwrite posix " +
	"diratime lazytime exec suid dev iversion mand auto user symfollow"

// others are the other options of nfs(5) and the file-system independent ones of mount(8).
const others = "minorversion port mountport mountproto mountvers timeo retrans retry rsize wsize bsize namlen nconnect max_connect " +
	"acregmin acregmax acdirmin acdirmax actimeo sec xprtsec lookupcache local_lock write clientaddr comment " +
	"context fscontext defcontext rootcontext fg norelatime nostrictatime defaults _netdev nofail dirsync fatal_neterrors " + readAhead + " " + sloppy

const blockDevice = "it is for a block device of the node"

// refusals are options that mount(8) or the kernel would obey, by the reason why no volume may have them: they mount
// something else than the share from the service's server, or act on the node. Source of the names: mount(8), and
// libmount/src/optmap.c of util-linux 2.38.
var refusals = map[string]string{
	"the address comes from the NFS service":              "addr mountaddr mounthost",
	"the source comes from the NFS service and the share": "source",
	"the server is found by its port":                     "nfsprog mountprog",
	"it mounts a directory of the node":                   "bind rbind",
	"it moves a mount of the node":                        "move",
	"it changes a mount that exists":                      "remount",
	"the driver would take a mount that failed for done":  "bg",
	"it changes propagation, which the kubelet decides":   "private rprivate slave rslave shared rshared unbindable runbindable",
	"it mounts from other servers than the NFS service's": "remoteports localports",
	"it runs a program of the node plugin to mount":       "helper uhelper",
	blockDevice: "loop offset sizelimit encryption",
}

// groups has what each option decides, and refused why an option is not allowed.
var groups, refused = tables()

func tables() (groups, refused map[string]string) {
	groups, refused = map[string]string{}, map[string]string{}
	for group, names := range choices {
		for _, name := range strings.Fields(names) {
			groups[name] = group
		}
	}
	for _, name := range strings.Fields(switches) {
		groups[name], groups["no"+name] = name, name
	}
	for _, name := range strings.Fields(others) {
		groups[name] = name
	}
	for why, names := range refusals {
		for _, name := range strings.Fields(names) {
			refused[name] = why
		}
	}
	return groups, refused
}

// groupOf is what an option decides: the option alone, if it is not known.
func groupOf(text string) string {
	name, _, _ := strings.Cut(text, "=")
	if group := groups[name]; group != "" {
		return group
	}
	return name
}

// isKnown reports whether nfs(5) or mount(8) has an option. Those that begin with x- are for other programs: mount(8) drops them.
func isKnown(name string) bool {
	return groups[name] != "" || strings.HasPrefix(name, "x-") || strings.HasPrefix(name, "X-")
}

// whyRefused is the reason why no volume may have an option; empty: it may.
func whyRefused(name string) string {
	switch {
	case strings.HasPrefix(name, "X-mount."):
		return "mount(8) acts on it: it may mount another directory, or change the node's files"
	case strings.HasPrefix(name, "verity."):
		return blockDevice
	}
	if lower := strings.ToLower(name); lower != name && (groups[lower] != "" || refused[lower] != "") {
		return "options of mounts are in lower case"
	}
	return refused[name]
}
