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

// rollClients moves the template and every client pod to the recorded network.
func (r Rollout) rollClients(s Step, outdated []rwx.Client) (done bool, _ Step) {
	if blockers := r.daemonSetBlockers(); len(blockers) > 0 {
		return false, s.wait(PhaseWaiting, blockers)
	}
	if r.isUnmanaged() {
		return true, s
	}
	s.Phase = PhaseRolling
	s.Message = r.clientProgress(s)
	if !r.DaemonSet.Network.IsZero() && r.Record.Clients.IsZero() {
		// Another writer has put the clients on a network, and servers may be on it.
		if blockers := r.stranded(); len(blockers) > 0 {
			return false, s.wait(PhaseWaiting, blockers)
		}
	}
	if !r.DaemonSet.IsOn(r.Record.Clients) || !slices.Equal(r.DaemonSet.VolumeNetworks, r.Record.VolumeClients) || slices.ContainsFunc(outdated, r.needsTemplate) && !r.DaemonSet.Paused {
		return false, r.changeTemplate(s, UpdateTemplate)
	}
	if !r.DaemonSet.Observed {
		return false, s
	}
	if missing := r.missingForClients(); len(outdated) > 0 && len(missing) > 0 {
		s.Blockers, s.After = missing, MissingNetworkRetry
		s.Message += "; " + s.Blockers[0].Message
		return false, s
	}
	free, blocked := r.restartable(outdated)
	// Windows apply to Ready clients: only their restart disturbs mounts.
	if closed := r.Windows.Closed(r.Now); len(free) > 0 && free[0].Ready && closed > 0 {
		s.Blockers, s.After = []catalog.Blocker{WindowBlocker(r.Now, closed)}, closed
		s.Message += "; " + s.Blockers[0].Message
		return false, s
	}
	if len(free) > 0 {
		s.Action, s.Clients = RestartClients, free
		return false, s
	}
	if len(outdated) > 0 {
		if len(blocked) == 0 {
			blocked = r.waitsForClients(r.lacks) // unready clients use up maxUnavailable
		}
		if s.Blockers = blocked; len(blocked) > 0 {
			s.Message += "; " + catalog.Short(blocked)
		}
		return false, s
	}
	// Servers join the network only when every client reaches it. They stay when a client is down later.
	rolling := r.DaemonSet.Paused || r.Record.Servers != r.Record.Clients
	if waiting := r.unready(r.Record.Clients); len(waiting) > 0 && rolling {
		s.Blockers, s.Message = waiting, s.Message+"; "+catalog.Short(waiting)
		return false, s
	}
	if r.DaemonSet.Paused {
		return false, r.changeTemplate(s, ResumeTemplate)
	}
	return true, s
}

// missingForClients returns the missing networks that client pods need to start.
func (r Rollout) missingForClients() []catalog.Blocker {
	var missing []catalog.Blocker
	if !r.exists(r.Record.Clients.Network) {
		missing = append(missing, catalog.NoNetwork(r.Record.Clients.Network, r.Networks))
	}
	for _, a := range r.deletedNetworks() {
		missing = append(missing, r.missingNetwork(a.Network))
	}
	return missing
}

// clientProgress counts client pods by the first stage that is incomplete: the default network,
// per-volume networks, the current template.
func (r Rollout) clientProgress(s Step) string {
	joined, volumes := 0, 0
	for _, c := range r.Clients {
		if !c.IsOn(r.Record.Clients) {
			continue
		}
		joined++
		if len(difference(r.Record.VolumeClients, c.VolumeNetworks)) == 0 {
			volumes++
		}
	}
	network, own := "on the network", "on volume networks "+networkNames(r.Record.VolumeClients)
	if r.Record.Clients.IsZero() {
		network = "back on the cluster network"
	}
	done, where := s.Updated, "built from the current template"
	switch {
	case joined < len(r.Clients):
		done, where = joined, network
	case volumes < len(r.Clients):
		done, where = volumes, own
	case len(r.outdated()) > 0:
	case !r.settled():
		where = network
	case len(r.Record.VolumeClients) > 0:
		where = own
	}
	return fmt.Sprintf("%d of %s %s", done, catalog.Count(s.Total, "CSI plugin pod"), where)
}

