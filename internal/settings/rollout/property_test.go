package rollout

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/fairlead-io/fairlead/internal/multus"
	"github.com/fairlead-io/fairlead/internal/rwx"
	"github.com/fairlead-io/fairlead/internal/testkit/must"
)

// The model is a small cluster whose parts act in random order. Users change settings, volumes attach
// and detach, pods crash and report late, admissions take time, the DaemonSet controller lags.
// Fairlead's controller crashes between writes and decides on stale views. Checked after every step:
//
//	1  a server is on a network only while every client that may mount it is
//	2  headless ⇔ the server pod requests the network
//	4  a setting change never restarts a pod that serves or uses an attached volume
//	6  applied only after the roll-out is complete
//	7  any crash at any step resumes, to the end
//
// Volumes also request their own networks, which are created and deleted meanwhile.

var (
	networkA = multus.Attachment{Network: multus.Network{Namespace: "kube-system", Name: "a"}, Interface: "lhnet1"}
	networkB = multus.Attachment{Network: multus.Network{Namespace: "kube-system", Name: "b"}, Interface: "lhnet2"}
)

// settle is short, so that random steps go beyond it.
const settle = 10 * time.Second

type clientPod struct {
	rwx.Client
	// stripped: created from a template without the networks that Fairlead added.
	stripped   bool
	generation int // of the template
}

type modelVolume struct {
	attachedTo string // "" is detached
	request    rwx.Request
	service    *rwx.Service
	server     *rwx.Server
	// stray: the storage system created its objects by the setting's value while the webhooks were down.
	stray bool
	// admitting is a Service that is admitted, but not stored.
	admitting *admission
}

type admission struct {
	placement multus.Placement
	read      time.Time
}

type model struct {
	now     time.Time
	desired multus.Attachment
	record  Record

	template     template
	revisions    []template
	revision     int      // index in revisions
	seen         template // that the DaemonSet controller has seen
	seenRevision int
	// generation of the template, and the one that the DaemonSet controller has seen.
	generation, seenGeneration int
	paused                     bool
	nodes                      []string
	clients                    map[string]*clientPod
	volumes                    map[string]*modelVolume
	uids                       int
	restarted                  int       // clients, by Fairlead
	views                      []Rollout // views that a stale cache may still show

	gate     NetworkGate
	windows  Windows
	networks []multus.Network // that exist
	class    multus.Network   // that a StorageClass names

	mountsFromHost bool
}

type template struct {
	network  multus.Attachment
	volumes  []multus.Attachment
	stripped bool
}

// setTemplate gives a template the revision that it had before, as the DaemonSet controller does (kubernetes v1.37.2,
// pkg/controller/daemon/update.go, constructHistory).
func (m *model) setTemplate(wanted template) {
	m.generation++
	m.template = wanted
	i := slices.IndexFunc(m.revisions, func(t template) bool {
		return t.network == wanted.network && t.stripped == wanted.stripped && slices.Equal(t.volumes, wanted.volumes)
	})
	if i < 0 {
		i = len(m.revisions)
		m.revisions = append(m.revisions, wanted)
	}
	m.revision = i
}

// newModel is a settled cluster on the network.
func newModel(network multus.Attachment) *model {
	m := &model{
		desired: network, record: Record{Clients: network, Servers: network}, template: template{network: network}, seen: template{network: network},
		now: time.Unix(1_000_000, 0), nodes: []string{"node-1", "node-2", "node-3"},
		clients: map[string]*clientPod{}, volumes: map[string]*modelVolume{}, networks: existing,
	}
	m.setTemplate(m.template)
	m.seenGeneration = m.generation
	for _, n := range m.nodes {
		m.newClient(n)
		m.clients[n].Ready, m.clients[n].Reported = true, !network.IsZero()
	}
	for i := range 3 {
		m.volumes[fmt.Sprintf("pvc-%d", i)] = &modelVolume{}
	}
	return m
}

// newClient is the DaemonSet controller: it creates a pod from the template that it has observed.
func (m *model) newClient(node string) {
	m.uids++
	m.clients[node] = &clientPod{stripped: m.seen.stripped, Client: rwx.Client{
		Pod: "csi-" + node, UID: fmt.Sprint(m.uids), Node: node,
		Network: m.seen.network, VolumeNetworks: m.seen.volumes, Revision: fmt.Sprint(m.seenRevision),
	}, generation: m.seenGeneration}
}

