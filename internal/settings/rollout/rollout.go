package rollout

import (
	"fmt"
	"slices"
	"time"

	"github.com/fairlead-io/fairlead/internal/multus"
	"github.com/fairlead-io/fairlead/internal/rwx"
	"github.com/fairlead-io/fairlead/internal/settings/catalog"
)

// Action is one step of a roll-out. A step is safe to repeat.
type Action string

// Actions, at most one per decision: each follows from facts that were read after the action before.
const (
	// Nothing to do now.
	Nothing Action = ""
	// RecordServers writes Step.Network as the network of new servers.
	RecordServers Action = "RecordServers"
	// RecordClients writes Step.Network as the network of client pods.
	RecordClients Action = "RecordClients"
	// UpdateTemplate writes the recorded networks into the DaemonSet's template, and pauses its rolling update.
	UpdateTemplate Action = "UpdateTemplate"
	// RestartClients deletes Step.Clients, which is one.
	RestartClients Action = "RestartClients"
	// ResumeTemplate restores the update strategy of the DaemonSet.
	ResumeTemplate Action = "ResumeTemplate"
	// ReplaceServices recreates Step.Services, which is one, as Rollout.Due says.
	ReplaceServices Action = "ReplaceServices"
	// RecordVolumeServers writes Step.Networks as the per-volume networks of new servers.
	RecordVolumeServers Action = "RecordVolumeServers"
	// RecordVolumeClients writes Step.Networks as the per-volume networks of client pods.
	RecordVolumeClients Action = "RecordVolumeClients"
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
)

// Phases are all phases.
var Phases = []Phase{PhaseApplied, PhaseWaiting, PhaseRolling, PhaseSwitching, PhaseInvalid}

// Step is the next action, and the status for users.
type Step struct {
	Action   Action
	Network  multus.Attachment
	Networks []multus.Attachment
	Clients  []rwx.Client
	Services []rwx.Service

	// Applied: the roll-out to the desired network is complete.
	Applied bool
	Phase   Phase
	// Message says what the roll-out waits for, or that it is complete.
	Message  string
	Blockers []catalog.Blocker
	// Volumes is the progress of per-volume networks.
	Volumes Progress
	// Updated client pods, of Total.
	Updated, Total int
	// After is when to decide again without an event; 0 is never.
	After time.Duration
}

// Next returns the next step of the roll-out. Source: Longhorn's proposal
// "Storage Network For RWX Volume", with its two halves put in order:
//
// A client on the network also reaches servers on the cluster network. Other clients do not reach
// servers on the network. So servers are on a network only while every client is: clients join first,
// servers leave first. Per-volume networks continue once the default network is settled.
func Next(r Rollout) Step {
	if r.Record.Problem != "" { // an unreadable record is not the cluster network
		return Step{Phase: PhaseInvalid, Message: r.Record.Problem}
	}
	if r.Invalid != nil {
		return Step{Phase: PhaseInvalid, Message: fmt.Sprintf("not applied until the value is corrected: %v", r.Invalid)}
	}
	r = r.indexed()
	s := Step{Total: r.DaemonSet.Wanted}
	s.Updated = max(0, s.Total-len(r.outdated())-r.missing())
	if r.Unlisted != "" && r.UsesNetworks() {
		s.After = MissingNetworkRetry
		return s.wait(PhaseWaiting, []catalog.Blocker{{Kind: catalog.BlockedByNetwork, Name: "all", Message: "NetworkAttachmentDefinitions cannot be listed: " + r.Unlisted}})
	}
	// First stop new servers on networks that a client is not on.
	if keep := r.volumeServersToKeep(); !slices.Equal(keep, r.Record.VolumeServers) {
		// The step still reports the state of the default network.
		return r.defaultStep(s).withoutAction().record(RecordVolumeServers, keep, PhaseSwitching, "new servers may use volume networks: "+networkNames(keep))
	}
	s = r.defaultStep(s)
	if !r.settled() {
		s.Volumes = r.waiting()
		return s
	}
	return r.nextVolumes(s)
}

