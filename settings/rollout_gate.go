package settings

import (
	"fmt"
	"slices"

	"github.com/fairlead-io/fairlead/storage"
)

// openGate decides whether the clients may begin to leave the network that
// they are on: no shared volume is attached, and nothing is left, or still on
// its way, that only they could reach.
func (r Rollout) openGate(s Step) Step {
	if blockers := r.daemonSetBlockers(); len(blockers) > 0 {
		return s.wait(PhaseWaiting, blockers)
	}
	if blockers := SharedVolumeGate(r.Volumes); len(blockers) > 0 {
		return s.wait(PhaseWaiting, blockers)
	}
	if !r.Record.Clients.IsZero() {
		if left := r.Record.ServersSince.Add(r.Settle).Sub(r.Now); left > 0 {
			s = s.wait(PhaseWaiting, []Blocker{{Kind: BlockedByTime, Message: "letting Services settle that were just admitted"}})
			s.After = left
			return s
		}
		if idle := r.misplacedServices(); len(idle) > 0 {
			return s.replace(idle)
		}
		if blockers := r.stranded(); len(blockers) > 0 {
			return s.wait(PhaseWaiting, blockers)
		}
	}
	s.Action, s.Network, s.Phase = RecordClients, r.Desired, PhaseRolling
	s.Message = "the gate is open: " + restartPhrase(len(r.Clients))
	return s
}

// misplacedServices are those of volumes at rest that are not where they would
// go today. A cluster IP can't be changed, so they are made anew.
func (r Rollout) misplacedServices() []storage.Service {
	var services []storage.Service
	for _, service := range r.Services {
		if !service.OptOut && !service.Fixed && service.Placement(r.Record.Clients) != r.Due(service.Volume) && r.atRest(service.Volume) {
			services = append(services, service)
		}
	}
	return services
}

// misplacedCommon are those of them that the settings' network is about: on
// their way from no network of their own to none.
func (r Rollout) misplacedCommon() []storage.Service {
	return slices.DeleteFunc(r.misplacedServices(), func(s storage.Service) bool {
		was, due := s.Network(r.Record.Clients), r.Due(s.Volume).Network
		return was.ForVolumes() || due.ForVolumes() || was == due
	})
}

func (r Rollout) atRest(volume string) bool {
	x := r.lookup()
	_, attached := x.attached[volume]
	return !attached && !x.served[volume]
}

// stranded are the servers, and the Services that new server pods would follow,
// that only clients on the present network reach. Networks of single volumes
// don't come into it: clients stay on those.
func (r Rollout) stranded() []Blocker {
	var blockers []Blocker
	for _, server := range r.Servers {
		if !server.Network.IsZero() && !server.Network.ForVolumes() {
			blockers = append(blockers, Blocker{
				Kind: BlockedByServer, Name: server.Pod, Nodes: []string{server.Node},
				Message: fmt.Sprintf("server pod %s is still on %s", server.Pod, server.Network),
			})
		}
	}
	for _, service := range r.Services {
		if network := service.Network(r.Record.Clients); !network.IsZero() && !network.ForVolumes() {
			blockers = append(blockers, Blocker{
				Kind: BlockedByService, Name: service.Name,
				Message: fmt.Sprintf("Service %s is still for %s: delete it once its volume is detached", service.Name, network),
			})
		}
	}
	return blockers
}

// Blockers are what keeps the roll-out to the desired network from beginning.
func Blockers(r Rollout) []Blocker {
	return append(r.daemonSetBlockers(), SharedVolumeGate(r.Volumes)...)
}

func (r Rollout) daemonSetBlockers() []Blocker {
	if r.untouched() {
		return nil
	}
	return r.daemonSetProblems(!r.Desired.IsZero())
}

// daemonSetProblems are what keeps the template from being changed; a network
// needs more of it than none.
func (r Rollout) daemonSetProblems(toNetwork bool) []Blocker {
	block := func(why string) []Blocker {
		return []Blocker{{Kind: BlockedByDaemonSet, Name: r.DaemonSet.Name, Message: fmt.Sprintf("DaemonSet %s %s", r.DaemonSet.Name, why)}}
	}
	switch {
	case !r.DaemonSet.Found:
		return block("does not exist: is the storage system installed?")
	case r.DaemonSet.OptOut:
		return block("opts out by " + storage.OptOutAnnotation + ": remove the annotation from its template")
	case r.DaemonSet.Unreadable:
		return block("has an annotation " + storage.NetworksAnnotation + " that can't be read: correct it")
	case r.DaemonSet.HostNetwork && toNetwork:
		return block("is on the host network, where Multus adds no interface: set hostNetwork to false")
	}
	return nil
}