// shownRevision is what the facts know of the template's revision: a pod shows it, or the DaemonSet controller says that all
// pods have it.
func (m *model) shownRevision() string {
	all := m.seenGeneration == m.generation
	for _, c := range m.clients {
		if c.generation == m.generation {
			return fmt.Sprint(m.revision)
		}
		all = all && c.Revision == fmt.Sprint(m.revision)
	}
	if all {
		return fmt.Sprint(m.revision)
	}
	return ""
}

func (m *model) view() Rollout {
	r := Rollout{
		Desired: m.desired, Record: m.record, Now: m.now, Policy: Policy{Settle: settle, Gate: m.gate, Windows: m.windows},
		DaemonSet: DaemonSet{
			Name: "csi", Found: true, Network: m.template.network, VolumeNetworks: m.template.volumes, Paused: m.paused,
			Observed: m.seenGeneration == m.generation, Revision: m.shownRevision(),
			Wanted: len(m.nodes), MaxUnavailable: 1,
		},
		MountsFromHost: m.mountsFromHost, Networks: networkSet(m.networks), ClassNetworks: []multus.Network{m.class},
	}
	for _, n := range m.nodes {
		if c := m.clients[n]; c != nil {
			r.Clients = append(r.Clients, c.Client)
		}
	}
	for _, name := range m.volumeNames() {
		v := m.volumes[name]
		vol := rwx.Volume{Name: name, Shared: true, Attached: v.attachedTo != "", Request: v.request}
		if vol.Attached {
			vol.Nodes = []string{v.attachedTo}
		}
		r.Volumes = append(r.Volumes, vol)
		if v.service != nil {
			r.Services = append(r.Services, *v.service)
		}
		if v.server != nil {
			r.Servers = append(r.Servers, *v.server)
		}
	}
	return r
}

func (m *model) volumeNames() []string { return slices.Sorted(maps.Keys(m.volumes)) }

// restart deletes a client pod for a setting. It checks invariant 4.
func (m *model) restart(t *rapid.T, node, who string) {
	for name, v := range m.volumes {
		must.True(t, v.attachedTo != node, "invariant 4: %s restarts the client on %s, where %s is attached", who, node, name)
	}
	delete(m.clients, node)
	if who == "Fairlead" {
		m.restarted++
	}
}

// act is Fairlead's controller: it decides on a view that may be stale, decides again on a live one, and
// acts. crash stops it half-way.
func (m *model) act(t *rapid.T, stale Rollout, crash bool) Step {
	if Next(stale).Action == Nothing {
		return Next(stale)
	}
	live := m.view()
	step := Next(live)
	must.True(t, step.Phase != "" && step.Message != "" && step.Applied == (step.Phase == PhaseApplied), "invariant 6: the status is incomplete: %+v", step)
	switch step.Action {
	case RecordServers:
		if !step.Network.IsZero() {
			m.mustReachAll(t, step.Network)
		} else {
			m.mustHaveReasonToLeave(t, live)
		}
		m.record.Servers, m.record.ServersSince = step.Network, m.now
	case RecordClients:
		m.mustBeFreeToMove(t, step.Network)
		m.record.Clients = step.Network
	case RecordVolumeServers, RecordVolumeClients:
		m.recordVolumes(t, step)
	case UpdateTemplate:
		wanted := template{network: m.record.Clients, volumes: m.record.VolumeClients}
		if !reflect.DeepEqual(m.template, wanted) {
			m.setTemplate(wanted)
		}
		m.paused = true
	case ResumeTemplate:
		m.paused = false
	case RestartClients:
		for i, c := range step.Clients {
			if crash && i > 0 {
				break
			}
			if have := m.clients[c.Node]; have == nil || have.UID != c.UID {
				continue // the delete has the UID as a precondition
			}
			must.True(t, m.seenRevision == m.revision, "invariant 7: the client on %s is restarted in vain, from the old template", c.Node)
			must.True(t, !c.Ready || m.windows.Closed(m.now) == 0, "the client on %s is restarted while no window is open", c.Node)
			m.restart(t, c.Node, "Fairlead")
		}
	case ReplaceServices:
		for _, s := range step.Services {
			v := m.volumes[s.Volume]
			must.True(t, v.attachedTo == "" && v.server == nil, "invariant 4: Service of %s is replaced while in use", s.Volume)
			v.service, v.stray = nil, false
			if crash {
				break
			}
			v.service = m.placed(t, s.Volume, live.Due(s.Volume))
		}
	}
	if step.Applied {
		m.mustBeComplete(t)
	}
	return step
}

