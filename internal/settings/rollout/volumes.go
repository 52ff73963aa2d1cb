package rollout

import (
	"fmt"
	"slices"
	"time"

	"github.com/fairlead-io/fairlead/internal/settings/catalog"
	"github.com/fairlead-io/fairlead/internal/storage"
)

// Progress is how far the networks of single volumes are, and whether the common
// one was deleted. The zero Progress is: nothing to report.
type Progress struct {
	Phase    Phase
	Message  string
	Blockers []catalog.Blocker
}

// chooseNetworkFirst is why no volume has a network of its own where all are on the cluster network.
const chooseNetworkFirst = "the settings choose no network for RWX volumes, so CSI plugin pods mount from the host's network, where no other is reached: choose one first"

// missingNetworkRetry is when to look again whether a network exists that a step
// waits for: the kind itself may be missing, so there is nothing to watch.
const MissingNetworkRetry = 30 * time.Second

// nextVolumes goes on with the networks of single volumes where the network of
// all is at rest. What the settings are told stays: they are applied.
func (r Rollout) nextVolumes(s Step) Step {
	s.Volumes = r.waiting()
	common := r.Record.Clients.Network
	if !r.exists(common) {
		deleted := deletedNetwork(common, ", and the server pods of RWX volumes,")
		s = s.withProgress(PhaseWaiting, deleted.Message, []catalog.Blocker{deleted})
	}
	if ready := r.volumeServersReady(); !slices.Equal(ready, r.Record.VolumeServers) {
		return s.record(RecordVolumeServers, ready, PhaseSwitching, "every CSI plugin pod is there: new servers may be on volume networks "+named(ready))
	}
	// Before any restart: a volume at rest must not come up where a client is missing.
	if idle := r.misplacedServices(); len(idle) > 0 {
		replaced := s.replace(idle)
		s.Action, s.Services = replaced.Action, replaced.Services
		return s.withProgress(PhaseSwitching, replaced.Message, nil)
	}
	due, settling := r.volumeClientsDue()
	if problems := r.daemonSetProblems(true); len(due) > 0 && len(problems) > 0 {
		return s.withProgress(PhaseWaiting, catalog.Short(problems), problems)
	}
	if !slices.Equal(due, r.Record.VolumeClients) {
		return s.record(RecordVolumeClients, due, PhaseRolling, "CSI plugin pods are built with volume networks "+named(due))
	}
	if len(r.deletedNetworks()) > 0 || !r.exists(common) {
		// No client that restarts would start again: waiting has said so.
	} else if done, rolled := r.rollClients(Step{Updated: s.Updated, Total: s.Total}, r.outdated()); !done {
		s.Action, s.Clients, s.After = rolled.Action, rolled.Clients, rolled.After
		s = s.withProgress(rolled.Phase, rolled.Message, rolled.Blockers)
	} else if unready := r.notReaching(); len(unready) > 0 {
		s = s.withProgress(PhaseRolling, catalog.Short(unready), unready)
	}
	if settling > 0 && s.Action == Nothing {
		s = s.withProgress(PhaseWaiting, "letting Services settle that were just admitted", nil)
		s.After = sooner(s.After, settling)
	}
	return s
}

// notReaching are the clients that keep servers from the first network that is not theirs yet.
func (r Rollout) notReaching() []catalog.Blocker {
	for _, a := range difference(r.Record.VolumeClients, r.Record.VolumeServers) {
		if slices.Contains(r.asked(), a) {
			return r.unready(a)
		}
	}
	return nil
}

func (s Step) record(action Action, networks []storage.Attachment, phase Phase, message string) Step {
	s.Action, s.Networks = action, networks
	return s.withProgress(phase, message, nil)
}

// withProgress puts what is being done, and what it waits for, before what volumes wait for.
func (s Step) withProgress(phase Phase, message string, blockers []catalog.Blocker) Step {
	s.Volumes.Phase = phase
	s.Volumes.Message = catalog.Joined(message, s.Volumes.Message)
	s.Volumes.Blockers = slices.Concat(blockers, s.Volumes.Blockers)
	return s
}