// outdated returns the client pods that lack a recorded network. While the DaemonSet is paused, pods
// of an older template count too: the DaemonSet would restart them when its strategy is restored, in
// spite of attached volumes. Where no pod shows the template's revision, those that lack a network restart first, and then
// show it. A superfluous per-volume network does no harm.
func (r Rollout) outdated() []rwx.Client {
	var lacking, older []rwx.Client
	for _, c := range r.Clients {
		switch {
		case !c.IsOn(r.Record.Clients) || len(difference(r.Record.VolumeClients, c.VolumeNetworks)) > 0 || r.startedTooSoon(c):
			lacking = append(lacking, c)
		case r.DaemonSet.Paused && c.Revision != r.DaemonSet.Revision:
			older = append(older, c)
		}
	}
	pods := lacking
	if r.DaemonSet.Revision != "" || len(lacking) == 0 {
		pods = append(pods, older...)
	}
	slices.SortFunc(pods, func(a, b rwx.Client) int { return strings.Compare(a.Node+a.Pod, b.Node+b.Pod) })
	return pods
}

// lacks says what a client lacks of the recorded networks that it asks for; "" if it lacks nothing.
func (r Rollout) lacks(c rwx.Client) string {
	for _, a := range append([]multus.Attachment{r.Record.Clients}, r.Record.VolumeClients...) {
		if c.IsOn(a) || slices.Contains(c.VolumeNetworks, a) {
			if why := c.Lacks(a); why != "" {
				return why
			}
		}
	}
	return ""
}

// startedTooSoon: the client has been Ready for long without a report, and others have their addresses: it started before Multus
// was there, as after a reboot.
func (r Rollout) startedTooSoon(c rwx.Client) bool {
	reported := func(o rwx.Client) bool { return o.Pod != c.Pod && o.Ready && o.Reaches(r.Record.Clients) }
	return c.Ready && !c.Terminating && !r.Record.Clients.IsZero() && c.IsOn(r.Record.Clients) && !c.Reaches(r.Record.Clients) &&
		r.unreportedFor(c.ReadySince) > r.patience(c.Node) && slices.ContainsFunc(r.Clients, reported)
}

// needsTemplate: the client restarts for the template, which the DaemonSet must not roll out by itself meanwhile.
func (r Rollout) needsTemplate(c rwx.Client) bool { return !r.startedTooSoon(c) }

// unreportedFor is how long a pod has been Ready; 0 if that is unknown.
func (r Rollout) unreportedFor(ready time.Time) time.Duration {
	if ready.IsZero() {
		return 0
	}
	return r.Now.Sub(ready)
}

// patience doubles with each restart of a node's client that has not helped.
func (r Rollout) patience(node string) time.Duration {
	return rwx.ReportWithin << min(r.Restarted[node], 5)
}

func (r Rollout) missing() int { return max(0, r.DaemonSet.Wanted-len(r.Clients)) }

// restartable returns the outdated pod that may restart now, and the blockers of the others. Pods
// restart one at a time, each after a live read of attachments. A pod on a node with an attached RWX
// volume never restarts.
func (r Rollout) restartable(outdated []rwx.Client) (free []rwx.Client, blocked []catalog.Blocker) {
	busy, everywhere := catalog.BusyNodes(r.Volumes)
	budget := max(1, r.DaemonSet.MaxUnavailable) - r.missing()
	for _, c := range r.Clients {
		if !c.Lost && (!c.Ready || c.Terminating || r.lacks(c) != "") {
			budget--
		}
	}
	for _, c := range outdated {
		if c.Terminating {
			continue
		}
		if why := r.restartBlockers(c, append(slices.Clone(everywhere), busy[c.Node]...)); len(why) > 0 {
			blocked = append(blocked, why...)
			continue
		}
		// A pod that is not Ready, or has no address, mounts nothing: it goes first, and costs no budget.
		useless := func(c rwx.Client) bool { return !c.Ready || r.lacks(c) != "" }
		switch {
		case len(free) == 0 && (useless(c) || budget > 0):
			free = append(free, c)
		case len(free) > 0 && !useless(free[0]) && useless(c):
			free[0] = c
		}
	}
	return free, compactByName(blocked)
}