// mustHaveReasonToLeave: new servers leave the network only if no network is desired, clients can move,
// or a client is not on the network.
func (m *model) mustHaveReasonToLeave(t *rapid.T, live Rollout) {
	if m.desired.IsZero() || m.gate == GateNode || live.clientsAstray() || m.record.Servers != m.record.Clients {
		return
	}
	for name, v := range m.volumes {
		must.True(t, v.attachedTo == "", "new servers leave %s for the cluster network while the change to %s waits for %s", m.record.Servers, m.desired, name)
	}
}

// mustBeFreeToMove: clients leave a network only if no object is, or will be, on it. With GateCluster no
// volume is attached, unless clients return from a network that some of them have not joined.
func (m *model) mustBeFreeToMove(t *rapid.T, to multus.Attachment) {
	from := m.record.Clients
	for name, v := range m.volumes {
		must.True(t, v.attachedTo == "" || m.gate != GateCluster || to.IsZero(), "invariant 4: the clients' roll-out begins while %s is attached", name)
		if from.IsZero() || v.stray {
			continue
		}
		must.True(t, (v.server == nil || v.server.Network != from) && (v.service == nil || v.service.Network(from) != from) && (v.admitting == nil || v.admitting.placement.Network != from),
			"invariant 1: clients leave %s, where %s is", from, name)
	}
	must.True(t, to.IsZero() || slices.Contains(m.networks, to.Network), "clients would request %s, which does not exist", to)
}

func serviceAt(volume string, p multus.Placement) *rwx.Service {
	s := &rwx.Service{Name: volume, Volume: volume, ClusterIP: "10.0.0.1", Recorded: p.Network, Identity: p.Identity}
	if !p.Network.IsZero() {
		s.ClusterIP = rwx.ClusterIPNone
	}
	return s
}

func (m *model) mustReachAll(t *rapid.T, network multus.Attachment) {
	for _, n := range m.nodes {
		c := m.clients[n]
		must.True(t, c != nil && c.Network == network && c.Reported && c.Clash.Pod == "", "invariant 1: servers go to %s before the client on %s", network, n)
	}
}

func (m *model) mustBeComplete(t *rapid.T) {
	must.True(t, m.record.Clients == m.desired && m.record.Servers == m.desired && m.template.network == m.desired,
		"invariant 6: applied, but record %+v, template %v, desired %s", m.record, m.template, m.desired)
	for _, c := range m.clients {
		must.True(t, c.Network == m.desired, "invariant 6: applied, but client on %s is on %q", c.Node, c.Network)
	}
}

// check checks invariants 1 and 2.
func (m *model) check(t *rapid.T) {
	for name, v := range m.volumes {
		if v.server == nil || v.stray {
			continue
		}
		must.True(t, v.service != nil, "%s has a server and no Service", name)
		must.True(t, v.service.Headless() == !v.server.Network.IsZero(), "invariant 2: %s: headless %v, server on %q", name, v.service.Headless(), v.server.Network)
		if v.server.Network.IsZero() {
			continue
		}
		for _, c := range m.clients {
			must.True(t, (c.Network == v.server.Network || v.server.Network.ForVolumes()) && c.requests(v.server.Network),
				"invariant 1: server of %s is on %s, client on %s on %q", name, v.server.Network, c.Node, c.Network)
		}
	}
}

func (m *model) createService(name string) {
	v := m.volumes[name]
	if v.admitting == nil || v.service != nil {
		v.admitting = nil
		return
	}
	v.service = serviceAt(name, v.admitting.placement)
	v.admitting = nil
}

// daemonSetController restarts outdated pods unless the strategy is OnDelete.
func (m *model) daemonSetController(t *rapid.T) {
	m.seen, m.seenRevision, m.seenGeneration = m.template, m.revision, m.generation
	for _, n := range m.nodes {
		c := m.clients[n]
		switch {
		case c == nil:
			m.newClient(n)
		case !m.paused && c.Revision != fmt.Sprint(m.revision):
			m.restart(t, n, "Kubernetes")
			return
		}
	}
}

