package rollout

import (
	"slices"
	"time"

	"github.com/fairlead-io/fairlead/internal/storage"
)

// Networks of single volumes come and go by the same two halves as the network
// of all: clients join a network first, servers use it when every client is
// there; servers leave it first, clients when nothing is left on it. Joining
// makes nothing unreachable, so it waits for no volume to be detached, but a
// client still restarts only where none is attached.

// asked are the networks that volumes ask for beside the one that all are on.
// A class asks for its future volumes, so that the first finds its network there.
func (r Rollout) asked() []storage.Attachment {
	if r.unreachable() {
		return nil
	}
	var asked []storage.Attachment
	ask := func(n storage.Network) {
		if !n.IsZero() && n != r.Record.Servers.Network {
			asked = append(asked, storage.VolumeAttachment(n))
		}
	}
	for _, v := range r.Volumes {
		if v.Shared {
			ask(v.Request.Network)
		}
	}
	for _, n := range r.ClassNetworks {
		ask(n)
	}
	return storage.InOrder(asked)
}

// unreachable: clients mount from the host, where no network of their pods is.
func (r Rollout) unreachable() bool { return r.MountsFromHost && r.Desired.IsZero() }

// occupied are the networks that servers are on, or Services that new server pods would follow.
func (r Rollout) occupied() []storage.Attachment {
	var occupied []storage.Attachment
	for _, s := range r.Servers {
		occupied = append(occupied, s.Network)
	}
	for _, s := range r.Services {
		occupied = append(occupied, s.Network(r.Record.Clients))
	}
	return storage.InOrder(slices.DeleteFunc(occupied, func(a storage.Attachment) bool { return !a.ForVolumes() }))
}

// volumeServersThatStay leaves out networks that nobody asks for any more, and
// those that a client, or the template that new ones are made from, is not on.
func (r Rollout) volumeServersThatStay() []storage.Attachment {
	asked := r.asked()
	return chosen(r.Record.VolumeServers, func(a storage.Attachment) bool {
		return slices.Contains(asked, a) && !r.astray(a)
	})
}

func (r Rollout) astray(a storage.Attachment) bool {
	return r.DaemonSet.Found && !slices.Contains(r.DaemonSet.VolumeNetworks, a) ||
		slices.ContainsFunc(r.Clients, func(c storage.Client) bool { return !c.Terminating && !slices.Contains(c.VolumeNetworks, a) })
}

// volumeServersReady adds the networks that every client is known to reach.
func (r Rollout) volumeServersReady() []storage.Attachment {
	asked := r.asked()
	return chosen(r.Record.VolumeClients, func(a storage.Attachment) bool {
		return slices.Contains(r.Record.VolumeServers, a) || slices.Contains(asked, a) && r.reachedByAll(a)
	})
}

func (r Rollout) reachedByAll(a storage.Attachment) bool {
	return r.DaemonSet.Found && r.DaemonSet.Observed && slices.Contains(r.DaemonSet.VolumeNetworks, a) &&
		r.missing() == 0 && r.reaching(a) == len(r.Clients)
}

// reaching counts the clients that reach the network for sure.
func (r Rollout) reaching(a storage.Attachment) int {
	n := 0
	for _, c := range r.Clients {
		if c.Ready && !c.Terminating && slices.Contains(c.VolumeNetworks, a) && c.Reaches(a) {
			n++
		}
	}
	return n
}

// volumeClientsDue are the networks that clients should be built with, and how
// long those stay that are there only for Services on their way.
func (r Rollout) volumeClientsDue() (due []storage.Attachment, settling time.Duration) {
	needed := storage.InOrder(append(r.asked(), r.occupied()...))
	for _, a := range r.Record.VolumeClients {
		if slices.Contains(needed, a) || slices.Contains(r.Record.VolumeServers, a) {
			due = append(due, a)
		} else if left := r.Record.ServersSince.Add(r.Settle).Sub(r.Now); left > 0 {
			due, settling = append(due, a), left
		}
	}
	for _, a := range needed {
		// A client that asks for a network that is not there would not start.
		if r.exists(a.Network) {
			due = append(due, a)
		}
	}
	return storage.InOrder(due), settling
}

// UsesNetworks tells whether clients are built with a network, or have to join
// one: whether it exists must be known before the next step is decided.
func (r Rollout) UsesNetworks() bool {
	return !r.Record.Clients.IsZero() || !r.Desired.IsZero() || len(r.volumeNetworks()) > 0
}

// allOn tells whether every client asks for the common network.
func (r Rollout) allOn(a storage.Attachment) bool {
	return !slices.ContainsFunc(r.Clients, func(c storage.Client) bool { return !c.IsOn(a) })
}

// volumeNetworks are the per-volume networks that volumes need or clients are built with.
func (r Rollout) volumeNetworks() []storage.Network {
	var names []storage.Network
	for _, a := range storage.InOrder(slices.Concat(r.asked(), r.occupied(), r.Record.VolumeClients)) {
		names = append(names, a.Network)
	}
	return names
}

// chosen are the attachments that the choice falls on, in order.
func chosen(attachments []storage.Attachment, choice func(storage.Attachment) bool) []storage.Attachment {
	var list []storage.Attachment
	for _, a := range attachments {
		if choice(a) {
			list = append(list, a)
		}
	}
	return storage.InOrder(list)
}

// difference are those of the first that the second lacks.
func difference(first, second []storage.Attachment) []storage.Attachment {
	return chosen(first, func(a storage.Attachment) bool { return !slices.Contains(second, a) })
}
