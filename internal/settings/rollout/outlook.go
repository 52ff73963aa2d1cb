package rollout

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/fairlead-io/fairlead/internal/multus"
	"github.com/fairlead-io/fairlead/internal/rwx"
	"github.com/fairlead-io/fairlead/internal/settings/catalog"
)

// Outlook is how far a roll-out goes by itself: until it waits for Blockers, or is done.
type Outlook struct {
	// Restarts is how many client pods restart before. Left is how many must restart after the Blockers are gone.
	Restarts, Left int
	// Settle is how long the roll-out waits, in case a Service is still being created, before the first pod restarts.
	Settle   time.Duration
	Blockers []catalog.Blocker
}

// maxOutlook is more than the steps of any roll-out: records and template to the cluster network, then to another network.
const maxOutlook = 20

// Foresee follows the roll-out through the steps that wait for nothing. Next tells a controller what to do now. The first
// steps disturb no workload, so Next can't tell a user whether the change waits.
func Foresee(r Rollout) Outlook {
	o := Outlook{}
	r.Clients, r.Services = slices.Clone(r.Clients), slices.Clone(r.Services)
	for range maxOutlook {
		s := Next(r)
		switch {
		case s.Action == RecordServers:
			r.Record.Servers, r.Record.ServersSince = s.Network, r.Now
		case s.Action == RecordVolumeServers:
			r.Record.VolumeServers, r.Record.ServersSince = s.Networks, r.Now
		case s.Action == ReplaceServices:
			r.replaceServices()
		case len(s.Blockers) > 0 && r.settling() > 0:
			o.Settle += r.settling()
			r.Now = r.settleEnd()
		case len(s.Blockers) > 0:
			o.Blockers, o.Left = r.withWindow(s.Blockers), len(r.left())
			return o
		case s.Action == RecordClients:
			r.Record.Clients = s.Network
		case s.Action == UpdateTemplate:
			r.updateTemplate()
		case s.Action == RestartClients:
			o.Restarts += r.restartFree()
		case s.Action == Nothing && !s.Applied && !r.DaemonSet.Observed:
			r.DaemonSet.Observed = true
		default: // What is left restarts no client for the default network.
			return o
		}
	}
	o.Blockers = []catalog.Blocker{{Kind: catalog.BlockedByOther, Name: "roll-out", Message: "what follows can't be foreseen"}}
	o.Left = len(r.left())
	return o
}

// withWindow adds a closed maintenance window, if a Ready client is left to restart.
func (r Rollout) withWindow(blockers []catalog.Blocker) []catalog.Blocker {
	isWindow := func(b catalog.Blocker) bool {
		return b.Kind == catalog.BlockedByTime && b.Name == catalog.TimeOfWindows
	}
	closed := r.Windows.Closed(r.Now)
	if closed == 0 || slices.ContainsFunc(blockers, isWindow) || !slices.ContainsFunc(r.left(), func(c rwx.Client) bool { return c.Ready }) {
		return blockers
	}
	return append(slices.Clone(blockers), WindowBlocker(r.Now, closed))
}

// replaceServices assumes that all Services that may be replaced are where they are due.
func (r *Rollout) replaceServices() {
	x := r.indexed()
	misplaced := map[string]bool{}
	for _, s := range x.replaceable(x.misplacedServices()) {
		misplaced[s.Name] = true
	}
	for i := range r.Services {
		s := &r.Services[i]
		if !misplaced[s.Name] {
			continue
		}
		due := x.Due(s.Volume)
		s.ClusterIP, s.Recorded, s.Identity = "assigned", due.Network, due.Identity
		if !due.Network.IsZero() {
			s.ClusterIP = rwx.ClusterIPNone
		}
	}
}

// foreseen is the revision that a template gets, which no pod shows yet.
const foreseen = "foreseen"

// updateTemplate assumes that the template has the recorded networks, and that clients with the same networks have its revision:
// a template that is changed back has its former revision.
func (r *Rollout) updateTemplate() {
	d := &r.DaemonSet
	d.Network, d.Networks, d.VolumeNetworks, d.Paused, d.Observed, d.Revision = r.Record.Clients, nil, r.Record.VolumeClients, true, true, foreseen
	for i, c := range r.Clients {
		if c.Network == d.Network && slices.Equal(c.VolumeNetworks, d.VolumeNetworks) {
			r.Clients[i].Revision = foreseen
		}
	}
}

