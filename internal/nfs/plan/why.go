package plan

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"github.com/fairlead-io/fairlead/internal/nfs"
)

// why explains in words how a node reaches its backend, and why and when the node leaves.
func (s *State) why(n Node, backend netip.AddrPort) string {
	if n.Backend == "" {
		return "its address leads to no backend: the node gets one when it mounts again"
	}
	way, next := "the service's address points to it", "the address is pointed to another backend as soon as one takes it"
	switch {
	case s.Service.Exposure == nfs.PerNode:
		way, next = "the node mounted the backend's own address", "the node moves when its volumes are detached"
	case n.Slot != nil:
		way = fmt.Sprintf("slot %d points to it", *n.Slot)
	}
	words := []string{way}
	if i := slices.IndexFunc(s.members, func(m nfs.Backend) bool { return m.Addr == backend }); i >= 0 && s.members[i].Zone != "" && n.Zone != "" {
		if s.members[i].Zone == n.Zone {
			words = append(words, "in the node's zone")
		} else {
			words = append(words, "in another zone than the node")
		}
	}
	if n.Leaves != "" {
		words = append(words, fmt.Sprintf("backend is %s: %s", strings.ToLower(string(n.Leaves)), next))
	}
	if n.Split {
		words = append(words, "its volumes have different addresses until they are detached")
	}
	return strings.Join(words, "; ")
}