// restartBlockers returns what keeps one outdated pod from restarting. The volumes are attached to its node.
func (r Rollout) restartBlockers(c rwx.Client, volumes []string) (blockers []catalog.Blocker) {
	block := func(why string) []catalog.Blocker {
		return []catalog.Blocker{{Kind: catalog.BlockedByClient, Name: c.Pod, Nodes: []string{c.Node}, Message: fmt.Sprintf("CSI plugin pod %s on %s %s", c.Pod, c.Node, why)}}
	}
	if c.Lost {
		return block("waits until the node is Ready")
	}
	if b, refused := r.refusal(catalog.BlockedByClient, c.Pod); refused {
		b.Nodes = []string{c.Node}
		return []catalog.Blocker{b}
	}
	x := r.lookup()
	for _, v := range volumes {
		b := catalog.Blocker{Kind: catalog.BlockedByVolume, Name: v}
		attached, found := x.attached[v]
		if found {
			b = catalog.AttachedVolume(*attached, "")
		}
		if b.Nodes = []string{c.Node}; !found || len(attached.Purposes) == 0 {
			b.Message = fmt.Sprintf("RWX volume is attached where CSI plugin pod %s must restart: drain the node, or stop the workloads", c.Pod)
		}
		if r.Gate == GateNode { // then users drain nodes, and do not stop workloads
			b.Owners = nil
		}
		blockers = append(blockers, b)
	}
	if len(blockers) == 0 && c.Revision != "" && c.Revision == r.DaemonSet.Revision && r.lacks(c) == "" {
		return block("started without the network of its template: check whether another webhook removes it")
	}
	return blockers
}

// stopped says what to do about a client that should have its address by now.
func (r Rollout) stopped(c rwx.Client) string {
	if since := r.unreportedFor(c.ReadySince); since < rwx.ReportWithin {
		return ""
	}
	return "; the other CSI plugin pods stay as they are until it has an address of its own: look at the network's ipam, and at Multus on the node; or set the value back"
}

// isUnmanaged: no network is desired or recorded, and clients do not exist or opt out.
func (r Rollout) isUnmanaged() bool {
	return r.usesNoNetwork() && (!r.DaemonSet.Found || r.DaemonSet.OptOut)
}

func (r Rollout) usesNoNetwork() bool {
	return r.Desired.IsZero() && r.Record.Clients.IsZero() && r.Record.Servers.IsZero()
}

// clientsAstray: a client or the template is not on the network of servers. Another writer changed
// the template, or a pod was created while the webhooks were down.
func (r Rollout) clientsAstray() bool {
	return r.DaemonSet.Found && !r.DaemonSet.IsOn(r.Record.Servers) ||
		slices.ContainsFunc(r.Clients, func(c rwx.Client) bool { return !c.Terminating && !c.IsOn(r.Record.Servers) })
}

// compactByName merges blockers with the same name, with the nodes of all.
func compactByName(blockers []catalog.Blocker) []catalog.Blocker {
	var merged []catalog.Blocker
	index := map[string]int{}
	for _, b := range blockers {
		i, there := index[b.Name]
		if !there {
			index[b.Name] = len(merged)
			merged = append(merged, b)
			continue
		}
		merged[i].Nodes = append(merged[i].Nodes, b.Nodes...)
	}
	return merged
}

// unready returns the clients that are down or missing, or have no address on the network.
func (r Rollout) unready(network multus.Attachment) []catalog.Blocker {
	return r.waitsForClients(func(c rwx.Client) string { return c.Lacks(network) })
}

func (r Rollout) waitsForClients(lacks func(rwx.Client) string) []catalog.Blocker {
	var blockers []catalog.Blocker
	wait := func(c rwx.Client, why string) {
		blockers = append(blockers, catalog.Blocker{
			Kind: catalog.BlockedByClient, Name: c.Pod, Nodes: []string{c.Node},
			Message: fmt.Sprintf("CSI plugin pod %s %s", strings.TrimSuffix(c.Pod+" on "+c.Node, " on "), why),
		})
	}
	for _, c := range r.Clients {
		switch {
		case c.Terminating:
			wait(c, "is still terminating")
		case !c.Ready:
			wait(c, "is not Ready")
		case lacks(c) != "":
			wait(c, lacks(c)+r.stopped(c))
		}
	}
	if n := r.missing(); n > 0 {
		blockers = append(blockers, catalog.Blocker{Kind: catalog.BlockedByClient, Name: r.DaemonSet.Name, Message: catalog.Count(n, "CSI plugin pod") + " missing"})
	}
	return blockers
}