// restartFree assumes that each client that nothing blocks has restarted, and counts these clients.
func (r Rollout) restartFree() (restarted int) {
	r = r.indexed()
	closed := r.Windows.Closed(r.Now) > 0
	busy, everywhere := catalog.BusyNodes(r.Volumes)
	outdated := map[string]bool{}
	for _, c := range r.outdated() {
		outdated[c.Pod] = true
	}
	for i := range r.Clients {
		c := &r.Clients[i]
		if !outdated[c.Pod] || c.Terminating || closed && c.Ready || len(r.restartBlockers(*c, append(slices.Clone(everywhere), busy[c.Node]...))) > 0 {
			continue
		}
		restarted++
		c.Network, c.Networks, c.VolumeNetworks, c.Revision = r.Record.Clients, nil, r.Record.VolumeClients, r.DaemonSet.Revision
		c.NetworksReported, c.VolumeNetworksReported, c.Reported, c.Ready = []multus.Attachment{c.Network}, c.VolumeNetworks, true, true
	}
	return restarted
}

// left are the clients that restart before the roll-out is complete.
func (r Rollout) left() []rwx.Client {
	if r.Record.Clients != r.Desired || !r.DaemonSet.IsOn(r.Desired) {
		r.Record.Clients, r.Clients = r.Desired, slices.Clone(r.Clients)
		r.updateTemplate()
	}
	return r.outdated()
}

// Waits reports whether nothing is noticed of the change before the Blockers are gone.
func (o Outlook) Waits() bool { return len(o.Blockers) > 0 && o.Restarts == 0 }

// Reason is what a change that waits is waiting for, beside a list of the blockers.
func (o Outlook) Reason() string {
	volumes, others := splitVolumes(o.Blockers)
	return catalog.Joined(append([]string{catalog.Short(volumes)}, others...)...)
}

// Message describes the outlook, for admission warnings and plans.
func (o Outlook) Message() string {
	if len(o.Blockers) == 0 {
		return "being applied now: " + restartPhrase(o.Restarts) + o.settling()
	}
	volumes, others := splitVolumes(o.Blockers)
	waiting := strings.Join(others, "; ")
	also := ""
	if waiting != "" {
		also = "; also waiting: " + waiting
	}
	left := "new servers follow"
	if o.Left > 0 {
		left = restartPhrase(o.Left)
	}
	switch {
	case o.Restarts > 0 && len(volumes) > 0:
		return fmt.Sprintf("being applied node by node: %s now%s, then %s when these RWX volumes are detached: %s%s", restartPhrase(o.Restarts), o.settling(), left, catalog.Detail(volumes), also)
	case o.Restarts > 0:
		return fmt.Sprintf("being applied: %s now%s; the rest is waiting: %s", restartPhrase(o.Restarts), o.settling(), waiting)
	case len(volumes) > 0:
		return fmt.Sprintf("will be applied when these RWX volumes are detached: %s%s. Then %s.", catalog.Detail(volumes), also, left)
	}
	return fmt.Sprintf("waiting: %s. Then %s.", waiting, left)
}

// mostOthers is how many blockers other than volumes are named.
const mostOthers = 3

// splitVolumes returns the volumes, and the messages of the other blockers. Of many, the first are named, and the last, which
// may be the maintenance window.
func splitVolumes(blockers []catalog.Blocker) (volumes []catalog.Blocker, others []string) {
	for _, b := range blockers {
		if b.Kind == catalog.BlockedByVolume {
			volumes = append(volumes, b)
		} else if !slices.Contains(others, b.Message) {
			others = append(others, b.Message)
		}
	}
	if last := len(others) - 1; last >= mostOthers {
		others = append(others[:mostOthers-1:mostOthers-1], fmt.Sprintf("%d more", last+1-mostOthers), others[last])
	}
	return volumes, others
}

func (o Outlook) settling() string {
	if o.Settle == 0 {
		return ""
	}
	return fmt.Sprintf(", after %s, in case a Service is still being created", o.Settle.Round(time.Second))
}

func restartPhrase(restarts int) string {
	switch restarts {
	case 0:
		return "no CSI plugin pod restarts"
	case 1:
		return "1 CSI plugin pod restarts"
	}
	return fmt.Sprintf("%d CSI plugin pods restart", restarts)
}