func TestRolloutInvariants(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := newModel(rapid.SampledFrom([]multus.Attachment{{}, networkA}).Draw(t, "applied before"))
		m.gate = rapid.SampledFrom([]NetworkGate{GateCluster, GateNode}).Draw(t, "gate")
		if rapid.Bool().Draw(t, "windows") { // one opens half a minute after the model begins
			m.windows = Windows{{Start: m.now.Sub(m.now.Truncate(24*time.Hour)) + 30*time.Second, Length: 20 * time.Second, Location: time.UTC}}
		}
		m.mountsFromHost = rapid.IntRange(0, 3).Draw(t, "mounts from the host") == 3
		volume := func() *modelVolume { return m.volumes[rapid.SampledFrom(m.volumeNames()).Draw(t, "volume")] }
		node := func() string { return rapid.SampledFrom(m.nodes).Draw(t, "node") }
		t.Repeat(map[string]func(*rapid.T){
			"": func(t *rapid.T) {
				m.check(t)
				if m.views = append(m.views, m.view()); len(m.views) > 8 {
					m.views = m.views[1:]
				}
			},
			"set": func(t *rapid.T) {
				m.desired = rapid.SampledFrom([]multus.Attachment{{}, networkA, networkB}).Draw(t, "desired")
			},
			"attach": func(t *rapid.T) {
				if v := volume(); v.attachedTo == "" {
					v.attachedTo = node()
				}
			},
			"detach": func(t *rapid.T) { volume().attachedTo = "" }, // its server pod may linger
			"admit service": func(t *rapid.T) {
				if v := volume(); v.attachedTo != "" && v.service == nil && v.admitting == nil {
					placement, _ := m.record.Place(v.request)
					v.admitting = &admission{placement: placement, read: m.now}
				}
			},
			"store service": func(t *rapid.T) { m.createService(rapid.SampledFrom(m.volumeNames()).Draw(t, "volume")) },
			"start server": func(t *rapid.T) {
				for _, name := range m.volumeNames() {
					if v := m.volumes[name]; v.attachedTo != "" && v.service != nil && v.server == nil {
						v.server = &rwx.Server{Pod: "share-manager-" + name, Volume: name, Network: v.service.Network(m.record.Clients)}
						return
					}
				}
			},
			"storage system creates by value while the webhooks are down": func(*rapid.T) {
				for name, v := range m.volumes {
					if v.attachedTo != "" && v.service == nil && v.server == nil && v.admitting == nil {
						v.service, v.stray = serviceAt(name, multus.Placement{Network: m.desired}), true
						v.service.Recorded = multus.Attachment{}
						v.server = &rwx.Server{Pod: "share-manager-" + name, Volume: name, Network: m.desired}
						return
					}
				}
			},
			"stop server": func(t *rapid.T) { volume().server = nil },
			"pass time": func(t *rapid.T) {
				m.now = m.now.Add(time.Duration(rapid.IntRange(1, 6).Draw(t, "seconds")) * time.Second)
				for name, v := range m.volumes {
					// The API server waits for a webhook and for its store no longer than this.
					if v.admitting != nil && m.now.Sub(v.admitting.read) >= settle {
						v.admitting.placement = multus.Placement{}
						m.createService(name)
					}
				}
			},
			"client ready": func(t *rapid.T) {
				if c := m.clients[node()]; c != nil && m.starts(c) {
					c.Ready = true
				}
			},
			"multus reports": func(t *rapid.T) {
				if c := m.clients[node()]; c != nil && !c.Network.IsZero() {
					c.Reported = true
				}
			},
			"network assigns an address twice": func(t *rapid.T) {
				if c := m.clients[node()]; c != nil && c.Reported {
					c.Clash = rwx.Clash{Pod: "share-manager-elsewhere", Older: rapid.Bool().Draw(t, "older")}
				}
			},
			"its other pod ends": func(t *rapid.T) {
				if c := m.clients[node()]; c != nil {
					c.Clash = rwx.Clash{}
				}
			},
			"multus reports volume networks": func(t *rapid.T) {
				if c := m.clients[node()]; c != nil {
					c.VolumeNetworksReported = c.VolumeNetworks
				}
			},
			"request":                        func(t *rapid.T) { volume().request = genRequest(t) },
			"class":                          func(t *rapid.T) { m.class = rapid.SampledFrom(requestable).Draw(t, "network of the class") },
			"network is created":             func(t *rapid.T) { m.networks = existing },
			"network is deleted":             func(t *rapid.T) { m.networks = existing[:rapid.IntRange(1, 3).Draw(t, "left")] },
			"template is rewritten":          func(*rapid.T) { m.install() },
			"client starts without networks": func(t *rapid.T) { m.startWithout(node()) },
			"client unready": func(t *rapid.T) {
				if c := m.clients[node()]; c != nil {
					c.Ready = false
				}
			},
			"client crashes": func(*rapid.T) { delete(m.clients, node()) },
			"kubernetes":     func(t *rapid.T) { m.daemonSetController(t) },
			"fairlead":       func(t *rapid.T) { m.act(t, m.view(), false) },
			"fairlead on a stale cache": func(t *rapid.T) {
				if len(m.views) > 0 {
					m.act(t, rapid.SampledFrom(m.views).Draw(t, "view"), false)
				}
			},
			"fairlead crashes": func(t *rapid.T) { m.act(t, m.view(), true) },
			// Random steps seldom complete a roll-out without this.
			"everything works for a while": func(t *rapid.T) {
				for range rapid.IntRange(1, 12).Draw(t, "rounds") {
					m.runRound(t)
				}
			},
		})
		m.mustBeForeseen(t)
		m.mustFinish(t)
	})
}

