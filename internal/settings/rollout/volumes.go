package rollout

import (
	"fmt"
	"slices"
	"time"

	"github.com/fairlead-io/fairlead/internal/multus"
	"github.com/fairlead-io/fairlead/internal/rwx"
	"github.com/fairlead-io/fairlead/internal/settings/catalog"
)

// Progress is the state of per-volume networks, and of a deleted default network. The zero Progress
// has nothing to report.
type Progress struct {
	Phase    Phase
	Message  string
	Blockers []catalog.Blocker
}

// chooseNetworkFirst is why per-volume networks need a default network.
const chooseNetworkFirst = "the settings choose no network for RWX volumes, so CSI plugin pods mount from the host's network and reach no other: choose a network first"

// MissingNetworkRetry is when to look for a missing network again. Networks are watched only once there are some: their kind
// may not be installed.
const MissingNetworkRetry = 30 * time.Second

// nextVolumes returns the next step of per-volume networks, once the default network is settled. The
// settings stay applied.
func (r Rollout) nextVolumes(s Step) Step {
	s.Volumes = r.waiting()
	network := r.Record.Clients.Network
	if !r.exists(network) {
		deleted := r.lostNetwork(network, ", and the server pods of RWX volumes,")
		s = s.withProgress(PhaseWaiting, deleted.Message, []catalog.Blocker{deleted})
	}
	if ready := r.volumeServersReady(); !slices.Equal(ready, r.Record.VolumeServers) {
		return s.record(RecordVolumeServers, ready, PhaseSwitching, "every CSI plugin pod is ready: new servers may use volume networks: "+networkNames(ready))
	}
	// Before any restart: an idle volume must not start on a network that a client is not on.
	if idle := r.replaceable(r.misplacedServices()); len(idle) > 0 {
		replaced := s.replace(idle)
		s.Action, s.Services = replaced.Action, replaced.Services
		return s.withProgress(PhaseSwitching, replaced.Message, nil)
	}
	due, settling := r.volumeClientsDue()
	if problems := r.daemonSetProblems(true); len(due) > 0 && len(problems) > 0 {
		return s.withProgress(PhaseWaiting, catalog.Short(problems), problems)
	}
	if !slices.Equal(due, r.Record.VolumeClients) {
		return s.record(RecordVolumeClients, due, PhaseRolling, "CSI plugin pods get volume networks: "+networkNames(due))
	}
	if len(r.deletedNetworks()) > 0 || !r.exists(network) {
		// A client that restarts would not start again. r.waiting has reported that.
	} else if done, rolled := r.rollClients(Step{Updated: s.Updated, Total: s.Total}, r.outdated()); !done {
		s.Action, s.Clients, s.After = rolled.Action, rolled.Clients, rolled.After
		s = s.withProgress(rolled.Phase, rolled.Message, rolled.Blockers)
	} else if unready := r.notReaching(); len(unready) > 0 {
		s = s.withProgress(PhaseRolling, catalog.Short(unready), unready)
	}
	if settling > 0 && s.Action == Nothing {
		s = s.withProgress(PhaseWaiting, r.settlingMessage(), nil)
		s.After = sooner(s.After, settling)
	}
	return s
}

// notReaching returns the clients that block the first network that servers may not use yet.
func (r Rollout) notReaching() []catalog.Blocker {
	for _, a := range difference(r.Record.VolumeClients, r.Record.VolumeServers) {
		if slices.Contains(r.requested(), a) {
			return r.unready(a)
		}
	}
	return nil
}

func (s Step) record(action Action, networks []multus.Attachment, phase Phase, message string) Step {
	s.Action, s.Networks = action, networks
	return s.withProgress(phase, message, nil)
}

// withProgress puts the current work before the requests that wait.
func (s Step) withProgress(phase Phase, message string, blockers []catalog.Blocker) Step {
	s.Volumes.Phase = phase
	s.Volumes.Message = catalog.Joined(message, s.Volumes.Message)
	s.Volumes.Blockers = slices.Concat(blockers, s.Volumes.Blockers)
	return s
}

