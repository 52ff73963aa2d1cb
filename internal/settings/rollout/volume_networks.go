package rollout

import (
	"slices"
	"time"

	"github.com/fairlead-io/fairlead/internal/multus"
	"github.com/fairlead-io/fairlead/internal/rwx"
)

// Per-volume networks follow the same order as the default network: clients join first, servers leave
// first. Joining makes no server unreachable, so it does not wait for detached volumes. But a client
// restarts only on a node where no RWX volume is attached.

// requested returns the per-volume networks that volumes request. A StorageClass requests a network for
// its future volumes, so that clients are on the network before the first volume.
func (r Rollout) requested() []multus.Attachment {
	if r.NoneReachable() {
		return nil
	}
	var requested []multus.Attachment
	ask := func(n multus.Network) {
		if !n.IsZero() && n != r.Record.Servers.Network {
			requested = append(requested, multus.VolumeAttachment(n))
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
	return multus.InOrder(requested)
}

// NoneReachable: clients mount from the host, which is not on the networks of client pods.
func (r Rollout) NoneReachable() bool { return r.MountsFromHost && r.Desired.IsZero() }

// occupied returns the per-volume networks of servers and Services.
func (r Rollout) occupied() []multus.Attachment {
	var occupied []multus.Attachment
	for _, s := range r.Servers {
		occupied = append(occupied, s.Network)
	}
	for _, s := range r.Services {
		occupied = append(occupied, s.Network(r.Record.Clients))
	}
	return multus.InOrder(slices.DeleteFunc(occupied, func(a multus.Attachment) bool { return !a.ForVolumes() }))
}

// volumeServersToKeep leaves out networks that are no longer requested, or that a client or the
// template is not on.
func (r Rollout) volumeServersToKeep() []multus.Attachment {
	requested := r.requested()
	return filter(r.Record.VolumeServers, func(a multus.Attachment) bool {
		return slices.Contains(requested, a) && !r.astray(a)
	})
}

func (r Rollout) astray(a multus.Attachment) bool {
	return r.DaemonSet.Found && !slices.Contains(r.DaemonSet.VolumeNetworks, a) ||
		slices.ContainsFunc(r.Clients, func(c rwx.Client) bool { return !c.Terminating && !slices.Contains(c.VolumeNetworks, a) })
}

// volumeServersReady adds the networks that every client reaches. New servers on a deleted network would not start.
func (r Rollout) volumeServersReady() []multus.Attachment {
	requested := r.requested()
	return filter(r.Record.VolumeClients, func(a multus.Attachment) bool {
		return slices.Contains(r.Record.VolumeServers, a) || slices.Contains(requested, a) && r.exists(a.Network) && r.reachedByAll(a)
	})
}

func (r Rollout) reachedByAll(a multus.Attachment) bool {
	return r.DaemonSet.Found && r.DaemonSet.Observed && slices.Contains(r.DaemonSet.VolumeNetworks, a) &&
		r.missing() == 0 && r.reaching(a) == len(r.Clients)
}

// reaching counts the clients that surely reach the network.
func (r Rollout) reaching(a multus.Attachment) int {
	n := 0
	for _, c := range r.Clients {
		if c.Ready && !c.Terminating && slices.Contains(c.VolumeNetworks, a) && c.Reaches(a) {
			n++
		}
	}
	return n
}

// volumeClientsDue returns the per-volume networks that clients need, and how long clients keep a
// network only for pending admissions.
func (r Rollout) volumeClientsDue() (due []multus.Attachment, settling time.Duration) {
	needed := multus.InOrder(append(r.requested(), r.occupied()...))
	for _, a := range r.Record.VolumeClients {
		if slices.Contains(needed, a) || slices.Contains(r.Record.VolumeServers, a) {
			due = append(due, a)
		} else if left := r.settling(); left > 0 {
			due, settling = append(due, a), left
		}
	}
	for _, a := range needed {
		// A client on a missing network would not start.
		if r.exists(a.Network) {
			due = append(due, a)
		}
	}
	return multus.InOrder(due), settling
}

// UsesNetworks reports whether clients are on a network or must join one.
func (r Rollout) UsesNetworks() bool {
	return !r.Record.Clients.IsZero() || !r.Desired.IsZero() || len(r.volumeNetworks()) > 0
}

// allReach reports whether every client has an address of its own on the default network.
func (r Rollout) allReach(a multus.Attachment) bool {
	return !slices.ContainsFunc(r.Clients, func(c rwx.Client) bool { return !c.IsOn(a) || c.Lacks(a) != "" })
}

// volumeNetworks returns the per-volume networks that volumes need or clients are on.
func (r Rollout) volumeNetworks() []multus.Network {
	var names []multus.Network
	for _, a := range multus.InOrder(slices.Concat(r.requested(), r.occupied(), r.Record.VolumeClients)) {
		names = append(names, a.Network)
	}
	return names
}

// filter returns the attachments that match, sorted.
func filter(attachments []multus.Attachment, matches func(multus.Attachment) bool) []multus.Attachment {
	var list []multus.Attachment
	for _, a := range attachments {
		if matches(a) {
			list = append(list, a)
		}
	}
	return multus.InOrder(list)
}

// difference returns the attachments of the first list that the second lacks.
func difference(first, second []multus.Attachment) []multus.Attachment {
	return filter(first, func(a multus.Attachment) bool { return !slices.Contains(second, a) })
}
