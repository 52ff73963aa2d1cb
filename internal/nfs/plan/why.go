package plan

import (
	"fmt"
	"slices"
	"strings"

	"github.com/fairlead-io/fairlead/internal/nfs"
	"github.com/fairlead-io/fairlead/internal/nfs/assign"
)

// why explains in words how a node reaches its backend, and why and when the node leaves.
func (s *State) why(n Node) string {
	if !n.Backend.IsValid() {
		return "its address leads to no backend: the node gets one when it mounts again"
	}
	words := []string{s.way(n)}
	if i := slices.IndexFunc(s.members, func(m nfs.Member) bool { return m.Addr == n.Backend }); i >= 0 {
		switch zone := s.members[i].Zone; {
		case zone == "" || n.Zone == "":
		case zone == n.Zone:
			words = append(words, "in the node's zone")
		default:
			words = append(words, "in another zone than the node")
		}
	}
	if n.Leaves != "" {
		words = append(words, fmt.Sprintf("backend is %s: %s", ReasonText(n.Leaves), s.next(n)))
	}
	if n.Split {
		words = append(words, "its volumes have different addresses until they are detached")
	}
	return strings.Join(words, "; ")
}

// way is how the node reaches the backend.
func (s *State) way(n Node) string {
	switch {
	case s.Service.Exposure == nfs.PerNode:
		return "the node mounted the backend's own address"
	case s.Service.Exposure == nfs.Stable:
		return "the service's address points to it"
	}
	return fmt.Sprintf("slot %d points to it", n.Slot)
}

// next is when the node leaves the backend.
func (s *State) next(n Node) string {
	if s.Service.Exposure == nfs.PerNode {
		return "the node moves when its volumes are detached"
	}
	return "the address is pointed to another backend as soon as one takes it"
}

// ReasonText is a reason in words.
func ReasonText(r assign.Reason) string {
	switch r {
	case assign.Gone:
		return "gone"
	case assign.Down:
		return "down"
	case assign.Draining:
		return "draining"
	case assign.Excess:
		return "above the average"
	case assign.Unused:
		return "unused"
	case assign.New:
		return "new"
	}
	return strings.ToLower(string(r))
}
