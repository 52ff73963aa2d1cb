package rollout

import (
	"fmt"
	"slices"
	"time"

	"github.com/fairlead-io/fairlead/internal/settings/catalog"
	"github.com/fairlead-io/fairlead/internal/storage"
)

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
	// RestartClients deletes Step.Clients, which is one.
	RestartClients Action = "RestartClients"
	// ResumeTemplate gives the DaemonSet its own update strategy back.
	ResumeTemplate Action = "ResumeTemplate"
	// ReplaceServices makes Step.Services, which is one, anew where Rollout.Due says.
	ReplaceServices Action = "ReplaceServices"
	// RecordVolumeServers writes Step.Networks as those of single volumes that new servers may be on.
	RecordVolumeServers Action = "RecordVolumeServers"
	// RecordVolumeClients writes Step.Networks as those of single volumes that client pods are built with.
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

// Step is what comes next, and what the user is told.
type Step struct {
	Action   Action
	Network  storage.Attachment
	Networks []storage.Attachment
	Clients  []storage.Client
	Services []storage.Service

	// Applied: the roll-out to the desired network is complete.
	Applied bool
	Phase   Phase
	// Message says what is waited for, or that it is applied.
	Message  string
	Blockers []catalog.Blocker
	// Volumes is how far the networks of single volumes are.
	Volumes Progress
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
// followed by the first. Networks of single volumes go on where that is at rest.
func Next(r Rollout) Step {
	r = r.indexed()
	s := Step{Total: r.DaemonSet.Wanted}
	s.Updated = max(0, s.Total-len(r.outdated())-r.missing())
	// First what keeps servers from where a client is missing.
	if stay := r.volumeServersThatStay(); !slices.Equal(stay, r.Record.VolumeServers) {
		// The settings are told where their network is all the same: that is done next.
		return r.common(s).told().record(RecordVolumeServers, stay, PhaseSwitching, "new servers may be on volume networks "+named(stay))
	}
	s = r.common(s)
	if !s.Applied {
		s.Volumes = r.waiting()
		return s
	}
	return r.nextVolumes(s)
}

// common is where the network of all volumes is, and its next step.
func (r Rollout) common(s Step) Step {
	if !r.settled() {
		return r.nextCommon(s)
	}
	s.Applied, s.Phase, s.Message = true, PhaseApplied, r.appliedMessage()
	return s
}

// told is what the step tells, without what it does.
func (s Step) told() Step {
	s.Action, s.Network, s.Networks, s.Clients, s.Services = Nothing, storage.Attachment{}, nil, nil, nil
	return s
}

// settled: clients, servers and the Services of volumes at rest are where the settings want them.
func (r Rollout) settled() bool {
	if r.Record.Servers != r.Desired || r.Record.Clients != r.Desired || len(r.daemonSetBlockers()) > 0 || len(r.misplacedCommon()) > 0 {
		return false
	}
	return r.untouched() || r.DaemonSet.IsOn(r.Desired) &&
		!slices.ContainsFunc(r.Clients, func(c storage.Client) bool { return !c.IsOn(r.Desired) })
}

// nextCommon is the next step of the network that the settings choose for all volumes.
func (r Rollout) nextCommon(s Step) Step {
	switch {
	case !r.Record.Servers.IsZero() && (r.Record.Servers != r.Record.Clients || r.clientsAstray()):
		return s.switchServers(storage.Attachment{}, "new servers go to the cluster network until every client is back")
	case r.Record.Clients != r.Desired:
		return r.change(s)
	}
	if done, step := r.rollClients(s, r.outdated()); !done {
		return step
	}
	if r.Record.Servers != r.Record.Clients {
		return s.switchServers(r.Record.Clients, "every client is on the network: new servers follow")
	}
	// The rest is settled: else one of the above would have come to it.
	return s.replace(r.misplacedCommon())
}

func (s Step) switchServers(to storage.Attachment, message string) Step {
	s.Action, s.Network, s.Phase, s.Message = RecordServers, to, PhaseSwitching, message
	return s
}

func (s Step) replace(services []storage.Service) Step {
	// One at a time, each after a fresh look at what is attached.
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
		message += "; yet to be attached anew: " + catalog.FirstOf(left)
	}
	// The roll-out was complete; a client that has lost its network since is no reason to undo it.
	for _, c := range r.Clients {
		if c.Ready && !c.Reaches(r.Record.Clients) && !r.Record.Clients.IsZero() {
			message += fmt.Sprintf("; CSI plugin pod %s on %s has no address on it: Multus reports none", c.Pod, c.Node)
		}
	}
	return message
}