// defaultStep returns the next step of the default network.
func (r Rollout) defaultStep(s Step) Step {
	if !r.settled() {
		return r.nextDefault(s)
	}
	if left := append(r.toRecreate(), r.notReplaced(r.misplacedByDefault())...); len(left) > 0 {
		return s.wait(PhaseSwitching, left)
	}
	s.Applied, s.Phase, s.Message = true, PhaseApplied, r.appliedMessage()
	return s
}

// withoutAction keeps the status of a step.
func (s Step) withoutAction() Step {
	s.Action, s.Network, s.Networks, s.Clients, s.Services = Nothing, multus.Attachment{}, nil, nil, nil
	return s
}

// settled: clients, servers and the Services of idle volumes are on the desired network. Services whose
// replacement was refused do not count: per-volume networks go on without them.
func (r Rollout) settled() bool {
	if r.Record.Servers != r.Desired || r.Record.Clients != r.Desired || len(r.daemonSetBlockers()) > 0 || len(r.replaceable(r.misplacedByDefault())) > 0 {
		return false
	}
	return r.isUnmanaged() || r.DaemonSet.IsOn(r.Desired) &&
		!slices.ContainsFunc(r.Clients, func(c rwx.Client) bool { return !c.IsOn(r.Desired) })
}

// nextDefault returns the next step towards the default network that the settings choose.
func (r Rollout) nextDefault(s Step) Step {
	switch {
	case !r.Record.Servers.IsZero() && (r.Record.Servers != r.Record.Clients || r.clientsAstray()):
		return s.switchServers(multus.Attachment{}, "new servers go to the cluster network until every client is back")
	case r.Record.Clients != r.Desired:
		return r.change(s)
	}
	if done, step := r.rollClients(s, r.outdated()); !done {
		return step
	}
	if r.Record.Servers != r.Record.Clients {
		if n := r.Record.Clients.Network; !r.exists(n) { // new servers would not start
			s.After = MissingNetworkRetry
			return s.wait(PhaseWaiting, []catalog.Blocker{r.lostNetwork(n, "")})
		}
		return s.switchServers(r.Record.Clients, "every client is on the network: new servers follow")
	}
	// Only Services are left: everything else is settled.
	return s.replace(r.replaceable(r.misplacedByDefault()))
}

func (s Step) switchServers(to multus.Attachment, message string) Step {
	s.Action, s.Network, s.Phase, s.Message = RecordServers, to, PhaseSwitching, message
	return s
}

func (s Step) replace(services []rwx.Service) Step {
	// One at a time, each after a live read of attachments.
	s.Action, s.Services, s.Phase = ReplaceServices, services[:1], PhaseSwitching
	s.Message = fmt.Sprintf("replacing %s of detached volumes", catalog.Count(len(services), "Service"))
	return s
}

func (s Step) wait(phase Phase, blockers []catalog.Blocker) Step {
	s.Phase, s.Blockers, s.Message = phase, blockers, catalog.Short(blockers)
	return s
}

func (r Rollout) appliedMessage() string {
	var left []string
	for _, service := range r.Services {
		due := r.Due(service.Volume).Network
		if !service.Fixed && !service.OptOut && due == r.Record.Servers && service.Network(r.Record.Clients) != due {
			left = append(left, service.Volume)
		}
	}
	where := "the cluster network"
	if !r.Record.Servers.IsZero() {
		where = r.Record.Servers.Network.String()
	}
	message := "RWX volumes are on " + where
	if len(left) > 0 {
		message += "; still to be reattached: " + catalog.FirstOf(left)
	}
	// A client that lost its network after the roll-out does not undo the roll-out.
	for _, c := range r.Clients {
		if c.Ready && !c.Reaches(r.Record.Clients) && !r.Record.Clients.IsZero() {
			message += fmt.Sprintf("; CSI plugin pod %s on %s has no address on the network: Multus reports none", c.Pod, c.Node)
		}
	}
	return message
}