// waiting says which volumes are not on their requested network, and why.
func (r Rollout) waiting() Progress {
	var p Progress
	var waits, reattach []string
	for _, v := range r.Volumes {
		if !v.Shared {
			continue
		}
		place, ready := r.Record.Place(v.Request)
		switch {
		case v.Request.Problem != "":
			p.Blockers = append(p.Blockers, catalog.Blocker{Kind: catalog.BlockedByRequest, Name: v.Name, Message: v.Request.Problem})
			waits = append(waits, fmt.Sprintf("%s has an invalid request: %s", v.Name, v.Request.Problem))
		case !ready:
			waits = append(waits, fmt.Sprintf("%s for %s (%s)", v.Name, v.Request.Network, v.Request.Source))
		case v.Attached && (place.Network.ForVolumes() || !place.Identity.IsZero()) && r.isElsewhere(v.Name, place):
			reattach = append(reattach, v.Name)
		}
	}
	if r.NoneReachable() && len(waits) > 0 {
		p.Blockers = append(p.Blockers, catalog.Blocker{Kind: catalog.BlockedByNetwork, Name: "cluster network", Message: chooseNetworkFirst})
	}
	for _, n := range r.missingNetworks() {
		p.Blockers = append(p.Blockers, r.missingNetwork(n))
	}
	refused := r.notReplaced(r.misplacedByRequest())
	p.Blockers = append(p.Blockers, refused...)
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
	if len(refused) > 0 {
		p.Message = catalog.Joined(p.Message, catalog.Short(refused))
	}
	if len(reattach) > 0 {
		p.Message = catalog.Joined(p.Message, "still to be reattached for their networks: "+catalog.FirstOf(reattach))
	}
	return p
}

func (r Rollout) isElsewhere(volume string, place multus.Placement) bool {
	return slices.ContainsFunc(r.lookup().services[volume], func(s *rwx.Service) bool { return s.Placement(r.Record.Clients) != place })
}

// missingNetworks returns the per-volume networks that do not exist.
func (r Rollout) missingNetworks() []multus.Network {
	return slices.DeleteFunc(r.volumeNetworks(), r.exists)
}

// deletedNetworks returns the per-volume networks of clients on which no pod can start now.
func (r Rollout) deletedNetworks() []multus.Attachment {
	return filter(r.Record.VolumeClients, func(a multus.Attachment) bool { return !r.exists(a.Network) })
}

// missingNetwork says what to do about a missing per-volume network. If clients are on the network, it
// was deleted, and pods cannot restart without it.
func (r Rollout) missingNetwork(n multus.Network) catalog.Blocker {
	if slices.Contains(r.deletedNetworks(), multus.VolumeAttachment(n)) {
		return r.lostNetwork(n, r.usersOf(n))
	}
	what := "there is no NetworkAttachmentDefinition %s: create it, or ask for another network"
	if _, there := r.Networks[n]; there {
		what = "the config of NetworkAttachmentDefinition %s is no CNI configuration: correct it, or ask for another network"
	}
	return catalog.Blocker{Kind: catalog.BlockedByNetwork, Name: n.String(), Message: fmt.Sprintf(what, n)}
}

// lostNetwork says why pods that are on a network cannot restart. users are what else needs the network.
func (r Rollout) lostNetwork(n multus.Network, users string) catalog.Blocker {
	what := "NetworkAttachmentDefinition %s was deleted: CSI plugin pods%s cannot restart without it: recreate it"
	if _, there := r.Networks[n]; there {
		what = "the config of NetworkAttachmentDefinition %s is no CNI configuration: CSI plugin pods%s cannot restart with it: correct it"
	}
	return catalog.Blocker{Kind: catalog.BlockedByNetwork, Name: n.String(), Message: fmt.Sprintf(what, n, users)}
}

// usersOf names the volumes that request a network.
func (r Rollout) usersOf(n multus.Network) string {
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

// networkNames lists networks: `team-x/nfs, team-y/nfs`.
func networkNames(attachments []multus.Attachment) string {
	var names []string
	for _, a := range attachments {
		names = append(names, a.Network.String())
	}
	if len(names) == 0 {
		return "none"
	}
	return catalog.FirstOf(names)
}

// VolumeState says where the Service of a volume is.
type VolumeState string

// States of volumes.
const (
	VolumeOnNetwork        VolumeState = "OnNetwork"
	VolumeOnClusterNetwork VolumeState = "OnClusterNetwork"
	// VolumeToMove: the Service is on another network than it is due to be on. It moves once the volume is detached.
	VolumeToMove VolumeState = "ToMove"
)

// VolumeStates counts the volumes that have a Service, by their state.
func (r Rollout) VolumeStates() map[VolumeState]int {
	r = r.indexed()
	counts := map[VolumeState]int{VolumeOnNetwork: 0, VolumeOnClusterNetwork: 0, VolumeToMove: 0}
	for _, service := range r.Services {
		switch {
		case !service.OptOut && !service.Fixed && r.misplaced(service):
			counts[VolumeToMove]++
		case service.Network(r.Record.Clients).IsZero():
			counts[VolumeOnClusterNetwork]++
		default:
			counts[VolumeOnNetwork]++
		}
	}
	return counts
}