// waiting says which volumes are not on the network they ask for, and why.
func (r Rollout) waiting() Progress {
	var p Progress
	var waits, anew []string
	for _, v := range r.Volumes {
		if !v.Shared {
			continue
		}
		place, ready := r.Record.Place(v.Request)
		switch {
		case v.Request.Problem != "":
			p.Blockers = append(p.Blockers, catalog.Blocker{Kind: catalog.BlockedByRequest, Name: v.Name, Message: v.Request.Problem})
			waits = append(waits, fmt.Sprintf("%s has a request that can't be followed: %s", v.Name, v.Request.Problem))
		case !ready:
			waits = append(waits, fmt.Sprintf("%s for %s (%s)", v.Name, v.Request.Network, v.Request.Source))
		case v.Attached && (place.Network.ForVolumes() || !place.Identity.IsZero()) && r.isElsewhere(v.Name, place):
			anew = append(anew, v.Name)
		}
	}
	if r.unreachable() && len(waits) > 0 {
		p.Blockers = append(p.Blockers, catalog.Blocker{Kind: catalog.BlockedByNetwork, Name: "cluster network", Message: chooseNetworkFirst})
	}
	for _, n := range r.missingNetworks() {
		p.Blockers = append(p.Blockers, r.missingNetwork(n))
	}
	if len(p.Blockers)+len(waits) > 0 {
		p.Phase = PhaseWaiting
	}
	if len(waits) > 0 {
		p.Message = "RWX volumes wait for their networks: " + catalog.FirstOf(waits)
	}
	for _, b := range p.Blockers {
		if b.Kind == catalog.BlockedByNetwork {
			p.Message = catalog.Joined(p.Message, b.Message)
		}
	}
	if len(anew) > 0 {
		p.Message = catalog.Joined(p.Message, "yet to be attached anew for their networks: "+catalog.FirstOf(anew))
	}
	return p
}

func (r Rollout) isElsewhere(volume string, place storage.Placement) bool {
	return slices.ContainsFunc(r.lookup().services[volume], func(s *storage.Service) bool { return s.Placement(r.Record.Clients) != place })
}

// missingNetworks are the per-volume networks that do not exist.
func (r Rollout) missingNetworks() []storage.Network {
	return slices.DeleteFunc(r.volumeNetworks(), r.exists)
}

// deletedNetworks are the per-volume networks that clients are built with and that are gone.
func (r Rollout) deletedNetworks() []storage.Attachment {
	return chosen(r.Record.VolumeClients, func(a storage.Attachment) bool { return !r.exists(a.Network) })
}

// missingNetwork says what to do about a per-volume network that does not exist.
// One that clients are built with was deleted, and pods that restart need it.
func (r Rollout) missingNetwork(n storage.Network) catalog.Blocker {
	if slices.Contains(r.deletedNetworks(), storage.VolumeAttachment(n)) {
		return deletedNetwork(n, r.usersOf(n))
	}
	return catalog.Blocker{Kind: catalog.BlockedByNetwork, Name: n.String(), Message: fmt.Sprintf("there is no NetworkAttachmentDefinition %s: create it, or ask for another network", n)}
}

func deletedNetwork(n storage.Network, users string) catalog.Blocker {
	return catalog.Blocker{Kind: catalog.BlockedByNetwork, Name: n.String(), Message: fmt.Sprintf(
		"NetworkAttachmentDefinition %s was deleted: CSI plugin pods%s do not start again without it: create it again", n, users)}
}

// usersOf names the volumes that ask for a network.
func (r Rollout) usersOf(n storage.Network) string {
	var volumes []string
	for _, v := range r.Volumes {
		if v.Shared && v.Request.Network == n {
			volumes = append(volumes, v.Name)
		}
	}
	if len(volumes) == 0 {
		return ""
	}
	return ", and the server pods of " + catalog.FirstOf(volumes) + ","
}

func named(attachments []storage.Attachment) string {
	var names []string
	for _, a := range attachments {
		names = append(names, a.Network.String())
	}
	if len(names) == 0 {
		return "no more"
	}
	return catalog.FirstOf(names)
}
