// Package rpc probes NFS servers over TCP: the NULL procedure of each version, and where shares are named, whether
// they are exported. wire has the bytes; nothing here knows Kubernetes.
package rpc

import (
	"net/netip"
	"strings"
	"time"
)

// The versions of NFS that can be probed. V4 stands for all its minor versions.
const (
	V3 int32 = 3
	V4 int32 = 4
)

// portPortMapper is the port of rpcbind (RFC 1833).
const portPortMapper = 111

// Target is one NFS server, and the versions and shares that it must serve. Use the server's own address: behind a Service,
// another server may answer.
type Target struct {
	Address netip.AddrPort
	// Versions that clients mount with, each of which must be served.
	Versions []int32
	// Shares that must be exported, as options.ParseShare returns them. None: only the NULL procedure is probed.
	Shares []string
	// MountPort is the port of the MOUNT protocol, for shares with version 3. 0: the port mapper is asked.
	MountPort uint16
	// Interval is the longest time from the start of one probe of a Prober to the start of the next one, as long as a
	// worker is free and probes are shorter than that.
	Interval time.Duration
	// Timeout bounds a whole probe: all its connections and calls.
	Timeout time.Duration
}

// names are the directories of a share, from the root. "/" has none.
func names(share string) []string {
	return strings.FieldsFunc(share, func(r rune) bool { return r == '/' })
}
