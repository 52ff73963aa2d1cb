package options

import "math"

// versions of NFS that clients and probes speak. NFSv2 left Linux in 2021 (5.17).
var versions = oneOf("3", "4", "4.0", "4.1", "4.2")

var transports = oneOf("tcp", "tcp6", "udp", "udp6", "rdma", "rdma6")

// known are the options of nfs(5) and the file-system independent ones of mount(8).
var known = table()

func table() map[string]spec {
	t := map[string]spec{
		readAhead: {check: number(0, MaxReadAheadKB)},

		"vers": {"version", versions}, "nfsvers": {"version", versions}, "minorversion": {check: number(0, 2)},
		"v3": {"version", flag}, "v4": {"version", flag}, "v4.0": {"version", flag}, "v4.1": {"version", flag}, "v4.2": {"version", flag},
		"proto": {"transport", transports}, "tcp": {"transport", flag}, "udp": {"transport", flag}, "rdma": {"transport", flag},
		"port": {check: number(1, 65535)}, "mountport": {check: number(1, 65535)},
		"mountproto": {check: oneOf("tcp", "tcp6", "udp", "udp6")}, "mountvers": {check: number(1, 3)},
		"soft": {"recovery", flag}, "softerr": {"recovery", flag}, "hard": {"recovery", flag},
		"timeo": {check: number(1, math.MaxInt32)}, "retrans": {check: number(0, math.MaxInt32)}, "retry": {check: number(0, 10000)},
		"rsize": {check: number(1, math.MaxInt32)}, "wsize": {check: number(1, math.MaxInt32)}, "bsize": {check: number(1, math.MaxInt32)},
		"namlen": {check: number(1, 255)}, "nconnect": {check: number(1, 16)}, "max_connect": {check: number(1, 16)},
		"acregmin": {check: seconds}, "acregmax": {check: seconds}, "acdirmin": {check: seconds}, "acdirmax": {check: seconds}, "actimeo": {check: seconds},
		"sec":         {check: oneOf("none", "sys", "krb5", "krb5i", "krb5p")},
		"xprtsec":     {check: oneOf("none", "tls", "mtls")},
		"lookupcache": {check: oneOf("all", "none", "pos", "positive")},
		"local_lock":  {check: oneOf("all", "flock", "posix", "none")},
		"write":       {check: oneOf("lazy", "eager", "wait")},
		"rdirplus":    {"rdirplus", optional(oneOf("none", "force"))}, "nordirplus": {"rdirplus", flag},
		"fsc": {"fsc", optional(text)}, "nofsc": {"fsc", flag},
		"clientaddr": {check: text}, "comment": {check: text},
		"context": {check: text}, "fscontext": {check: text}, "defcontext": {check: text}, "rootcontext": {check: text},

		"fg":          {check: flag},
		"sloppy":      {check: flag},
		"atime":       {"atime", flag},
		"noatime":     {"atime", flag},
		"relatime":    {"atime", flag},
		"strictatime": {"atime", flag},
		"norelatime":  {check: flag}, "nostrictatime": {check: flag},
		"defaults": {check: flag}, "_netdev": {check: flag}, "nofail": {check: flag},
		"ro": {"rw", flag}, "rw": {"rw", flag}, "sync": {"sync", flag}, "async": {"sync", flag},
		"silent": {"silent", flag}, "loud": {"silent", flag}, "dirsync": {check: flag},
		"fatal_neterrors": {check: oneOf("default", "ENETDOWN:ENETUNREACH", "none")},
	}
	// Options of two spellings, with and without "no".
	for _, name := range []string{
		"lock", "cto", "ac", "acl", "sharecache", "resvport", "migration", "intr", "softreval", "trunkdiscovery", "alignwrite", "posix",
		"diratime", "lazytime", "exec", "suid", "dev", "iversion", "mand", "auto", "user", "symfollow",
	} {
		t[name], t["no"+name] = spec{name, flag}, spec{name, flag}
	}
	for why, names := range refusals {
		for _, name := range names {
			t[name] = spec{check: refused(why)}
		}
	}
	return t
}

func seconds(name, value string, hasValue bool) error {
	return number(0, math.MaxInt32)(name, value, hasValue)
}
