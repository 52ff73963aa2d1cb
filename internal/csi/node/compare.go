package node

import (
	"fmt"
	"slices"
	"strings"

	"github.com/fairlead-io/fairlead/internal/csi/mounts"
)

// difference names the first visible difference between a mount and a request; empty if
// there is none. It compares what mountinfo shows, and asks no server.
//
// Only the NFS options that give a mount its own superblock are compared (nfs_compare_super). Other options may come from
// an earlier mount of the same export, or from negotiation with the server (rsize, wsize).
func difference(have mounts.Mount, want *request) string {
	if have.Source != want.source {
		return fmt.Sprintf("its source is %s, not %s", have.Source, want.source)
	}
	if readOnly := slices.Contains(have.Options, "ro"); readOnly != want.readOnly {
		return fmt.Sprintf("read-only is %t, not %t", readOnly, want.readOnly)
	}
	shown := decisions(append(slices.Clone(have.Options), have.SuperOptions...))
	for key, w := range decisions(want.options) {
		h, ok := shown[key]
		if flag := perMount[key]; flag && !ok {
			h, ok = strings.TrimPrefix(w, "no"), true // mountinfo shows only the "no" form
		}
		if ok && !agree(key, h, w) {
			return fmt.Sprintf("it has %s, not %s", h, w)
		}
	}
	return ""
}

// perMount are flags of a mount; mountinfo shows their "no" form only.
var perMount = map[string]bool{"suid": true, "dev": true, "exec": true, "diratime": true}

// compared maps an option to its key in decisions. Missing options are not compared.
var compared = map[string]string{
	"vers": "version", "nfsvers": "version", "v3": "version", "v4": "version", "v4.0": "version", "v4.1": "version", "v4.2": "version",
	"proto": "transport", "tcp": "transport", "udp": "transport", "rdma": "transport",
	"hard": "recovery", "soft": "recovery", "softerr": "recovery",
	"sec": "sec", "acregmin": "acregmin", "acregmax": "acregmax", "acdirmin": "acdirmin", "acdirmax": "acdirmax",
	"suid": "suid", "nosuid": "suid", "dev": "dev", "nodev": "dev", "exec": "exec", "noexec": "exec", "diratime": "diratime", "nodiratime": "diratime",
}

// decisions are the compared options of a mount, each in one spelling.
func decisions(list []string) map[string]string {
	result, minor := map[string]string{}, ""
	for _, option := range list {
		name, value, _ := strings.Cut(option, "=")
		key := compared[name]
		switch key {
		case "":
			if name == "minorversion" {
				minor = value
			}
			continue
		case "version":
			result[key] = "vers=" + strings.TrimPrefix(name, "v")
			if value != "" {
				result[key] = "vers=" + value
			}
		case "transport":
			result[key] = "proto=" + name
			if value != "" {
				result[key] = "proto=" + value
			}
		default:
			result[key] = option
		}
	}
	if minor != "" && result["version"] == "vers=4" {
		result["version"] = "vers=4." + minor
	}
	return result
}

// agree reports whether what mountinfo shows is what was asked for.
func agree(key, have, want string) bool {
	switch key {
	case "version": // vers=4 takes any minor version; the kernel shows 4.0 for it too
		return have == want || want == "vers=4" && strings.HasPrefix(have, "vers=4.") || have == "vers=4" && want == "vers=4.0"
	case "transport": // the kernel shows tcp6 for an IPv6 server
		return have == want || have == want+"6"
	case "sec": // the kernel's name of AUTH_NONE (nfs_pseudoflavour_to_name)
		return have == want || have == "sec=null" && want == "sec=none"
	}
	return have == want
}
