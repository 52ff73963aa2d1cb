// Package rpc probes NFS servers over TCP: the NULL procedure of each version, and where shares are named, whether
// they are exported. wire has the bytes; nothing here knows Kubernetes.
package rpc

import (
	"errors"
	"fmt"
	"net/netip"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/fairlead-io/fairlead/internal/nfs/rpc/wire"
)

// Version is a version of the NFS program. 4 stands for all its minor versions.
type Version uint32

// The versions that can be probed.
const (
	V3 Version = 3
	V4 Version = 4
)

func (v Version) String() string { return fmt.Sprintf("NFS v%d", uint32(v)) }

// The standard ports.
const (
	PortNFS        = 2049
	PortPortMapper = 111
)

// Target is one NFS server, and the versions and shares that it must serve. Use the server's own address: behind a Service,
// another server may answer.
type Target struct {
	Address netip.AddrPort
	// Versions that clients mount with, each of which must be served. At least one.
	Versions []Version
	// Shares that must be exported, as absolute paths. None: only the NULL procedure is probed.
	Shares []string
	// MountPort is the port of the MOUNT protocol, for shares with version 3. 0: the port mapper is asked.
	MountPort uint16
	// PortMapperPort is used if MountPort is 0. 0: 111.
	PortMapperPort uint16
	// Interval is the longest time from the start of one probe of a Prober to the start of the next one, as long as a
	// worker is free and probes are shorter than that.
	Interval time.Duration
	// Timeout as in Client, for this target. 0: that of the Client.
	Timeout time.Duration
}

// Equal reports whether both targets ask for the same probe.
func (t Target) Equal(other Target) bool {
	return t.Address == other.Address && t.MountPort == other.MountPort && t.PortMapperPort == other.PortMapperPort &&
		t.Interval == other.Interval && t.Timeout == other.Timeout &&
		slices.Equal(t.Versions, other.Versions) && slices.Equal(t.Shares, other.Shares)
}

// Validate returns all reasons why the target can't be probed.
func (t Target) Validate() error {
	var problems []error
	problem := func(format string, args ...any) { problems = append(problems, fmt.Errorf(format, args...)) }
	if !t.Address.IsValid() || t.Address.Port() == 0 || t.Address.Addr().IsUnspecified() || t.Address.Addr().IsMulticast() {
		problem("address %q is not the IP address and port of one server", t.Address)
	}
	if len(t.Versions) == 0 {
		problem("no version is named; name 3, 4 or both")
	}
	for _, v := range t.Versions {
		if v != V3 && v != V4 {
			problem("version %d can't be probed; use 3 or 4", v)
		}
	}
	for _, share := range t.Shares {
		if err := validateShare(share); err != nil {
			problem("share %q %w", share, err)
		}
	}
	return errors.Join(problems...)
}

func validateShare(share string) error {
	switch {
	case !strings.HasPrefix(share, "/"), path.Clean(share) != share:
		return errors.New("is not an absolute path without \"..\", double and trailing slashes")
	case strings.ContainsRune(share, 0):
		return errors.New("contains a zero byte")
	case len(share) > wire.MaxPath:
		return fmt.Errorf("has %d bytes, more than %d", len(share), wire.MaxPath)
	case slices.ContainsFunc(names(share), func(name string) bool { return len(name) > wire.MaxName }):
		return fmt.Errorf("has a name of more than %d bytes", wire.MaxName)
	}
	return nil
}

// names are the directories of a share, from the root. "/" has none.
func names(share string) []string {
	return strings.FieldsFunc(share, func(r rune) bool { return r == '/' })
}