// mustBeForeseen compares Foresee with what happens if no other party acts, and the clock moves only to let Services settle.
// Per-volume networks have restarts of their own, which Foresee leaves out.
func (m *model) mustBeForeseen(t *rapid.T) {
	if m.class != (multus.Network{}) || len(m.record.VolumeClients)+len(m.record.VolumeServers)+len(m.template.volumes) > 0 {
		return
	}
	for name, v := range m.volumes {
		m.createService(name)
		if v.request != (rwx.Request{}) || v.stray {
			return
		}
	}
	for _, c := range m.clients {
		if c.stripped || len(c.VolumeNetworks) > 0 {
			return // Fairlead reports it: a restart need not help
		}
	}
	for range 2 * len(m.nodes) { // Kubernetes ends what it has begun
		m.daemonSetController(t)
	}
	for _, c := range m.clients {
		c.Ready, c.Reported, c.Clash = m.starts(c), !c.Network.IsZero(), rwx.Clash{}
	}
	before := m.view()
	o := Foresee(before)
	restarted, step := m.restarted, Step{}
	for range 60 {
		if left := m.view().settling(); left > 0 {
			m.now = m.now.Add(left)
		}
		step = m.runRound(t)
	}
	restarted = m.restarted - restarted
	waits := restarted == 0 && !step.Applied
	must.True(t, o.Waits() == waits, "foreseen: %q; really %d restarted, then %+v; before: %+v", o.Message(), restarted, step, before)
	must.True(t, (o.Restarts > 0) == (restarted > 0), "foreseen: %q; really %d restarted, then %+v; before: %+v", o.Message(), restarted, step, before)
}

// runRound lets every part act once.
func (m *model) runRound(t *rapid.T) Step {
	step := m.act(t, m.view(), false)
	m.daemonSetController(t)
	for _, c := range m.clients {
		c.Ready, c.Reported, c.VolumeNetworksReported, c.Clash = m.starts(c), !c.Network.IsZero(), c.VolumeNetworks, rwx.Clash{}
	}
	m.check(t)
	return step
}

// mustFinish ends all disturbances, and expects that the roll-out completes.
func (m *model) mustFinish(t *rapid.T) {
	for name, v := range m.volumes {
		m.createService(name)
		v.server, v.attachedTo = nil, ""
	}
	m.networks, m.windows = existing, nil
	for n, c := range m.clients {
		if c.stripped {
			delete(m.clients, n) // Fairlead reports it: a restart need not help
		}
	}
	for range 200 {
		m.now = m.now.Add(time.Second)
		if step := m.runRound(t); step.Applied && step.Action == Nothing && (step.Volumes.Phase == "" || m.unreachable() && step.Volumes.Phase == PhaseWaiting && step.After == 0) {
			m.mustFollowRequests(t)
			return
		}
	}
	t.Fatalf("invariant 7: stuck at %+v", Next(m.view()))
}
