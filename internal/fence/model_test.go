package fence

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/netip"
	"reflect"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"

	"github.com/fairlead-io/fairlead/api/v1alpha1"
)

// A world of machines, storage clusters, Kubernetes, csi-addons and people. Each has its own view; only the machines and
// the block lists are the truth: who can write to which volume.

const (
	rbd    = "rook-ceph.rbd.csi.ceph.com"
	cephFS = "rook-ceph.cephfs.csi.ceph.com"
	other  = "other.rbd.csi.ceph.com"
)

// worldVolumes: of two storage clusters, the first with two drivers.
var worldVolumes = []Volume{
	{Name: "pv-rbd", Driver: rbd, Handle: "h^1", ClusterID: "a", AccessModes: []string{"ReadWriteOnce"}},
	{Name: "pv-fs", Driver: cephFS, Handle: "h-2", ClusterID: "a", AccessModes: []string{"ReadWriteOncePod"}},
	{Name: "pv-other", Driver: other, Handle: "h-3", ClusterID: "b", AccessModes: []string{"ReadWriteOnce"}},
	{Name: "pv-shared", Driver: cephFS, Handle: "h-4", ClusterID: "a", AccessModes: []string{"ReadWriteMany"}},
	{Name: "pv-read", Driver: rbd, Handle: "h-5", ClusterID: "a", AccessModes: []string{"ReadOnlyMany"}},
}

func volumeNamed(name string) Volume {
	return worldVolumes[slices.IndexFunc(worldVolumes, func(v Volume) bool { return v.Name == name })]
}

func unique(v Volume) string { return "kubernetes.io/csi/" + v.Driver + "^" + v.Handle }

// machine is a computer. While it is on, it writes to what it has mounted unless the storage blocks it, whatever
// Kubernetes thinks of it.
type machine struct {
	// firstStatus: its kubelet has started again, and its first status keeps the lists that the API server has (kubernetes#33203).
	firstStatus bool
	node        string // whose name it runs under
	was         string // whose name it ran under before
	uuid        string
	boot        int
	on          bool
	reaches     bool // the API server
	scrap       bool // another machine has its name: it is never heard of again
	// address of its client pods at each storage cluster, and since which step.
	address map[string]netip.Addr
	since   int
	// had are all addresses that its kubelet has reported.
	had    map[string]bool
	mounts map[string]*mount
	// waits: its kubelet lists volumes that it only waits for.
	waits map[string]bool
	// unready: its kubelet says that it is not Ready.
	unready bool
	// suspect: in this boot, there was reason to fence it.
	suspect bool
	// reported: the step of its first heartbeat in this boot.
	reported int
}

// mount of a volume stays by the address that it was made by.
type mount struct {
	from netip.Addr
	// hidden: it was detached by force before the kubelet restarted, so the kubelet does not list it. The old container
	// ends a while after since, when the kubelet reached the API server.
	hidden bool
	since  time.Time
}

func (m *machine) bootID() string { return fmt.Sprintf("%s-boot-%d", m.uuid, m.boot) }

type worldNode struct {
	uid          string
	uuid, bootID string
	ready        bool
	unknown      bool
	changed      time.Time
	said         bool // by its kubelet
	taint, own   bool
	address      netip.Addr
	clients      map[string]netip.Addr // of its client pods, by storage cluster
	inUse        []string
	// loss is its annotation, and marked what its object changed with.
	loss   string
	marked int
}

// An attachment was made for a boot of a machine.
type attachment struct{ volume, node, bootID string }

// record of one machine that has or had the node's name.
type record struct {
	node        string
	version     int
	status      v1alpha1.NodeFenceStatus
	annotations map[string]string
}

// networkFence is the object, and what csi-addons did for it.
type networkFence struct {
	NetworkFence
	version int
	ours    bool
	// target is the boot of the machine that it was made for, as known at step made; late: created after that step.
	target string
	made   int
	late   bool
	// due: csi-addons has not looked at it since its last change.
	due bool
	// did is what csi-addons last did for it: a message may be older.
	did string
	// flipped by a user: Fairlead does not answer for it.
	flipped bool
}

// block on an address at a storage cluster.
type block struct {
	by   string
	ours bool
}

type world struct {
	now  time.Time
	step int
	ids  int

	machines []*machine
	blocks   map[string]map[string]block // storage cluster → CIDR → who placed it

	nodes       map[string]worldNode
	attachments []attachment
	records     records
	fences      map[string]networkFence
	silent      map[string]bool // nodes whose CSIAddonsNodes are gone

	noUUIDs   bool // kubelets do not know those of their machines
	nodesGate bool // the webhook for nodes is up; it is fail-open
	automatic bool
	modes     map[string]Mode
	driverUp  map[string]bool

	views  []view
	broken fault

	// forgiven: what an operator answers for; by machine, boot and volume.
	forgiven map[string]bool
	// tampered: an address was unblocked behind Fairlead's back, and Fairlead could not see that yet. By record, storage
	// cluster and CIDR: the NetworkFence that did it.
	tampered map[string]string
	// noticed: mounts, keyed like forgiven, that Fairlead could record.
	noticed map[string]bool
	// looked: the step in which Fairlead last had nothing to do for a node.
	looked map[string]int
	// leader of the controllers now.
	leader leader
	// targets of NetworkFences, by name: the boot each was made for.
	targets map[string]string
	// givenUp: machines, by node, boot and driver, that were gone and unfenced while the driver was switched off.
	givenUp map[string]bool
	// stood: NetworkFences, by name, and incidents, for which volumes may have been released.
	stood map[string]bool
}

var modelDrivers = map[string]string{rbd: "a", cephFS: "a", other: "b"}

const (
	modelReadyFor = 20 * time.Second
	modelMaxAge   = 10 * time.Minute
)

func newWorld(nodes int, sharedAddress bool) *world {
	w := &world{
		broken: noFault(), now: time.Unix(1_000_000, 0), blocks: map[string]map[string]block{"a": {}, "b": {}},
		nodes: map[string]worldNode{}, records: records{}, fences: map[string]networkFence{}, silent: map[string]bool{},
		nodesGate: true, modes: map[string]Mode{}, driverUp: map[string]bool{},
		forgiven: map[string]bool{}, noticed: map[string]bool{}, looked: map[string]int{}, leader: leader{lastBoot: map[string]string{}}, step: 1, tampered: map[string]string{}, targets: map[string]string{}, stood: map[string]bool{}, givenUp: map[string]bool{},
	}
	for driver := range modelDrivers {
		w.modes[driver], w.driverUp[driver] = ModeFence, true
	}
	for i := range nodes {
		m := w.newMachine(fmt.Sprintf("node-%d", i+1))
		if sharedAddress && i == 1 {
			m.address = w.machines[0].address // both behind one address
		}
		w.heartbeat(m)
	}
	return w
}

