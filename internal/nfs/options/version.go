package options

import (
	"cmp"
	"slices"
	"strings"
)

// Version is the NFS version that the options name, 3 or 4; 0 where client and server agree on one.
func (o Options) Version() int {
	for _, text := range o.Mount {
		if name, value, _ := strings.Cut(text, "="); groupOf(text) == "version" {
			return int(cmp.Or(value, strings.TrimPrefix(name, "v"))[0] - '0')
		}
	}
	return 0
}

// Has reports whether the options have a flag, such as nolock.
func (o Options) Has(name string) bool { return slices.Contains(o.Mount, name) }

// Value of an option; empty if the options do not have it.
func (o Options) Value(name string) string {
	for _, text := range o.Mount {
		if value, found := strings.CutPrefix(text, name+"="); found {
			return value
		}
	}
	return ""
}

// Transport is tcp, udp or rdma, with a 6 for IPv6; empty where client and server agree on one.
func (o Options) Transport() string {
	for _, text := range o.Mount {
		if name, value, _ := strings.Cut(text, "="); groupOf(text) == "transport" {
			return cmp.Or(value, name)
		}
	}
	return ""
}
