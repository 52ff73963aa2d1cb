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
	port, mountPort string
	timeout         time.Duration
	soft            bool
	flags           uintptr
}

var flags = map[string]uintptr{"ro": syscall.MS_RDONLY, "nosuid": syscall.MS_NOSUID, "nodev": syscall.MS_NODEV, "noexec": syscall.MS_NOEXEC}

// ignored have no meaning to this client.
var ignored = map[string]bool{
	"rw": true, "hard": true, "nolock": true, "lock": true, "tcp": true, "async": true, "sync": true, "suid": true, "dev": true, "exec": true,
	"noatime": true, "relatime": true, "nodiratime": true, "noresvport": true, "resvport": true, "noac": true, "ac": true, "defaults": true, "intr": true, "nointr": true,
	"rsize": true, "wsize": true, "nconnect": true, "retrans": true, "proto": true, "mountproto": true, "actimeo": true, "acregmin": true, "acregmax": true, "acdirmin": true,
	"acdirmax": true, "lookupcache": true, "local_lock": true, "sec": true, "mountvers": true, "retry": true, "addr": true, "_netdev": true,
}

var errVersion = errors.New("requested NFS version or transport protocol is not supported")

func parseOptions(text string) (mountOptions, error) {
	o := mountOptions{port: "2049", timeout: time.Minute}
	for _, option := range strings.FieldsFunc(text, func(r rune) bool { return r == ',' }) {
		name, value, _ := strings.Cut(option, "=")
		switch {
		case name == "vers" || name == "nfsvers":
			if value != "3" {
				return o, errVersion
			}
		case name == "port":
			o.port = value
		case name == "mountport":
			o.mountPort = value
		case name == "soft":
			o.soft = true
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
	host = strings.TrimSuffix(strings.TrimPrefix(host, "["), "]")
	if net.ParseIP(host) == nil {
		return "", "", fmt.Errorf("%s is not an IP address", host)
	}
	return host, "/" + share, nil
}
