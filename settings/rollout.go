package settings

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/fairlead-io/fairlead/storage"
)

// Record is the durable record of the two halves.
type Record struct {
	// Clients is the network that client pods are built with.
	Clients storage.Attachment
	// Servers is the network that new Services and server pods are built with.
	Servers storage.Attachment
	// ServersSince is when Servers was last changed.
	ServersSince time.Time
}

// Settle is how long after a change of Record.Servers an admission that read
// the value before may still be on its way to the store: the longest
// timeoutSeconds of the webhooks (5 s), and as much again for the API server to
// write what was admitted.
const Settle = 10 * time.Second

// Rollout are the facts that the next step of a roll-out follows from.
type Rollout struct {
	// Desired network, from SharedVolumeNetwork.
	Desired storage.Attachment
	Record  Record
	Now     time.Time

	DaemonSet DaemonSet
	Clients   []storage.Client
	Volumes   []storage.Volume
	Services  []storage.Service
	Servers   []storage.Server
}

// DaemonSet is the one of the client pods.
type DaemonSet struct {
	Name  string
	Found bool
	// Network that its template asks for on the profile's interfaces.
	Network storage.Attachment
	// Unreadable: the template's networks annotation can't be read.
	Unreadable  bool
	HostNetwork bool
	OptOut      bool
	// Paused: Fairlead has set the update strategy to OnDelete, to restart pods itself.
	Paused bool
	// Observed: the DaemonSet controller has seen the newest template.
	Observed bool
	// Revision of the template, as the pods made from it carry it.
	Revision string
	// Wanted is the number of client pods there should be.
	Wanted int
	// MaxUnavailable client pods at any time.
	MaxUnavailable int
}

// Action is one step of a roll-out. A step is safe to repeat.
type Action string

// Actions, at most one per decision, so that each follows from facts read
// after the one before it.
const (
	// Nothing to do now.
	Nothing Action = ""
	// RecordServers writes Step.Network as the network of new servers.
	RecordServers Action = "RecordServers"
	// RecordClients writes Step.Network as the network of client pods.
	RecordClients Action = "RecordClients"
	// UpdateTemplate brings the DaemonSet's template to the recorded network and pauses its own rolling update.
	UpdateTemplate Action = "UpdateTemplate"
	// RestartClients deletes Step.Clients.
	RestartClients Action = "RestartClients"
	// ResumeTemplate gives the DaemonSet its own update strategy back.
	ResumeTemplate Action = "ResumeTemplate"
	// ReplaceServices makes Step.Services anew, on the recorded network of servers.
	ReplaceServices Action = "ReplaceServices"
)

// Phase of a roll-out, as shown to users.
type Phase string

// Phases.
const (
	PhaseApplied   Phase = "Applied"
	PhaseWaiting   Phase = "Waiting"
	PhaseRolling   Phase = "RollingClients"
	PhaseSwitching Phase = "SwitchingServers"
	PhaseInvalid   Phase = "Invalid"
	// PhaseOverridden: a setting of the storage system whose value Fairlead's own wins over.
	PhaseOverridden Phase = "Overridden"
)

// Step is what comes next, and what the user is told.
type Step struct {
	Action   Action
	Network  storage.Attachment
	Clients  []storage.Client
	Services []storage.Service

	// Applied: the roll-out to the desired network is complete.
	Applied bool
	Phase   Phase
	// Message says what is waited for, or that it is applied.
	Message  string
	Blockers []Blocker
	// Updated client pods, of Total.
	Updated, Total int
	// After is when to look again though nothing has happened; 0 is never.
	After time.Duration
}

// Next returns the next step of the roll-out. Source: Longhorn's proposal
// "Storage Network For RWX Volume", with its two halves put in order:
//
// A client on the network reaches servers on the cluster network; a client
// that is not on it does not reach servers that are. So servers are on a
// network only while every client is: enabling moves clients first, disabling
// servers first, and a change from one network to another is the second
// followed by the first.
func Next(r Rollout) Step {
	s := Step{Total: r.DaemonSet.Wanted}
	outdated := r.outdated()
	s.Updated = max(0, s.Total-len(outdated)-r.missing())

	if r.Record.Servers != r.Desired && !r.Record.Servers.IsZero() {
		return s.switchServers(storage.Attachment{}, "new servers go to the cluster network")
	}
	if r.Record.Clients != r.Desired {
		return r.openGate(s)
	}
	if done, step := r.rollClients(s, outdated); !done {
		return step
	}
	if r.Record.Servers != r.Record.Clients {
		return s.switchServers(r.Record.Clients, "every client is on the network: new servers follow")
	}
	if idle := r.misplacedServices(); len(idle) > 0 {
		return s.replace(idle)
	}
	s.Applied, s.Phase, s.Message = true, PhaseApplied, r.appliedMessage()
	return s
}

