package rollout

import (
	"fmt"
	"slices"
	"time"

	"github.com/fairlead-io/fairlead/internal/settings/catalog"
	"github.com/fairlead-io/fairlead/internal/storage"
)

// change takes the clients from the network that they are on towards the
// desired one, and while that waits, keeps everything as it is recorded.
func (r Rollout) change(s Step) Step {
	if r.gaveUp() {
		s.Action, s.Network, s.Phase = RecordClients, storage.Attachment{}, PhaseRolling
		s.Message = fmt.Sprintf("not every client has reached %s, and it is not asked for any more: clients go back to the cluster network", describe(r.Record.Clients))
		return s
	}
	closed := Blockers(r)
	if !r.Record.Servers.IsZero() && (len(closed) == 0 || r.Desired.IsZero()) {
		return s.switchServers(storage.Attachment{}, "new servers go to the cluster network")
	}
	if len(closed) > 0 {
		s = s.wait(PhaseWaiting, closed)
		if slices.ContainsFunc(closed, func(b catalog.Blocker) bool { return b.Kind == catalog.BlockedByNetwork }) {
			s.After = MissingNetworkRetry
		}
		s.After = sooner(s.After, r.Windows.Closed(r.Now))
	} else if s = r.leave(s); s.Action != Nothing {
		return s
	}
	return r.meanwhile(s, len(closed) > 0)
}

// leave lets the clients go once nothing is left, or still on its way, that only
// they could reach where they are.
func (r Rollout) leave(s Step) Step {
	if !r.Record.Clients.IsZero() {
		if left := r.settling(); left > 0 {
			s = s.wait(PhaseWaiting, []catalog.Blocker{{Kind: catalog.BlockedByTime, Message: "letting Services settle that were just admitted"}})
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

// meanwhile is what goes on while a change waits: clients are restarted for
// other settings, servers use the network that every client is still on, and
// Services of detached volumes follow them.
func (r Rollout) meanwhile(s Step, closed bool) Step {
	waits := s
	done, rolled := r.rollClients(Step{Updated: s.Updated, Total: s.Total}, r.outdated())
	waits.After = sooner(waits.After, rolled.After)
	if rolled.Action != Nothing {
		waits.Action, waits.Clients = rolled.Action, rolled.Clients
		return waits
	}
	if closed && done && !r.Desired.IsZero() && r.Record.Servers != r.Record.Clients {
		return s.switchServers(r.Record.Clients, "the change waits: new servers stay on the network that every client is on")
	}
	if idle := r.misplacedCommon(); len(idle) > 0 {
		replaced := s.replace(idle)
		waits.Action, waits.Services = replaced.Action, replaced.Services
	}
	return waits
}

// gaveUp: a roll-out that not every client has followed, or whose network is
// gone, is not asked for any more, and no server is on that network. Going back
// makes nothing unreachable, so no gate is needed. With a gate, clients that do
// not start on the network would stay down while any volume is attached.
func (r Rollout) gaveUp() bool {
	network := r.Record.Clients
	return !network.IsZero() && r.Record.Servers.IsZero() && len(r.daemonSetBlockers()) == 0 &&
		(!r.exists(network.Network) || !r.allOn(network)) && r.settling() == 0 && len(r.stranded()) == 0
}

// settling is how long an admission that read the servers' network before its
// last change may still be on its way.
func (r Rollout) settling() time.Duration {
	return max(0, r.Record.ServersSince.Add(r.Settle).Sub(r.Now))
}

// misplacedServices are those of volumes at rest that are not where they would
// go today. A cluster IP can't be changed, so they are made anew.
func (r Rollout) misplacedServices() []storage.Service {
	var services []storage.Service
	for _, service := range r.Services {
		if !service.OptOut && !service.Fixed && r.misplaced(service) && r.atRest(service.Volume) {
			services = append(services, service)
		}
	}
	return services
}

func (r Rollout) misplaced(service storage.Service) bool {
	return service.Placement(r.Record.Clients) != r.Due(service.Volume) || service.Unpublished(r.Record.Clients)
}

// misplacedCommon are those of them that the settings' network is about: on
// their way from no network of their own to none.
func (r Rollout) misplacedCommon() []storage.Service {
	return slices.DeleteFunc(r.misplacedServices(), func(s storage.Service) bool {
		was, due := s.Network(r.Record.Clients), r.Due(s.Volume).Network
		return was.ForVolumes() || due.ForVolumes() || was == due && !s.Unpublished(r.Record.Clients)
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
func (r Rollout) stranded() []catalog.Blocker {
	var blockers []catalog.Blocker
	for _, server := range r.Servers {
		if !server.Network.IsZero() && !server.Network.ForVolumes() {
			blockers = append(blockers, catalog.Blocker{
				Kind: catalog.BlockedByServer, Name: server.Pod, Nodes: []string{server.Node},
				Message: fmt.Sprintf("server pod %s is still on %s", server.Pod, server.Network),
			})
		}
	}
	for _, service := range r.Services {
		if network := service.Network(r.Record.Clients); !network.IsZero() && !network.ForVolumes() {
			blockers = append(blockers, catalog.Blocker{
				Kind: catalog.BlockedByService, Name: service.Name,
				Message: fmt.Sprintf("Service %s is still for %s: delete it once its volume is detached", service.Name, network),
			})
		}
	}
	return blockers
}

// Blockers are what keeps the roll-out to the desired network from beginning.
func Blockers(r Rollout) []catalog.Blocker {
	blockers := r.daemonSetBlockers()
	if r.Desired != r.Record.Clients && !r.exists(r.Desired.Network) {
		blockers = append(blockers, noNetwork(r.Desired))
	}
	if r.Gate != GateNode {
		blockers = append(blockers, catalog.SharedVolumeGate(r.Volumes)...)
		blockers = append(blockers, r.outsideWindows()...)
	}
	return blockers
}

// outsideWindows: servers would leave their network before the first client may restart.
func (r Rollout) outsideWindows() []catalog.Blocker {
	closed := r.Windows.Closed(r.Now)
	if closed == 0 || !slices.ContainsFunc(r.Clients, func(c storage.Client) bool { return c.Ready }) {
		return nil
	}
	return []catalog.Blocker{WindowBlocker(r.Now, closed)}
}

func noNetwork(a storage.Attachment) catalog.Blocker {
	return catalog.Blocker{Kind: catalog.BlockedByNetwork, Name: a.Network.String(), Message: fmt.Sprintf(
		"there is no NetworkAttachmentDefinition %s, and CSI plugin pods on it do not start: create it, or choose another network", a.Network)}
}

func (r Rollout) daemonSetBlockers() []catalog.Blocker {
	if r.untouched() {
		return nil
	}
	return r.daemonSetProblems(!r.Desired.IsZero())
}

// daemonSetProblems are what keeps the template from being changed; a network
// needs more of it than none.
func (r Rollout) daemonSetProblems(toNetwork bool) []catalog.Blocker {
	block := func(why string) []catalog.Blocker {
		return []catalog.Blocker{{Kind: catalog.BlockedByDaemonSet, Name: r.DaemonSet.Name, Message: fmt.Sprintf("DaemonSet %s %s", r.DaemonSet.Name, why)}}
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