func (w *world) id() int { w.ids++; return w.ids }

// leader is one process of Fairlead's controllers: what it alone knows.
type leader struct {
	// away: it sees nothing. At its next look, another process leads.
	away bool
	// skew of its clock, and since when it leads, by that clock.
	skew    time.Duration
	started time.Time
	// lastBoot of Nodes that it has seen deleted.
	lastBoot map[string]string
}

// lead makes another process lead, whose clock may be off.
func (w *world) lead(skew time.Duration) {
	w.leader = leader{skew: skew, started: w.now.Add(skew), lastBoot: map[string]string{}}
}

func (w *world) newMachine(node string) *machine {
	m := &machine{node: node, uuid: fmt.Sprintf("uuid-%d", w.id()), on: true, reaches: true, mounts: map[string]*mount{}, waits: map[string]bool{}, had: map[string]bool{}, address: w.newAddresses(), since: w.step}
	w.machines = append(w.machines, m)
	return m
}

func (w *world) newAddresses() map[string]netip.Addr {
	n := w.id()
	return map[string]netip.Addr{"a": netip.AddrFrom4([4]byte{10, 0, byte(n >> 8), byte(n)}), "b": netip.AddrFrom16([16]byte{0xfd, 14: byte(n >> 8), 15: byte(n)})}
}

// machineOf a node's name, now.
func (w *world) machineOf(node string) *machine {
	i := slices.IndexFunc(w.machines, func(m *machine) bool { return m.node == node && !m.scrap })
	if i < 0 {
		return nil
	}
	return w.machines[i]
}

func (w *world) nodeNames() []string {
	var names []string
	for _, m := range w.machines {
		if !m.scrap {
			names = append(names, m.node)
		}
	}
	return names
}

func (w *world) blocked(m *machine, cluster string) bool {
	return w.blockedAt(cluster, m.address[cluster])
}

func (w *world) blockedAt(cluster string, a netip.Addr) bool {
	_, blocked := w.blocks[cluster][HostPrefix(a).String()]
	return blocked
}

// at which address the storage knows the machine as a client of a volume.
func (m *machine) at(v Volume) netip.Addr {
	if mounted := m.mounts[v.Name]; mounted != nil {
		return mounted.from
	}
	return m.address[v.ClusterID]
}

func (w *world) writes(m *machine, v Volume) bool {
	return m.on && m.mounts[v.Name] != nil && !w.blockedAt(v.ClusterID, m.at(v))
}

func forgivenKey(m *machine, volume string) string { return m.bootID() + " " + volume }

func (w *world) forgive(m *machine, volume string) { w.forgiven[forgivenKey(m, volume)] = true }

// --- Kubernetes

// heartbeat is a kubelet's report to the API server; the kubelet creates its Node if there is none.
func (w *world) heartbeat(m *machine) {
	if !m.on || !m.reaches || m.scrap {
		return
	}
	n, there := w.nodes[m.node]
	if !there {
		n = worldNode{uid: fmt.Sprint("uid-", w.id()), changed: w.now}
	}
	if n.ready == m.unready || n.unknown {
		n.ready, n.unknown, n.changed = !m.unready, false, w.transition()
	}
	n.said = true
	for driver := range modelDrivers {
		delete(w.givenUp, m.node+m.bootID()+driver) // it is there
	}
	n.uuid, n.bootID, n.address = m.uuid, m.bootID(), m.address["a"]
	for cluster, a := range m.address {
		m.had[cluster+" "+HostPrefix(a).String()] = true
	}
	if w.noUUIDs {
		n.uuid = ""
	}
	n.clients = m.address
	if !m.firstStatus || !there {
		n.inUse = nil
		for _, v := range worldVolumes {
			if mounted := m.mounts[v.Name]; mounted != nil && !mounted.hidden || m.waits[v.Name] {
				n.inUse = append(n.inUse, unique(v))
			}
		}
	}
	m.firstStatus = false
	w.nodes[m.node] = n
	if n.taint {
		m.suspect = true
	}
	if m.reported == 0 {
		m.reported = w.step
	}
}

// nodeController notices that a node is silent.
func (w *world) nodeController(node string) {
	m, n := w.machineOf(node), w.nodes[node]
	if _, there := w.nodes[node]; there && n.said && (!m.on || !m.reaches) {
		n.said, n.ready, n.unknown, n.changed = false, false, true, w.transition()
		w.nodes[node] = n
	}
}

// transition is the time of a change of a condition: no two are in one second.
func (w *world) transition() time.Time {
	w.pass(time.Second)
	return w.now
}

func (w *world) attachedTo(volume string) []string {
	var on []string
	for _, a := range w.attachments {
		if a.volume == volume {
			on = append(on, a.node)
		}
	}
	return on
}

// attach is the attach-detach controller asking for an attachment, through the gate.
func (w *world) attach(t *rapid.T, v Volume, node string) {
	if w.mayAsk(v, node) && w.gate(v, node) == nil {
		w.mustNotBeWritable(t, v, node)
		w.attachments = append(w.attachments, attachment{v.Name, node, w.nodes[node].bootID})
	}
}

// mayAsk reports whether Kubernetes would attach a volume to a node, for all it knows.
func (w *world) mayAsk(v Volume, node string) bool {
	on := w.attachedTo(v.Name)
	n, there := w.nodes[node]
	return there && !n.taint && n.ready && !slices.Contains(on, node) && (len(on) == 0 || v.Shared() || v.ReadOnly())
}

// gate asks the gate, on live facts.
func (w *world) gate(v Volume, node string) *Held {
	var holders []Holder
	for _, name := range w.everyName() {
		sakes := w.records.of(name, w.node(name, w.nodes[name]))
		inUse := slices.Contains(w.nodes[name].inUse, unique(v))
		if name == node || sakes.recorded(v.Held()) || inUse || slices.Contains(w.attachedTo(v.Name), name) {
			holders = append(holders, sakes.Holders(v)...)
		}
	}
	return w.broken.gate(v, node, holders, w.policy())
}