func (s Step) switchServers(to storage.Attachment, message string) Step {
	s.Action, s.Network, s.Phase, s.Message = RecordServers, to, PhaseSwitching, message
	return s
}

func (s Step) replace(services []storage.Service) Step {
	s.Action, s.Services, s.Phase = ReplaceServices, services, PhaseSwitching
	s.Message = fmt.Sprintf("replacing %s of detached volumes", Count(len(services), "Service"))
	return s
}

func (s Step) wait(phase Phase, blockers []Blocker) Step {
	s.Phase, s.Blockers, s.Message = phase, blockers, Short(blockers)
	return s
}

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
		if left := r.Record.ServersSince.Add(Settle).Sub(r.Now); left > 0 {
			s = s.wait(PhaseWaiting, []Blocker{{Kind: BlockedByTime, Message: fmt.Sprintf("letting Services settle that were just admitted, %.0f s", max(1, left.Seconds()))}})
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

// rollClients brings the template and every client pod to the recorded network.
func (r Rollout) rollClients(s Step, outdated []storage.Client) (done bool, _ Step) {
	if blockers := r.daemonSetBlockers(); len(blockers) > 0 {
		return false, s.wait(PhaseWaiting, blockers)
	}
	if !r.DaemonSet.Found {
		return true, s // no storage system, and nothing is asked of it
	}
	s.Phase = PhaseRolling
	s.Message = fmt.Sprintf("%d of %s on the network", s.Updated, Count(s.Total, "CSI plugin pod"))
	if r.Record.Clients.IsZero() {
		s.Message = fmt.Sprintf("%d of %s back on the cluster network", s.Updated, Count(s.Total, "CSI plugin pod"))
	}
	if r.DaemonSet.Network != r.Record.Clients {
		s.Action = UpdateTemplate
		return false, s
	}
	if !r.DaemonSet.Observed {
		return false, s
	}
	free, blocked := r.restartable(outdated)
	if len(free) > 0 {
		s.Action, s.Clients = RestartClients, free
		return false, s
	}
	if len(blocked) > 0 {
		s.Blockers, s.Message = blocked, s.Message+"; "+Short(blocked)
		return false, s
	}
	if len(outdated) > 0 {
		return false, s
	}
	// Servers that are there already stay when a client is down for a while; they
	// come only when every client is known to reach them.
	rolling := r.DaemonSet.Paused || r.Record.Servers != r.Record.Clients
	if waiting := r.unready(); len(waiting) > 0 && rolling {
		s.Blockers, s.Message = waiting, s.Message+"; "+Short(waiting)
		return false, s
	}
	if r.DaemonSet.Paused {
		s.Action = ResumeTemplate
		return false, s
	}
	return true, s
}

// outdated are the client pods that the recorded network did not reach. While
// Fairlead holds the DaemonSet's own rolling update, pods of an older template
// count too, whatever their network: given its strategy back, the DaemonSet
// would restart them without asking for attached volumes.
func (r Rollout) outdated() []storage.Client {
	var pods []storage.Client
	for _, c := range r.Clients {
		if c.Network != r.Record.Clients || r.DaemonSet.Paused && c.Revision != r.DaemonSet.Revision {
			pods = append(pods, c)
		}
	}
	slices.SortFunc(pods, func(a, b storage.Client) int { return strings.Compare(a.Node+a.Pod, b.Node+b.Pod) })
	return pods
}

func (r Rollout) missing() int { return max(0, r.DaemonSet.Wanted-len(r.Clients)) }

// restartable splits outdated pods: those that may be restarted now, and what
// blocks the others. A pod on a node with an attached shared volume is never
// restarted, whatever the setting says.
func (r Rollout) restartable(outdated []storage.Client) (free []storage.Client, blocked []Blocker) {
	busy, everywhere := busyNodes(r.Volumes)
	budget := max(1, r.DaemonSet.MaxUnavailable) - r.missing()
	for _, c := range r.Clients {
		if !c.Ready || c.Terminating {
			budget--
		}
	}
	for _, c := range outdated {
		if c.Terminating {
			continue
		}
		if volumes := append(slices.Clone(everywhere), busy[c.Node]...); len(volumes) > 0 {
			for _, v := range volumes {
				blocked = append(blocked, Blocker{
					Kind: BlockedByVolume, Name: v, Nodes: []string{c.Node},
					Message: fmt.Sprintf("RWX volume is attached where CSI plugin pod %s must restart", c.Pod),
				})
			}
			continue
		}
		// A pod that is not Ready serves nobody: restarting it costs no budget.
		if !c.Ready {
			free = append(free, c)
		} else if budget > 0 {
			budget--
			free = append(free, c)
		}
	}
	return free, compactByName(blocked)
}

// compactByName merges the blockers of one name into one, nodes joined.
func compactByName(blockers []Blocker) []Blocker {
	var merged []Blocker
	for _, b := range blockers {
		i := slices.IndexFunc(merged, func(m Blocker) bool { return m.Name == b.Name })
		if i < 0 {
			merged = append(merged, b)
			continue
		}
		merged[i].Nodes = append(merged[i].Nodes, b.Nodes...)
	}
	return merged
}

// unready are the clients that are not known to reach the network, and those that are missing.
func (r Rollout) unready() []Blocker {
	var blockers []Blocker
	wait := func(c storage.Client, why string) {
		blockers = append(blockers, Blocker{
			Kind: BlockedByClient, Name: c.Pod, Nodes: []string{c.Node},
			Message: fmt.Sprintf("CSI plugin pod %s on %s %s", c.Pod, c.Node, why),
		})
	}
	for _, c := range r.Clients {
		switch {
		case c.Terminating:
			wait(c, "is still terminating")
		case !c.Ready:
			wait(c, "is not Ready")
		case !r.Record.Clients.IsZero() && !c.Reported:
			wait(c, fmt.Sprintf("has no address yet on %s: Multus reports none", r.Record.Clients))
		}
	}
	if n := r.missing(); n > 0 {
		blockers = append(blockers, Blocker{Kind: BlockedByClient, Name: r.DaemonSet.Name, Message: Count(n, "CSI plugin pod") + " to come"})
	}
	return blockers
}

// misplacedServices are those of volumes at rest whose network is not the one
// that new servers are on. A cluster IP can't be changed, so they are made anew.
func (r Rollout) misplacedServices() []storage.Service {
	var services []storage.Service
	for _, service := range r.Services {
		if !service.OptOut && service.Network(r.Record.Clients) != r.Record.Servers && r.atRest(service.Volume) {
			services = append(services, service)
		}
	}
	return services
}

func (r Rollout) atRest(volume string) bool {
	return !slices.ContainsFunc(r.Volumes, func(v storage.Volume) bool { return v.Name == volume && v.Attached }) &&
		!slices.ContainsFunc(r.Servers, func(s storage.Server) bool { return s.Volume == volume })
}

// stranded are the servers, and the Services that new server pods would follow,
// that only clients on the present network reach.
func (r Rollout) stranded() []Blocker {
	var blockers []Blocker
	for _, server := range r.Servers {
		if !server.Network.IsZero() {
			blockers = append(blockers, Blocker{
				Kind: BlockedByServer, Name: server.Pod, Nodes: []string{server.Node},
				Message: fmt.Sprintf("server pod %s is still on %s", server.Pod, server.Network),
			})
		}
	}
	for _, service := range r.Services {
		if network := service.Network(r.Record.Clients); !network.IsZero() {
			blockers = append(blockers, Blocker{
				Kind: BlockedByService, Name: service.Name,
				Message: fmt.Sprintf("Service %s is still for %s", service.Name, network),
			})
		}
	}
	return blockers
}

func (r Rollout) daemonSetBlockers() []Blocker {
	block := func(why string) []Blocker {
		return []Blocker{{Kind: BlockedByDaemonSet, Name: r.DaemonSet.Name, Message: fmt.Sprintf("DaemonSet %s %s", r.DaemonSet.Name, why)}}
	}
	switch {
	case r.Desired.IsZero() && r.Record.Clients.IsZero() && r.Record.Servers.IsZero():
		return nil // nothing is asked of the clients
	case !r.DaemonSet.Found:
		return block("does not exist: is the storage system installed?")
	case r.DaemonSet.OptOut:
		return block("opts out by " + storage.OptOutAnnotation + ": remove the annotation from its template")
	case r.DaemonSet.Unreadable:
		return block("has an annotation " + storage.NetworksAnnotation + " that can't be read: correct it")
	case r.DaemonSet.HostNetwork && !r.Desired.IsZero():
		return block("is on the host network, where Multus adds no interface: set hostNetwork to false")
	}
	return nil
}

func (r Rollout) appliedMessage() string {
	var left []string
	for _, service := range r.Services {
		if service.Network(r.Record.Clients) != r.Record.Servers {
			left = append(left, service.Volume)
		}
	}
	where := "the cluster network"
	if !r.Record.Servers.IsZero() {
		where = r.Record.Servers.Network.String()
	}
	if len(left) == 0 {
		return "RWX volumes are on " + where
	}
	return fmt.Sprintf("RWX volumes are on %s; when next attached also: %s", where, strings.Join(left[:min(len(left), listed)], ", "))
}
