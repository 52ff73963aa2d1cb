package rollout

import (
	"fmt"
	"slices"
	"time"

	"github.com/fairlead-io/fairlead/internal/multus"
	"github.com/fairlead-io/fairlead/internal/rwx"
	"github.com/fairlead-io/fairlead/internal/settings/catalog"
)

// change moves the clients to the desired network. While the change waits, it keeps the recorded network.
func (r Rollout) change(s Step) Step {
	if r.isAbandoned() {
		s.Action, s.Network, s.Phase = RecordClients, multus.Attachment{}, PhaseRolling
		s.Message = fmt.Sprintf("CSI plugin pods return to the cluster network: not all of them have joined %s, which the settings no longer choose", describe(r.Record.Clients))
		return s
	}
	closed := Blockers(r)
	if !r.Record.Servers.IsZero() && (len(closed) == 0 || r.Desired.IsZero()) {
		return s.switchServers(multus.Attachment{}, "new servers go to the cluster network")
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
	return r.whileWaiting(s, len(closed) > 0)
}

// leave records the desired network for clients. Before that, all servers and Services that only
// clients on the present network reach must be gone, also those that were just admitted.
func (r Rollout) leave(s Step) Step {
	if !r.Record.Clients.IsZero() {
		if left := r.settling(); left > 0 {
			s = s.wait(PhaseWaiting, []catalog.Blocker{{Kind: catalog.BlockedByTime, Name: catalog.TimeOfSettle, Message: r.settlingMessage()}})
			s.After = left
			return s
		}
		if idle := r.replaceable(r.misplacedServices()); len(idle) > 0 {
			return s.replace(idle)
		}
		if blockers := r.stranded(); len(blockers) > 0 {
			return s.wait(PhaseWaiting, blockers)
		}
	}
	s.Action, s.Network, s.Phase = RecordClients, r.Desired, PhaseRolling
	s.Message = r.applyingMessage()
	return s
}

// whileWaiting continues other work while a change waits: clients restart for other settings, servers
// use the network that every client is still on, and Services of detached volumes follow.
func (r Rollout) whileWaiting(s Step, closed bool) Step {
	waits := s
	done, rolled := r.rollClients(Step{Updated: s.Updated, Total: s.Total}, r.outdated())
	waits.After = sooner(waits.After, rolled.After)
	if rolled.Action != Nothing {
		waits.Action, waits.Clients = rolled.Action, rolled.Clients
		return waits
	}
	if closed && done && !r.Desired.IsZero() && r.Record.Servers != r.Record.Clients && r.exists(r.Record.Clients.Network) {
		return s.switchServers(r.Record.Clients, "the change waits: new servers stay on the network that every client is on")
	}
	if idle := r.replaceable(r.misplacedByDefault()); len(idle) > 0 {
		replaced := s.replace(idle)
		waits.Action, waits.Services = replaced.Action, replaced.Services
	}
	return waits
}

// isAbandoned: the settings no longer choose a network that some clients have not joined or that was
// deleted, and no server is on it. Clients return without a gate: no server becomes unreachable, and
// clients that cannot start on the network would otherwise stay down while a volume is attached.
func (r Rollout) isAbandoned() bool {
	network := r.Record.Clients
	return !network.IsZero() && r.Record.Servers.IsZero() && len(r.daemonSetBlockers()) == 0 &&
		(!r.exists(network.Network) || !r.allReach(network)) && r.settling() == 0 && len(r.stranded()) == 0
}

// settling is how long admissions with the former network of servers may still be stored.
func (r Rollout) settling() time.Duration {
	return max(0, r.settleEnd().Sub(r.Now))
}

func (r Rollout) settleEnd() time.Time { return r.Record.ServersSince.Add(r.Settle) }

func (r Rollout) settlingMessage() string {
	return fmt.Sprintf("waiting until %s UTC, in case a Service is still being created", r.settleEnd().UTC().Format(time.TimeOnly))
}

// misplacedServices are Services of idle volumes that would be created elsewhere now. A cluster IP
// cannot be changed, so they are recreated.
func (r Rollout) misplacedServices() []rwx.Service {
	var services []rwx.Service
	for _, service := range r.Services {
		if !service.OptOut && !service.Fixed && r.misplaced(service) && r.isIdle(service.Volume) {
			services = append(services, service)
		}
	}
	return services
}

func (r Rollout) misplaced(service rwx.Service) bool {
	return service.Placement(r.Record.Clients) != r.Due(service.Volume) || service.Unpublished(r.Record.Clients)
}

// misplacedByDefault are the misplaced Services that neither leave nor join a per-volume network.
func (r Rollout) misplacedByDefault() []rwx.Service {
	return slices.DeleteFunc(r.misplacedServices(), r.isByRequest)
}

// misplacedByRequest are the other misplaced Services.
func (r Rollout) misplacedByRequest() []rwx.Service {
	return slices.DeleteFunc(r.misplacedServices(), func(s rwx.Service) bool { return !r.isByRequest(s) })
}

func (r Rollout) isByRequest(s rwx.Service) bool {
	was, due := s.Network(r.Record.Clients), r.Due(s.Volume).Network
	return was.ForVolumes() || due.ForVolumes() || was == due && !s.Unpublished(r.Record.Clients)
}

func (r Rollout) isIdle(volume string) bool {
	x := r.lookup()
	_, attached := x.attached[volume]
	return !attached && !x.served[volume]
}

// stranded are the servers and Services that only clients on the present default network reach.
func (r Rollout) stranded() []catalog.Blocker {
	var blockers []catalog.Blocker
	x := r.lookup()
	for _, server := range r.Servers {
		if !server.Network.IsZero() && !server.Network.ForVolumes() {
			blockers = append(blockers, x.usedBy(server.Volume, catalog.Blocker{
				Kind: catalog.BlockedByServer, Name: server.Pod, Nodes: []string{server.Node},
				Message: fmt.Sprintf("server pod %s is still on %s", server.Pod, server.Network),
			}))
		}
	}
	for _, service := range r.Services {
		if network := service.Network(r.Record.Clients); !network.IsZero() && !network.ForVolumes() {
			if b, refused := r.refusal(catalog.BlockedByService, service.Name); refused {
				blockers = append(blockers, b)
				continue
			}
			then := "is recreated once its volume is detached"
			switch {
			case service.Fixed:
				then = "is not of type ClusterIP, so that you delete it once its volume is detached"
			case service.OptOut:
				then = "opts out, so that you delete it once its volume is detached"
			}
			blockers = append(blockers, x.usedBy(service.Volume, catalog.Blocker{
				Kind: catalog.BlockedByService, Name: service.Name,
				Message: fmt.Sprintf("Service %s is still for %s, and %s", service.Name, network, then),
			}))
		}
	}
	return blockers
}

// Blockers returns what blocks the start of the roll-out to the desired network.
func Blockers(r Rollout) []catalog.Blocker {
	blockers := r.daemonSetBlockers()
	if r.Desired != r.Record.Clients && !r.exists(r.Desired.Network) {
		blockers = append(blockers, catalog.NoNetwork(r.Desired.Network, r.Networks))
	}
	if r.Gate != GateNode {
		blockers = append(blockers, catalog.SharedVolumeGate(r.Volumes)...)
	}
	// With GateNode, servers leave for another network only if the first client may follow, unless their network is gone.
	if r.Gate != GateNode || !r.Desired.IsZero() && !r.Record.Servers.IsZero() && r.Record.Servers != r.Desired && r.exists(r.Record.Servers.Network) {
		blockers = append(blockers, r.outsideWindows()...)
	}
	return blockers
}

// outsideWindows blocks until a window opens: otherwise servers would leave their network before the
// first client may restart.
func (r Rollout) outsideWindows() []catalog.Blocker {
	closed := r.Windows.Closed(r.Now)
	if closed == 0 || !slices.ContainsFunc(r.Clients, func(c rwx.Client) bool { return c.Ready }) {
		return nil
	}
	return []catalog.Blocker{WindowBlocker(r.Now, closed)}
}

func (r Rollout) daemonSetBlockers() []catalog.Blocker {
	if r.isUnmanaged() {
		return nil
	}
	return r.daemonSetProblems(!r.Desired.IsZero())
}

// daemonSetProblems returns what prevents a change of the template.
func (r Rollout) daemonSetProblems(toNetwork bool) []catalog.Blocker {
	block := func(why string) []catalog.Blocker {
		return []catalog.Blocker{{Kind: catalog.BlockedByDaemonSet, Name: r.DaemonSet.Name, Message: fmt.Sprintf("DaemonSet %s %s", r.DaemonSet.Name, why)}}
	}
	switch {
	case !r.DaemonSet.Found:
		return block("does not exist: check that the storage system is installed")
	case r.DaemonSet.OptOut:
		return block("opts out by " + rwx.OptOutAnnotation + ": remove the annotation from its template")
	case r.DaemonSet.Unreadable:
		return block("has an annotation " + multus.NetworksAnnotation + " that can't be read: correct it")
	case r.DaemonSet.HostNetwork && toNetwork:
		return block("is on the host network, where Multus adds no interface: set hostNetwork to false")
	}
	return nil
}