func (w *world) everyName() []string {
	names := map[string]bool{}
	for n := range w.nodes {
		names[n] = true
	}
	for _, r := range w.records {
		names[r.node] = true
	}
	return slices.Sorted(maps.Keys(names))
}

// mount is a kubelet mounting what is attached; a storage that blocks it says no.
func (w *world) mount(v Volume, node string) {
	m := w.machineOf(node)
	if !m.on || !m.reaches || w.blocked(m, v.ClusterID) || w.nodes[node].bootID != m.bootID() || !slices.Contains(w.attachedTo(v.Name), node) {
		return
	}
	if m.mounts[v.Name] == nil {
		m.mounts[v.Name] = &mount{from: m.address[v.ClusterID]}
		// Fairlead may be away from here on. Without the volume or the address on record, it can't know the mount.
		s := w.recordOf(m).status
		noticed := onRecord(Record{Status: s}, v.Held()) && w.lists(s, m, v)
		for _, name := range w.records.names(m.node) { // in a boot that no record has, an earlier boot's address still counts
			s := w.records[name].status
			noticed = noticed || s.Node.SystemUUID == m.uuid && onRecord(Record{Status: s}, v.Held()) && m.known(s, v) && w.lists(s, m, v)
		}
		w.noticed[forgivenKey(m, v.Name)] = noticed
	}
	m.mounts[v.Name].hidden = false
	delete(m.waits, v.Name)
	w.heartbeat(m) // the kubelet reports a volume before it mounts it
	left := func(a attachment) bool {
		return a.volume == v.Name && a.node == node && !strings.HasPrefix(a.bootID, m.uuid+"-")
	}
	if w.modes[v.Driver] == ModeOff || slices.ContainsFunc(w.attachments, left) {
		w.forgive(m, v.Name) // no gate is asked for an attachment that the machine before has left
	}
}

func (m *machine) unmount(volume string) {
	delete(m.mounts, volume)
	delete(m.waits, volume)
}

// startClients again: client pods get other addresses, and one address may be of earlier pods.
func (w *world) startClients(m *machine, reuse bool) {
	if slices.ContainsFunc(w.machines, func(o *machine) bool { return o != m && o.address["a"] == m.address["a"] }) {
		return // what both are behind stays
	}
	m.address, m.since = w.newAddresses(), w.step
	if free := w.freeAddresses("a"); reuse && len(free) > 0 {
		m.address["a"] = free[0]
	}
	w.heartbeat(m)
}

// freeAddresses have mounts, and no client pod.
func (w *world) freeAddresses(cluster string) []netip.Addr {
	var free []netip.Addr
	for _, m := range w.machines {
		for _, v := range worldVolumes {
			mounted := m.mounts[v.Name]
			if mounted != nil && v.ClusterID == cluster && !slices.ContainsFunc(w.machines, func(o *machine) bool { return o.address[cluster] == mounted.from }) {
				free = append(free, mounted.from)
			}
		}
	}
	return free
}

// startKubelet again: it does not list mounts that have no attachment.
func (w *world) startKubelet(m *machine) {
	for v, mounted := range m.mounts {
		if mounted.hidden || slices.Contains(w.attachedTo(v), m.node) {
			continue
		}
		if mounted.hidden, mounted.since = true, (time.Time{}); m.reaches {
			mounted.since = w.now
		}
		if !w.showsLoss(m) {
			// Tainted, detached by force and untainted, unseen by Fairlead: it looks like a released volume.
			delete(w.noticed, forgivenKey(m, v))
		}
	}
	m.firstStatus = true
	w.heartbeat(m)
}

// showsLoss: the record and the Node together show that the machine was lost or tainted in this boot.
func (w *world) showsLoss(m *machine) bool {
	s, n := w.recordOf(m).status, w.nodes[m.node]
	seen := s.Phase == v1alpha1.NodeLost || s.Phase == v1alpha1.NodeFencing || s.Reason == ReasonTaintedButReady
	back := !n.ready || s.Node.UID != types.UID(n.uid) || s.ReadyChanged != nil && !s.ReadyChanged.Time.Equal(n.changed)
	return seen || back && s.ReadyChanged != nil
}

// mayBe: the identity on record is of this boot of the machine, or of an unknown boot.
func (m *machine) mayBe(is v1alpha1.MachineIdentity) bool {
	return is.BootID == m.bootID() || is.BootID == "" && is.SystemUUID == m.uuid
}

// recordOf this boot of a machine.
func (w *world) recordOf(m *machine) record {
	for _, name := range w.records.names(m.node) {
		if r := w.records[name]; m.mayBe(r.status.Node) {
			return r
		}
	}
	return record{}
}

// present record of a node: of the machine that has the name now.
func (w *world) present(node string) Record {
	r, _ := w.records.of(node, w.node(node, w.nodes[node])).Present()
	return r
}

func (w *world) heal(m *machine) {
	m.reaches = true
	for _, mounted := range m.mounts {
		if mounted.since.IsZero() {
			mounted.since = w.now
		}
	}
	w.heartbeat(m)
}

// pass time: a kubelet ends hidden mounts within four minutes of reaching the API server.
func (w *world) pass(d time.Duration) {
	w.now = w.now.Add(d)
	for _, m := range w.machines {
		for v, mounted := range m.mounts {
			if mounted.hidden && !mounted.since.IsZero() && w.now.Sub(mounted.since) >= 4*time.Minute {
				m.unmount(v)
			}
		}
	}
}

// stop a machine: its mounts end.
func (m *machine) stop() {
	m.on, m.unready, m.mounts, m.waits = false, false, map[string]*mount{}, map[string]bool{}
}

// endPod: a pod on a working node ends, so its volume is unmounted, then detached.
func (w *world) endPod(v Volume, node string) {
	if m := w.machineOf(node); m.on && m.reaches {
		m.unmount(v.Name)
	}
}

// detach is the attach-detach controller: when the kubelet does not list the volume; or by force, for a taint, after six
// minutes, or when the Node is gone.
func (w *world) detach(volume, node string) {
	n, there := w.nodes[node]
	forced := !there || n.taint || !n.ready && w.now.Sub(n.changed) >= 6*time.Minute
	if forced || !slices.Contains(n.inUse, unique(volumeNamed(volume))) {
		w.attachments = slices.DeleteFunc(w.attachments, func(a attachment) bool { return a.volume == volume && a.node == node })
	}
}

// --- csi-addons

