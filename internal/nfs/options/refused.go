package options

import "fmt"

const blockDevice = "it is for a block device of the node"

// refusals are options that mount(8) or the kernel would obey, by the reason why no volume may have them: they mount
// something else than the share from the service's server, or act on the node. Source of the names: mount(8), and
// libmount/src/optmap.c of util-linux 2.38.
var refusals = map[string][]string{
	"the address comes from the NFS service":              {"addr", "mountaddr", "mounthost"},
	"the source comes from the NFS service and the share": {"source"},
	"the server is found by its port":                     {"nfsprog", "mountprog"},
	"it mounts a directory of the node":                   {"bind", "rbind"},
	"it moves a mount of the node":                        {"move"},
	"it changes a mount that exists":                      {"remount"},
	"the driver would take a mount that failed for done":  {"bg"},
	"it changes propagation, which the kubelet decides":   {"private", "rprivate", "slave", "rslave", "shared", "rshared", "unbindable", "runbindable"},
	"it runs a program of the node plugin to mount":       {"helper", "uhelper"},
	blockDevice: {"loop", "offset", "sizelimit", "encryption"},
}

func refused(why string) func(string, string, bool) error {
	return func(name, _ string, _ bool) error { return fmt.Errorf("%s is not allowed: %s; remove it", name, why) }
}
