package rwx

import (
	"slices"
	"time"

	"github.com/fairlead-io/fairlead/internal/multus"
)

// ReportWithin is how long Multus may take to report the addresses of a pod that is Ready. CNI plugins run before containers start,
// so a pod that is Ready without a report has none: Multus was not there yet, or the network assigns no addresses.
const ReportWithin = 2 * time.Minute

// Clash is another Ready pod that reports one of a pod's addresses on one network.
type Clash struct {
	Pod string
	// Older: the other pod is the older one, and keeps the address.
	Older bool
}

// FindClashes notes which Ready pods report an address of another one, as host-local and static IPAM give out. Servers of one volume
// may have one address: a fixed address moves from one to the next.
func FindClashes(clients []Client, servers []Server) {
	held := map[[2]string]holder{}
	for i := range clients {
		if c := &clients[i]; c.Ready && !c.Terminating {
			holder{pod: c.Pod, created: c.Created, clash: &c.Clash}.add(held, c.Interfaces, slices.Concat(c.Networks, c.VolumeNetworks))
		}
	}
	for i := range servers {
		if s := &servers[i]; s.Ready && !s.Terminating {
			holder{s.Pod, s.Volume, s.Created, &s.Clash}.add(held, s.Reported, s.Networks)
		}
	}
}

// holder of an address.
type holder struct {
	pod, volume string
	created     time.Time
	clash       *Clash
}

// add its addresses on the networks that it asks for.
func (h holder) add(held map[[2]string]holder, reported []multus.Reported, networks []multus.Attachment) {
	for _, i := range reported {
		if !slices.ContainsFunc(networks, func(a multus.Attachment) bool { return a.Network.String() == i.Network }) {
			continue
		}
		for _, ip := range i.IPs {
			key := [2]string{i.Network, ip}
			other, taken := held[key]
			switch {
			case !taken:
				held[key] = h
			case other.pod != h.pod && (h.volume == "" || other.volume != h.volume):
				older := other.created.Before(h.created) || other.created.Equal(h.created) && other.pod < h.pod
				*other.clash, *h.clash = Clash{h.pod, !older}, Clash{other.pod, older}
			}
		}
	}
}