func (w *world) csiAddons(t *rapid.T, name string, outcome string) {
	f, there := w.fences[name]
	switch {
	case !there, !w.driverUp[w.driverOf(f.NetworkFence)]: // without a leader the status stays
		return
	case f.Deleting:
		delete(w.fences, name)
		return
	case !f.due:
		return
	case outcome == "fails": // and stays due
		f.Result, f.Message = resultFailed, "rpc error: code = Internal"
		w.put(name, f)
		return
	}
	w.execute(t, &f)
	f.did = did(f.NetworkFence)
	if outcome == "status is lost" {
		w.fences[name] = f
		return
	}
	f.due = false
	f.Result, f.Message = resultSucceeded, fencedMessage
	if f.Unfenced {
		f.Message = unfencedMessage
	}
	w.put(name, f)
}

func did(n NetworkFence) string { return fmt.Sprint(n.Unfenced, n.CIDRs) }

// lies: its status says that it blocks, and csi-addons last did something else.
func (f networkFence) lies() bool {
	return !f.Unfenced && f.Result == resultSucceeded && f.Message == fencedMessage && f.did != did(f.NetworkFence)
}

func (w *world) driverOf(n NetworkFence) string {
	if n.Class != "" {
		return strings.TrimPrefix(n.Class, "class-")
	}
	return n.Driver
}

func (w *world) execute(t *rapid.T, f *networkFence) {
	cluster := modelDrivers[w.driverOf(f.NetworkFence)]
	for _, cidr := range f.CIDRs {
		p, err := netip.ParsePrefix(cidr)
		if err != nil {
			continue
		}
		if !f.Unfenced {
			if f.ours && !f.flipped {
				w.mustNotBeInnocent(t, f, cluster, p.Addr())
			}
			if was, blocked := w.blocks[cluster][cidr]; !blocked || !was.ours {
				w.blocks[cluster][cidr] = block{f.Name, f.ours && !f.flipped}
			}
			continue
		}
		if _, blocked := w.blocks[cluster][cidr]; !blocked {
			continue
		}
		if f.ours && !f.flipped {
			w.mustHaveRebooted(t, f, cluster, p.Addr())
		} else {
			w.tamper(f.Name, cluster, cidr)
		}
		delete(w.blocks[cluster], cidr)
	}
}

// tamper: an address is unblocked behind Fairlead's back.
func (w *world) tamper(by, cluster, cidr string) {
	for name := range w.records {
		w.tampered[name+" "+cluster+" "+cidr] = by
	}
	for _, m := range w.machines {
		for _, v := range worldVolumes {
			// A released volume may have two writers now; others are held again once Fairlead sees it.
			if m.mounts[v.Name] != nil && v.ClusterID == cluster && HostPrefix(m.at(v)).String() == cidr && w.elsewhere(m, v) {
				w.forgive(m, v.Name)
			}
		}
	}
}

// isTampered: the machine was unblocked for a volume, and Fairlead could not see that yet.
func (w *world) isTampered(m *machine, v Volume) bool {
	for name, r := range w.records {
		if m.mayBe(r.status.Node) && w.tampered[name+" "+v.ClusterID+" "+HostPrefix(m.at(v)).String()] != "" {
			return true
		}
	}
	return false
}

// elsewhere: a volume is attached to or mounted by another machine.
func (w *world) elsewhere(m *machine, v Volume) bool {
	for _, o := range w.machines {
		if o != m && o.on && o.mounts[v.Name] != nil {
			return true
		}
	}
	return slices.ContainsFunc(w.attachments, func(a attachment) bool { return a.volume == v.Name && (a.node != m.node || a.bootID != m.bootID()) })
}

// put is a write to a NetworkFence.
func (w *world) put(name string, f networkFence) {
	f.version++
	f.ResourceVersion = fmt.Sprint(f.version)
	w.fences[name] = f
}

// restartCSIAddons: its manager looks at everything again.
func (w *world) restartCSIAddons() {
	for name, f := range w.fences {
		f.due = true
		w.fences[name] = f
	}
}

// --- people

func (w *world) taint(node string, on, own bool) {
	n, there := w.nodes[node]
	if !there {
		return
	}
	r := w.present(node)
	if w.nodesGate && !own {
		if on && AddTaint(w.node(node, n), r) != nil || !on && n.taint && RemoveTaint(w.node(node, n), r) != nil {
			return
		}
	}
	n.taint, n.own = on, on && own
	w.nodes[node] = n
	if m := w.machineOf(node); on {
		m.suspect = true
	}
}

func (w *world) reboot(m *machine) {
	m.stop()
	m.on, m.reaches, m.suspect, m.reported = true, true, false, 0
	m.boot++
}

func (w *world) deleteNode(node string) {
	w.dropNode(node)
	w.machineOf(node).suspect = true
}

func (w *world) dropNode(node string) {
	if n, there := w.nodes[node]; there && !w.leader.away {
		w.leader.lastBoot[node] = n.bootID
	}
	delete(w.nodes, node)
}

// rename a machine: it comes back as another node. Its former Node is deleted.
func (w *world) rename(m *machine, boots bool) {
	w.deleteNode(m.node)
	if boots {
		w.reboot(m)
	}
	m.was, m.node = m.node, fmt.Sprint("node-", w.id())
}

// replace a machine by another of the same name; the old one may still run.
func (w *world) replace(node string) {
	m := w.machineOf(node)
	m.reaches, m.scrap, m.suspect = false, true, true
	w.newMachine(node)
	w.dropNode(node)
}

// override a gate of a record, through the webhook that records it.
func (w *world) override(name, gate string) {
	r, there := w.records[name]
	if !there {
		return
	}
	o := Override{Gate: gate, By: "alice", Reason: "I know", Scope: Scope(r.status), At: w.now}
	r.annotations = map[string]string{OverrideAnnotation: gate + ": I know", OverriddenAnnotation: o.Text()}
	r.version++
	w.records[name] = r
	if gate == GateAttach {
		w.stood[r.status.Incident] = true
	}
	if gate == GateTaint || r.status.Incident == "" {
		return
	}
	for _, m := range w.machines {
		if w.isOf(m, r) {
			for v := range m.mounts {
				w.forgive(m, v)
			}
		}
	}
}

