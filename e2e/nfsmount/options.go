package main

import (
	"errors"
	"fmt"
	"net"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// mountOptions as nfs(5) has them.
type mountOptions struct {
	version         int // 3 or 4
	port, mountPort string
	timeout         time.Duration
	retries         int
	soft            bool
	softError       syscall.Errno
	reserved        bool // source port
	flags           uintptr
	address         string // of the host
}

// softTime is how long a call takes to fail; 0 is for ever. The kernel's client waits longer
// before each try.
func (o mountOptions) softTime() time.Duration {
	if !o.soft {
		return 0
	}
	return o.timeout * time.Duration(1+o.retries)
}

var flags = map[string]uintptr{"ro": syscall.MS_RDONLY, "nosuid": syscall.MS_NOSUID, "nodev": syscall.MS_NODEV, "noexec": syscall.MS_NOEXEC}

// ignored have no meaning to this client.
var ignored = map[string]bool{
	"rw": true, "nolock": true, "lock": true, "tcp": true, "async": true, "sync": true, "suid": true, "dev": true, "exec": true,
	"noatime": true, "relatime": true, "nodiratime": true, "noac": true, "ac": true, "defaults": true, "intr": true, "nointr": true,
	"rsize": true, "wsize": true, "nconnect": true, "proto": true, "mountproto": true, "actimeo": true, "acregmin": true, "acregmax": true, "acdirmin": true,
	"acdirmax": true, "lookupcache": true, "local_lock": true, "sec": true, "mountvers": true, "retry": true, "_netdev": true, "clientaddr": true,
	"sharecache": true, "nosharecache": true, "cto": true, "nocto": true, "fsc": true, "nofsc": true, "softreval": true, "nosoftreval": true, "migration": true, "nomigration": true,
	"minorversion": true, "max_connect": true, "rdirplus": true, "nordirplus": true, "bg": true, "fg": true,
}

var errVersion = errors.New("requested NFS version or transport protocol is not supported")

// versions that can be asked for, and what serves them.
var versions = map[string]int{"3": 3, "4": 4, "4.0": 4, "4.1": 4, "4.2": 4}

// parseOptions takes the version where the options name none.
func parseOptions(text string, version int) (mountOptions, error) {
	o := mountOptions{version: version, port: "2049", timeout: time.Minute, retries: 2, softError: syscall.EIO, reserved: true}
	for _, option := range strings.FieldsFunc(text, func(r rune) bool { return r == ',' }) {
		name, value, _ := strings.Cut(option, "=")
		switch {
		case name == "vers" || name == "nfsvers":
			if o.version = versions[value]; o.version == 0 {
				return o, errVersion
			}
		case name == "addr":
			o.address = value
		case name == "port":
			o.port = value
		case name == "mountport":
			o.mountPort = value
		case name == "soft":
			o.soft = true
		case name == "softerr":
			o.soft, o.softError = true, syscall.ETIMEDOUT
		case name == "hard":
			o.soft = false
		case name == "resvport" || name == "noresvport":
			o.reserved = name == "resvport"
		case name == "retrans":
			retries, err := strconv.Atoi(value)
			if err != nil || retries < 0 {
				return o, fmt.Errorf("retrans=%s is not a number of retries", value)
			}
			o.retries = retries
		case name == "timeo":
			tenths, err := strconv.Atoi(value)
			if err != nil || tenths < 1 {
				return o, fmt.Errorf("timeo=%s is not a number of tenths of a second", value)
			}
			o.timeout = time.Duration(tenths) * 100 * time.Millisecond
		case flags[name] != 0:
			o.flags |= flags[name]
		case !ignored[name]:
			return o, fmt.Errorf("an incorrect mount option was specified: %s", option)
		}
	}
	if o.mountPort == "" || o.mountPort == "0" {
		o.mountPort = o.port
	}
	return o, nil
}

// splitSource splits HOST:/share, where an IPv6 address is in brackets.
func splitSource(source string) (host, share string, err error) {
	host, share, found := strings.Cut(source, ":/")
	if !found {
		return "", "", fmt.Errorf("%s is not HOST:/SHARE", source)
	}
	return strings.TrimSuffix(strings.TrimPrefix(host, "["), "]"), "/" + share, nil
}

// withAddress adds the address of the source's host to a command line, as the kernel's mount helper does: the name is
// looked up where the helper was called.
func withAddress(args []string) ([]string, error) {
	source, _, options, err := arguments(args[1:])
	if err != nil {
		return nil, err
	}
	host, _, err := splitSource(source)
	if err != nil {
		return nil, err
	}
	addresses, err := net.LookupHost(host)
	if err != nil {
		return nil, fmt.Errorf("Failed to resolve server %s: %w", host, err)
	}
	return append(args, "-o", strings.TrimPrefix(options+",addr="+addresses[0], ",")), nil
}