// isOf: the record is of the machine, or of an unseen one while the machine has none.
func (w *world) isOf(m *machine, r record) bool {
	is := func(r record) bool { return strings.HasPrefix(r.status.Node.BootID, m.uuid+"-") }
	if r.status.Node.BootID != "" {
		return is(r)
	}
	if r.status.Node.SystemUUID != "" { // of an unknown boot; the machine may have another name now
		return r.status.Node.SystemUUID == m.uuid
	}
	return (m.node == r.node || m.was == r.node) && !slices.ContainsFunc(w.records.names(m.node), func(name string) bool { return is(w.records[name]) })
}

func (w *world) setMode(driver string, mode Mode) {
	w.modes[driver] = mode
	if mode == ModeOff {
		for _, m := range w.machines {
			for v := range m.mounts {
				if volumeNamed(v).Driver == driver {
					w.forgive(m, v)
				}
			}
		}
	}
}

// --- what Fairlead reads

func (w *world) policy() Policy {
	modes := maps.Clone(w.modes)
	return Policy{
		MaxAge: modelMaxAge, ReadyFor: modelReadyFor, Automatic: w.automatic,
		Storages: func(driver string) (StoragePolicy, bool) {
			mode, known := modes[driver]
			return StoragePolicy{Mode: mode}, known
		},
	}
}

// view is what a cache, or a live read, shows at one moment.
type view struct {
	step        int // of the oldest part
	now         time.Time
	nodes       map[string]worldNode
	attachments []attachment
	records     records
	fences      map[string]networkFence
	cached      bool // in part
	leader      leader
	silent      map[string]bool
}

func (w *world) view() view {
	return view{
		step: w.step, now: w.now, leader: w.leader, nodes: maps.Clone(w.nodes), attachments: slices.Clone(w.attachments),
		records: maps.Clone(w.records), fences: maps.Clone(w.fences), silent: maps.Clone(w.silent),
	}
}

// sources report the addresses of a node's clients, as old as its Node here; CSIAddonsNodes that are gone report none.
func (v view) sources(node string) []v1alpha1.StorageIdentity {
	var list []v1alpha1.StorageIdentity
	for _, driver := range slices.Sorted(maps.Keys(modelDrivers)) {
		cluster := modelDrivers[driver]
		address, there := v.nodes[node].clients[cluster]
		if !there {
			continue
		}
		i := v1alpha1.StorageIdentity{Driver: driver, ClusterID: cluster, Class: "class-" + driver, Problem: "silent"}
		if !v.silent[node] {
			i.Addresses, i.Problem = []v1alpha1.ClientAddress{{CIDR: HostPrefix(address).String(), Source: SourceCSIAddonsNode}}, ""
		}
		list = append(list, i)
	}
	return list
}

func (w *world) node(name string, n worldNode) Node {
	if n.uid == "" {
		return Node{Name: name}
	}
	return Node{
		Name: name, Exists: true, Machine: v1alpha1.MachineIdentity{UID: types.UID(n.uid), BootID: n.bootID, SystemUUID: n.uuid},
		Ready: n.ready, ReadyChanged: n.changed, OutOfService: n.taint, OwnTaint: n.own, Addresses: []netip.Addr{n.address}, Unknown: n.unknown, RecordedLoss: n.loss, InUse: n.inUse,
	}
}

// namesakes are what a view shows of a node's name.
func (w *world) namesakes(v view, node string) Namesakes {
	use := Use{InUse: v.nodes[node].inUse}
	for _, a := range v.attachments {
		if a.node == node {
			use.Attached = append(use.Attached, a.volume)
		}
	}
	policy := w.policy()
	n := v.records.of(node, w.node(node, v.nodes[node]))
	n.Shown = Holding(use, worldVolumes, n.Recorded(), func(driver string) bool { return policy.Mode(driver) != ModeOff })
	return n
}

// records by their names.
type records map[string]record

// of a node's name.
func (r records) of(node string, now Node) Namesakes {
	n := Namesakes{Node: now}
	for _, name := range r.names(node) {
		n.Records = append(n.Records, r[name].read(name))
	}
	return n
}

// names of the records of all machines that have or had a node's name.
func (r records) names(node string) []string {
	var names []string
	for name := range r {
		if r[name].node == node {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

func (r record) read(name string) Record {
	return Record{Name: name, Status: r.status, Override: ReadOverride(r.annotations, r.status)}
}

// facts of one record; none where the view does not have it.
func (w *world) facts(v view, node, name string, now time.Time) (Facts, bool) {
	sakes := w.namesakes(v, node)
	i := slices.IndexFunc(sakes.Records, func(r Record) bool { return r.Name == name })
	if i < 0 {
		return Facts{}, false
	}
	f := sakes.Of(i)
	f.Now, f.Started, f.Policy, f.Classes = now, v.leader.started, w.policy(), classes("class-")
	if !f.Node.Exists && !f.Replaced {
		f.LastBoot = v.leader.lastBoot[node]
	}
	if f.Node.Ready {
		f.Ledger = v.sources(node)
	}
	for _, a := range v.attachments {
		if a.node == node && !f.Replaced {
			f.Left = append(f.Left, "attachment of "+a.volume)
			if a.bootID != f.Node.Machine.BootID {
				f.OldAttachments = append(f.OldAttachments, a.volume)
			}
		}
	}
	for _, fence := range slices.Sorted(maps.Keys(v.fences)) {
		f.Fences = append(f.Fences, v.fences[fence].NetworkFence)
	}
	var nodes []Node
	for o := range v.nodes {
		nodes = append(nodes, w.node(o, v.nodes[o]))
	}
	var all []Record
	for o, r := range v.records {
		all = append(all, r.read(o))
	}
	f.Machines = Machines(ByName(nodes, all))
	for i, o := range f.Machines {
		if o.Node.Exists {
			f.Machines[i].ClientAddresses = slices.Collect(maps.Values(v.nodes[o.Node.Name].clients))
		}
	}
	w.broken.facts(w, v, &f)
	return f, true
}

// --- Fairlead's controller

// act reconciles the records of a node name, and then creates the missing one. Writes carry the version that was read;
// the controller crashes after so many of them. It reports whether there was anything to do.
func (w *world) act(t *rapid.T, v view, node string, now time.Time, writes int) bool {
	if w.leader.away {
		w.lead(drawOf(t, "clock is off by", 0, 0, 3*time.Hour, -3*time.Hour))
		v.leader = w.leader
	}
	did := false
	now = now.Add(v.leader.skew)
	for _, name := range v.records.names(node) {
		wrote, acted := w.actOn(t, v, node, name, now, &writes)
		if wrote {
			return true // the next actions follow from the record
		}
		did = did || acted
	}
	if v.cached {
		v.records = w.view().records
	}
	if f, missing := w.namesakes(v, node).Missing(w.policy()); missing {
		if _, exists := w.records[f.Record]; !exists && writes > 0 {
			w.records[f.Record] = record{node: node, version: w.id()}
		}
		return true
	}
	if v.step == w.step && writes >= 0 {
		w.looked[node] = w.step
	}
	return did
}

// actOn one record does what Next says. It reports whether it had to write the record, or had anything else to do.
func (w *world) actOn(t *rapid.T, v view, node, name string, now time.Time, writes *int) (wrote, acted bool) {
	decide := func() (Facts, bool, Step) {
		f, there := w.facts(v, node, name, now)
		return f, there, Next(f)
	}
	f, there, step := decide()
	if v.cached && !w.broken.believesCaches {
		// Like controllers/fencing: caches suffice for the ledger of a healthy node, nothing is forgotten before the
		// node is read live, and all else is decided on live reads.
		if there && Forgets(f.Status, step.Status) {
			v.nodes, v.silent = w.view().nodes, w.view().silent
			f, there, step = decide()
		}
		if !there || !routine(f, step) || f.Node.RecordedLoss != "" || len(w.records.names(node)) > 1 {
			v = w.view()
			f, there, step = decide()
		}
	}
	if !there {
		return true, false
	}
	for _, h := range f.Holding {
		delete(w.givenUp, f.Node.Name+f.Status.Node.BootID+h.Driver) // it may still be its own
	}
	current, there := w.records[name]
	asRead := there && current.version == v.records[name].version
	differs := func() bool { return !equality.Semantic.DeepEqual(step.Status, f.Status) }
	if differs() {
		if *writes > 0 && asRead {
			noticed := maps.Clone(w.noticed)
			w.write(name, step.Status)
			if m := w.machineOf(node); m != nil && v.step < w.step {
				// An old leader, or one with an old cache, has written what it saw before a loss that no other leader
				// has noticed: hidden mounts are not known then.
				for volume, mounted := range m.mounts {
					if k := forgivenKey(m, volume); mounted.hidden && (!v.cached || !noticed[k]) {
						delete(w.noticed, k)
					}
				}
			}
		}
		// Like controllers/fencing: what follows from a live read is done at once, if no other machine has the name.
		if *writes <= 0 || !asRead || v.cached || len(v.records.names(node)) > 1 {
			return true, true
		}
		*writes--
		v.records = maps.Clone(v.records)
		v.records[name] = w.records[name]
		if f, there, step = decide(); !there || differs() {
			return true, true
		}
	}
	if asRead && !v.cached && v.step == w.step {
		w.notice(node, f.Status, f.Status)
	}
	did := func() bool { *writes--; return *writes >= 0 }
	if step.Forget && did() && asRead {
		delete(w.records, name)
	}
	loss := RecordedLoss(f.Node, step.Status)
	marks := loss != f.Node.RecordedLoss
	if n, exists := w.nodes[node]; marks && reflect.DeepEqual(n, v.nodes[node]) && did() && exists {
		n.loss, n.marked = loss, w.id()
		w.nodes[node] = n
	}
	for _, n := range step.Create {
		if _, exists := w.fences[n.Name]; !exists && did() {
			w.mustNotBeWell(t, f, n)
			decided := v.step
			if v.cached {
				decided = w.step // it could have read live
			}
			w.create(f, n, decided)
		}
	}
	for _, n := range step.Unfence {
		if have, exists := w.fences[n.Name]; exists && have.ResourceVersion == n.ResourceVersion && did() {
			have.Unfenced, have.due = true, true
			w.put(n.Name, have)
		}
	}
	for _, n := range step.Delete {
		if have, exists := w.fences[n.Name]; exists && have.ResourceVersion == n.ResourceVersion && did() {
			have.Deleting = true
			w.put(n.Name, have)
		}
	}
	if n := w.nodes[node]; step.RemoveTaint && n.own && n.uid == string(f.Node.Machine.UID) && did() {
		n.taint, n.own = false, false
		w.nodes[node] = n
	}
	if v.step == w.step && *writes >= 0 {
		w.seen(name)
		w.seenOff(f)
	}
	return step.Forget, marks || step.RemoveTaint || len(step.Create)+len(step.Unfence)+len(step.Delete) > 0
}

func routine(f Facts, s Step) bool {
	healthy := f.Status.Phase == "" || f.Status.Phase == v1alpha1.NodeHealthy && f.Status.Reason != ReasonTaintedButReady
	return healthy && !MissedLoss(f.Status, f.Node) && f.Node.Ready && !f.Node.OutOfService && len(f.Status.Fences) == 0 && s.Status.Phase == v1alpha1.NodeHealthy && !s.Forget && !s.RemoveTaint
}

func (w *world) write(name string, s v1alpha1.NodeFenceStatus) {
	r := w.records[name]
	before := r.status
	r.version, r.status = w.id(), s
	w.records[name] = r
	for _, f := range s.Fences {
		if f.State == v1alpha1.FenceFenced {
			w.stood[f.Name], w.stood[f.Incident] = true, true
		}
	}
	w.notice(r.node, before, s)
}

// notice: another machine must not write to what is on record of a machine's mounts from here on.
func (w *world) notice(node string, before, s v1alpha1.NodeFenceStatus) {
	for _, m := range w.machines {
		for name, mounted := range m.mounts {
			v := volumeNamed(name)
			if m.node != node || s.Node.BootID != m.bootID() {
				continue
			}
			if (!m.known(before, v) || before.Node.BootID != s.Node.BootID) && !w.lists(s, m, v) {
				delete(w.noticed, forgivenKey(m, name)) // the address was another before any was known in this boot
			}
			if mounted.hidden && !mayHaveBeenForced(s) {
				continue // the Node was read before the kubelet restarted, as in startKubelet
			}
			if w.lists(s, m, v) && slices.ContainsFunc(s.Volumes, func(h v1alpha1.HeldVolume) bool { return h.PersistentVolume == name }) {
				w.noticed[forgivenKey(m, name)] = true
			}
		}
	}
}

// lists: the record has the address that the volume is mounted by, or none, and says so.
func (w *world) lists(s v1alpha1.NodeFenceStatus, m *machine, v Volume) bool {
	i, _ := key{v.Driver, v.ClusterID}.in(s.Identities)
	return !m.known(s, v) || listed([]v1alpha1.StorageIdentity{i}, m.at(v))
}

// known: the record has an address that the machine has or had at the volume's storage cluster. One that it never had is no knowledge.
func (m *machine) known(s v1alpha1.NodeFenceStatus, v Volume) bool {
	i, _ := key{v.Driver, v.ClusterID}.in(s.Identities)
	return slices.ContainsFunc(i.Addresses, func(a v1alpha1.ClientAddress) bool { return m.had[v.ClusterID+" "+a.CIDR] })
}

// counts: the machine writes to the volume, no operator answers for that, and Fairlead could record the mount and its
// address: an attachment that comes and goes unseen leaves no trace.
func (w *world) counts(m *machine, v Volume) bool {
	return w.writes(m, v) && w.noticed[forgivenKey(m, v.Name)] && !w.forgiven[forgivenKey(m, v.Name)]
}

// trueBoot is the present boot of a machine on record; without its boot on record, by its system UUID.
func (w *world) trueBoot(is v1alpha1.MachineIdentity) string {
	for _, m := range w.machines {
		if strings.HasPrefix(is.BootID, m.uuid+"-") || is.BootID == "" && is.SystemUUID == m.uuid {
			return m.bootID()
		}
	}
	return is.BootID
}

func (w *world) create(f Facts, n NetworkFence, decided int) {
	target := w.trueBoot(f.Status.Node)
	if was, known := w.targets[n.Name]; known {
		target = was
	} else {
		w.targets[n.Name] = target
	}
	n.UID, n.ResourceVersion = types.UID(fmt.Sprint("fence-", w.id())), "1"
	w.fences[n.Name] = networkFence{NetworkFence: n, version: 1, ours: true, target: target, made: decided, late: decided < w.step, due: true}
}

// seen: Fairlead has looked at its fences as they are, and could correct the record.
func (w *world) seen(name string) {
	for _, r := range w.records[name].status.Fences {
		if f, there := w.fences[r.Name]; there && f.lies() {
			continue // unknown until csi-addons has looked at it again
		}
		for _, cidr := range r.CIDRs {
			at := name + " " + r.ClusterID + " " + cidr
			by := w.fences[w.tampered[at]]
			_, blocked := w.blocks[r.ClusterID][cidr]
			others := func(o v1alpha1.Fence) bool {
				return o.Name != r.Name && o.ClusterID == r.ClusterID && slices.Contains(o.CIDRs, cidr)
			}
			alone := !slices.ContainsFunc(w.records[name].status.Fences, others)
			// Else no trace is left: a stranger's object is gone or changed, or ours is flipped back.
			if blocked || w.tampered[at] == r.Name && alone || by.Unfenced && slices.Contains(by.CIDRs, cidr) {
				delete(w.tampered, at)
			}
		}
	}
}

// seenOff: Fairlead could give up a machine that is gone while its driver is switched off.
func (w *world) seenOff(f Facts) {
	for driver, mode := range w.modes {
		uses := func(v v1alpha1.HeldVolume) bool { return v.Driver == driver }
		asked := slices.ContainsFunc(f.Status.Fences, func(r v1alpha1.Fence) bool { return r.Driver == driver })
		if mode == ModeOff && f.gone() && !asked && !slices.ContainsFunc(f.Holding, uses) && f.Status.Node.BootID != "" {
			w.givenUp[f.Node.Name+f.Status.Node.BootID+driver] = true
		}
	}
}

// --- what must hold

// mustNotBeWritable: no other machine writes to an exclusive volume that is released.
func (w *world) mustNotBeWritable(t *rapid.T, v Volume, node string) {
	if v.ReadOnly() || w.modes[v.Driver] == ModeOff {
		return
	}
	to := w.machineOf(node)
	for _, m := range w.machines {
		if m == to || !w.writes(m, v) {
			continue
		}
		if n, there := w.nodes[m.node]; v.Shared() && there && !n.taint && !m.scrap {
			continue // it may have many writers
		}
		r := w.recordOf(m)
		overridden := ReadOverride(r.annotations, r.status).Gate == GateAttach
		if !w.counts(m, v) || overridden || w.isTampered(m, v) {
			w.forgive(m, v.Name)
			continue
		}
		t.Fatalf("invariant 10: %s may be attached to %s while the machine %s of %s writes to it\n%s", v.Name, node, m.bootID(), m.node, w)
	}
}

// mustHaveOneWriter: no exclusive volume can be written to from two machines.
func (w *world) mustHaveOneWriter(t *rapid.T) {
	for _, v := range worldVolumes {
		if v.Shared() || v.ReadOnly() {
			continue
		}
		var writers []string
		for _, m := range w.machines {
			if w.counts(m, v) {
				writers = append(writers, m.node+" "+m.bootID())
			}
		}
		w.must(t, len(writers) <= 1, "invariant 10: %s is written to from %v", v.Name, writers)
	}
}

// mustHaveRebooted: the machine that a NetworkFence unfences has rebooted since, or has no old mounts.
func (w *world) mustHaveRebooted(t *rapid.T, f *networkFence, cluster string, a netip.Addr) {
	for _, m := range w.machines {
		for _, v := range worldVolumes {
			if v.ClusterID == cluster && m.on && m.mounts[v.Name] != nil && m.at(v) == a && !v.ReadOnly() && !w.forgiven[forgivenKey(m, v.Name)] && w.keepsOut(m, cluster, a, f) {
				t.Fatalf("invariant 10: %s unfences the machine %s of %s, which has not rebooted since it was lost and has %s mounted\n%s", f.Name, m.bootID(), m.node, v.Name, w)
			}
		}
	}
}

// keepsOut: volumes were released for the fence, or for another one of this boot whose record knows the address. Other
// fences never kept this client out; mustNotBeWritable judges their volumes.
func (w *world) keepsOut(m *machine, cluster string, a netip.Addr, f *networkFence) bool {
	boot := m.bootID()
	if f.target == boot && w.stood[f.Name] {
		return true
	}
	for _, r := range w.records {
		for _, o := range r.status.Fences {
			known := slices.Contains(o.CIDRs, HostPrefix(a).String()) || listed(r.status.Identities, a)
			if known && o.Incident == r.status.Incident && o.ClusterID == cluster && w.stood[o.Name] && w.targets[o.Name] == boot {
				return true
			}
		}
	}
	return false
}

// mustNotBeInnocent: the machine that a NetworkFence blocks was given up, or took over the address later.
func (w *world) mustNotBeInnocent(t *rapid.T, f *networkFence, cluster string, a netip.Addr) {
	if _, already := w.blocks[cluster][HostPrefix(a).String()]; already || f.did == did(f.NetworkFence) {
		return // done again: a node with the same address was unfenced meanwhile
	}
	for _, m := range w.machines {
		if m.address[cluster] != a || !m.on || !m.reaches || m.unready || m.suspect || m.since > f.made {
			continue
		}
		if m.reported == 0 || f.late && f.made < m.reported || w.looked[f.Labels[NodeLabel]] <= m.reported {
			continue // it has rebooted since, and Fairlead had not seen that
		}
		if w.bootUnknown(f.Name) {
			continue // volumes were released for it, and a reboot proves nothing: only a person ends it
		}
		t.Fatalf("%s blocks the healthy machine %s of %s\n%s", f.Name, m.bootID(), m.node, w)
	}
}

// bootUnknown: the record of a NetworkFence has no boot, and volumes were released for a fence of its incident.
func (w *world) bootUnknown(fence string) bool {
	for _, r := range w.records {
		if recordNames(r.status, NetworkFence{Name: fence}) {
			return r.status.Node.BootID == "" && slices.ContainsFunc(r.status.Fences, func(f v1alpha1.Fence) bool { return w.stood[f.Name] })
		}
	}
	return false
}

// mustNotBeWell: no fence is requested for a node that is Ready in the same boot, nor for a driver that is switched off,
// unless volumes were released for it.
func (w *world) mustNotBeWell(t *rapid.T, f Facts, n NetworkFence) {
	if n.Unfenced || w.stood[n.Labels[IncidentLabel]] {
		return
	}
	driver, sameBoot := w.driverOf(n), f.Node.Machine.BootID == f.Status.Node.BootID
	w.must(t, !f.Node.Ready || !sameBoot, "%s is to block %s, which is Ready in the same boot", n.Name, f.Node.Name)
	w.must(t, !w.givenUp[f.Node.Name+f.Status.Node.BootID+driver], "%s is to block a machine that was gone before fencing was switched on", n.Name)
	w.must(t, w.modes[driver] == ModeFence, "%s is requested, and the driver's mode is %s", n.Name, w.modes[driver])
}

// fencedMustBeFenced: whatever is recorded as fenced is blocked.
func (w *world) fencedMustBeFenced(t *rapid.T) {
	for name, r := range w.records {
		// Records with fences are found by their label.
		w.must(t, r.status.Phase != v1alpha1.NodeHealthy || len(r.status.Fences) == 0, "%s is Healthy, with %v on its record", name, r.status.Fences)
		if !isFencing(r.status.Phase) || ReadOverride(r.annotations, r.status).Gate == GateUnfence {
			continue // by override, it may be unfenced together with another of its address
		}
		for _, f := range r.status.Fences {
			if f.Incident != r.status.Incident {
				continue
			}
			fenced := f.State == v1alpha1.FenceFenced
			w.must(t, fenced || r.status.Phase == v1alpha1.NodeFencing, "%s is %s, and %s is %s", name, r.status.Phase, f.Name, f.State)
			for _, cidr := range f.CIDRs {
				_, blocked := w.blocks[f.ClusterID][cidr]
				tampered := w.tampered[name+" "+f.ClusterID+" "+cidr] != ""
				w.must(t, blocked || !fenced || tampered, "invariant 10: %s is recorded as fenced by %s, and %s is not blocked", name, f.Name, cidr)
			}
		}
	}
}

// gateMustHold asks the gate for everything that Kubernetes could ask for now.
func (w *world) gateMustHold(t *rapid.T) {
	for _, v := range worldVolumes {
		if !slices.ContainsFunc(w.machines, func(m *machine) bool { return w.counts(m, v) }) {
			continue
		}
		on := w.attachedTo(v.Name)
		for _, node := range slices.Sorted(maps.Keys(w.nodes)) {
			if v.ReadOnly() || len(on) > 0 && !v.Shared() || slices.Contains(on, node) || w.gate(v, node) != nil {
				continue
			}
			forgiven := maps.Clone(w.forgiven)
			w.mustNotBeWritable(t, v, node)
			w.forgiven = forgiven // it was only asked
		}
		w.otherNameMustBeHeld(t, v, len(on) > 0)
	}
}

// otherNameMustBeHeld: a PersistentVolume of another name may have the volume's handle.
func (w *world) otherNameMustBeHeld(t *rapid.T, v Volume, attached bool) {
	again := v
	again.Name += "-again"
	for _, node := range slices.Sorted(maps.Keys(w.nodes)) {
		if !v.ReadOnly() && !attached && w.gate(v, node) != nil {
			w.must(t, w.gate(again, node) != nil, "invariant 10: %s is held from %s, and %s is not", v.Name, node, again.Name)
		}
	}
}

func (w *world) check(t *rapid.T) {
	w.mustHaveOneWriter(t)
	w.fencedMustBeFenced(t)
	w.policiesMustRelease(t)
	w.gateMustHold(t)
}

func (w *world) String() string {
	var b strings.Builder
	for _, m := range w.machines {
		fmt.Fprintf(&b, "machine %s of %s: on %t, reaches %t, scrap %t, %v, mounts", m.bootID(), m.node, m.on, m.reaches, m.scrap, m.address)
		for _, v := range slices.Sorted(maps.Keys(m.mounts)) {
			fmt.Fprintf(&b, " %s %+v", v, *m.mounts[v])
		}
		b.WriteByte('\n')
	}
	for _, n := range slices.Sorted(maps.Keys(w.nodes)) {
		fmt.Fprintf(&b, "node %s: %+v\n", n, w.nodes[n])
	}
	fmt.Fprintf(&b, "attachments %v\nblocks %v\n", w.attachments, w.blocks)
	for _, n := range slices.Sorted(maps.Keys(w.records)) {
		status, _ := json.Marshal(w.records[n].status)
		fmt.Fprintf(&b, "record %s: %s %v\n", n, status, w.records[n].annotations)
	}
	for _, n := range slices.Sorted(maps.Keys(w.fences)) {
		fmt.Fprintf(&b, "networkfence %s: %+v\n", n, w.fences[n])
	}
	fmt.Fprintf(&b, "forgiven %v tampered %v\n", slices.Sorted(maps.Keys(w.forgiven)), w.tampered)
	return b.String()
}
