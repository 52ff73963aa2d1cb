package fence

import (
	"fmt"
	"maps"
	"net/netip"
	"reflect"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"

	"github.com/fairlead-io/fairlead/api/v1alpha1"
)

// A world of machines, storage clusters, Kubernetes, csi-addons and people, each
// with its own idea of what is going on. Only the machines and the block lists
// are the truth: who can write to what.

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

// machine is a computer. It writes to what it has mounted while it is on and its
// storage does not block it, whatever Kubernetes thinks of it.
type machine struct {
	node    string // whose name it runs under
	uuid    string
	boot    int
	on      bool
	reaches bool // the API server
	scrap   bool // another machine has its name: it is never heard of again
	// address it has at each storage cluster, and since which step.
	address map[string]netip.Addr
	since   int
	// had are all addresses that it has or had, as its kubelet has reported them.
	had    map[string]bool
	mounts map[string]bool
	// from is the address that each was mounted by: it stays when the client pods get another.
	from map[string]netip.Addr
	// waits: its kubelet says that it uses what it only waits for. hidden: it does not
	// say so of what was detached by force before it restarted, and ends that a while after.
	waits  map[string]bool
	hidden map[string]time.Time
	// unready: its kubelet says that it is not Ready; it shuts down, or is not up yet.
	unready bool
	// suspect: in this boot, there was reason to fence it.
	suspect bool
	// reported: the step of its first word in this boot.
	reported int
}

func (m *machine) bootID() string { return fmt.Sprintf("%s-boot-%d", m.uuid, m.boot) }

type worldNode struct {
	uid          string
	uuid, bootID string
	created      time.Time
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

// networkFence is the object, and what csi-addons did of it.
type networkFence struct {
	NetworkFence
	version int
	ours    bool
	// target is the boot of the machine that it was made for, on what was known at a step.
	target string
	made   int
	late   bool // made later than that
	// due: csi-addons has yet to look at it.
	due bool
	// did is what was last done for it: it tells a stale message from a true one.
	did string
	// flipped by a user: what it does is not ours.
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

	views []view
	// broken is a piece of Fairlead that does not work.
	broken fault

	// forgiven: what an operator answers for; by machine, boot and volume.
	forgiven map[string]bool
	// tampered: a user has unblocked an address behind Fairlead's back, and it has
	// not had the chance to see that. By record, storage cluster and CIDR: the
	// NetworkFence that did it.
	tampered map[string]string
	// noticed: mounts, as in forgiven, that Fairlead has had the chance to record.
	noticed map[string]bool
	// looked: the step in which Fairlead last had all done that it wanted for a node.
	looked map[string]int
	// targets of NetworkFences, by name: the boot each was made for.
	targets map[string]string
	// given up: machines, by node, boot and driver, that were gone and unfenced while that was switched off.
	givenUp map[string]bool
	// stood: NetworkFences, by name, and incidents, for which volumes may have been let
	// go: Fairlead has recorded that it stands, or an operator has opened the gate.
	stood map[string]bool
}

var modelDrivers = map[string]string{rbd: "a", cephFS: "a", other: "b"}

const (
	modelReadyFor = 20 * time.Second
	modelMaxAge   = 10 * time.Minute
)

func newWorld(nodes int, sharedAddress bool) *world {
	w := &world{
		now: time.Unix(1_000_000, 0), blocks: map[string]map[string]block{"a": {}, "b": {}},
		nodes: map[string]worldNode{}, records: records{}, fences: map[string]networkFence{}, silent: map[string]bool{},
		nodesGate: true, modes: map[string]Mode{}, driverUp: map[string]bool{},
		forgiven: map[string]bool{}, noticed: map[string]bool{}, looked: map[string]int{}, step: 1, tampered: map[string]string{}, targets: map[string]string{}, stood: map[string]bool{}, givenUp: map[string]bool{},
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

func (w *world) newMachine(node string) *machine {
	m := &machine{node: node, uuid: fmt.Sprintf("uuid-%d", w.id()), on: true, reaches: true, mounts: map[string]bool{}, from: map[string]netip.Addr{}, waits: map[string]bool{}, hidden: map[string]time.Time{}, had: map[string]bool{}, address: w.newAddresses(), since: w.step}
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
	if a, mounted := m.from[v.Name]; mounted {
		return a
	}
	return m.address[v.ClusterID]
}

// writes reports whether a machine can write to a volume.
func (w *world) writes(m *machine, v Volume) bool {
	return m.on && m.mounts[v.Name] && !w.blockedAt(v.ClusterID, m.at(v))
}

func forgivenKey(m *machine, volume string) string { return m.bootID() + " " + volume }

func (w *world) forgive(m *machine, volume string) { w.forgiven[forgivenKey(m, volume)] = true }

// --- Kubernetes

// heartbeat is a kubelet's word to the API server; it makes its node object if there is none.
func (w *world) heartbeat(m *machine) {
	if !m.on || !m.reaches || m.scrap {
		return
	}
	n, there := w.nodes[m.node]
	if !there {
		n = worldNode{uid: fmt.Sprint("uid-", w.id()), created: w.now, changed: w.now}
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
	n.inUse, n.clients = nil, m.address
	for _, v := range worldVolumes {
		if _, hidden := m.hidden[v.Name]; m.mounts[v.Name] && !hidden || m.waits[v.Name] {
			n.inUse = append(n.inUse, unique(v))
		}
	}
	w.nodes[m.node] = n
	if n.taint {
		m.suspect = true
	}
	if m.reported == 0 {
		m.reported = w.step
	}
}

// nodeController finds out that a node does not speak any more.
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
	if !w.mayAsk(v, node) || w.gate(v, node) != nil {
		return
	}
	w.mustNotBeWritable(t, v, node)
	w.attachments = append(w.attachments, attachment{v.Name, node, w.nodes[node].bootID})
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
		if sakes.recorded(v.Name) || inUse || slices.Contains(w.attachedTo(v.Name), name) {
			holders = append(holders, sakes.Holders(v, inUse)...)
		}
	}
	if w.broken.gate != nil {
		return w.broken.gate(v, node, holders, w.policy())
	}
	return Attach(v, node, holders, w.policy())
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
	if m.on && m.reaches && !w.blocked(m, v.ClusterID) && w.nodes[node].bootID == m.bootID() && slices.Contains(w.attachedTo(v.Name), node) {
		if !m.mounts[v.Name] {
			m.mounts[v.Name], m.from[v.Name] = true, m.address[v.ClusterID]
			s := w.recordOf(m).status
			held := slices.ContainsFunc(s.Volumes, func(h v1alpha1.HeldVolume) bool { return h.PersistentVolume == v.Name })
			if !held || !w.lists(s, m, v) {
				delete(w.noticed, forgivenKey(m, v.Name)) // that was an earlier mount, or one by another address
			}
		}
		delete(m.waits, v.Name)
		delete(m.hidden, v.Name)
		w.heartbeat(m) // it says so before it mounts
		if w.modes[v.Driver] == ModeOff || slices.ContainsFunc(w.attachments, func(a attachment) bool {
			return a.volume == v.Name && a.node == node && !strings.HasPrefix(a.bootID, m.uuid+"-")
		}) {
			w.forgive(m, v.Name) // by an attachment that the machine before has left: no gate is asked
		}
	}
}

func (m *machine) unmount(volume string) {
	delete(m.mounts, volume)
	delete(m.from, volume)
	delete(m.waits, volume)
	delete(m.hidden, volume)
}

// startClients anew: the pods that mount get other addresses, and one may be that of
// pods of before. What is mounted stays so by the address that it was mounted by.
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

// freeAddresses are those that something is still mounted by, and that no client pod has.
func (w *world) freeAddresses(cluster string) []netip.Addr {
	var free []netip.Addr
	for _, m := range w.machines {
		for _, v := range worldVolumes {
			a, mounted := m.from[v.Name]
			if mounted && v.ClusterID == cluster && !slices.ContainsFunc(w.machines, func(o *machine) bool { return o.address[cluster] == a }) {
				free = append(free, a)
			}
		}
	}
	return free
}

// startKubelet anew: it knows nothing of mounts that the cluster knows nothing of.
func (w *world) startKubelet(m *machine) {
	for v := range m.mounts {
		if !slices.Contains(w.attachedTo(v), m.node) {
			if _, already := m.hidden[v]; already {
				continue
			}
			if m.hidden[v] = (time.Time{}); m.reaches {
				m.hidden[v] = w.now
			}
			if !w.showsLoss(m) {
				// Tainted, detached by force and untainted, all without Fairlead's looking: that
				// can't be told from a volume that was released.
				delete(w.noticed, forgivenKey(m, v))
			}
		}
	}
	w.heartbeat(m)
}

// showsLoss: a record that is as old as this one is tells, together with the Node as it is or will be, that
// the machine was lost or tainted in this boot.
func (w *world) showsLoss(m *machine) bool {
	s, n := w.recordOf(m).status, w.nodes[m.node]
	seen := s.Phase == v1alpha1.NodeLost || s.Phase == v1alpha1.NodeFencing || s.Reason == ReasonTaintedButReady
	back := !n.ready || s.Node.UID != types.UID(n.uid) || s.ReadyChanged != nil && !s.ReadyChanged.Time.Equal(n.changed)
	return seen || back && s.ReadyChanged != nil
}

// recordOf this boot of a machine.
func (w *world) recordOf(m *machine) record {
	for _, name := range w.records.names(m.node) {
		if r := w.records[name]; r.status.Node.BootID == m.bootID() {
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

// heal a partition.
func (w *world) heal(m *machine) {
	m.reaches = true
	for v, since := range m.hidden {
		if since.IsZero() {
			m.hidden[v] = w.now
		}
	}
	w.heartbeat(m)
}

// pass time: what a kubelet ends, it ends within four minutes of hearing that it is
// to run no more.
func (w *world) pass(d time.Duration) {
	w.now = w.now.Add(d)
	for _, m := range w.machines {
		for v, since := range m.hidden {
			if !since.IsZero() && w.now.Sub(since) >= 4*time.Minute {
				m.unmount(v)
			}
		}
	}
}

// stop a machine: what it had mounted is gone.
func (m *machine) stop() {
	m.on, m.unready, m.mounts, m.waits, m.hidden = false, false, map[string]bool{}, map[string]bool{}, map[string]time.Time{}
	m.from = map[string]netip.Addr{}
}

// letGo is a pod leaving a node that works: unmounted first, then detached.
func (w *world) letGo(v Volume, node string) {
	if m := w.machineOf(node); m.on && m.reaches {
		m.unmount(v.Name)
	}
}

// detach is the attach-detach controller: when the kubelet says that a volume is
// not in use; or in spite of that, for a taint, after six minutes, or when the node is gone.
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
	if !there {
		return
	}
	if !w.driverUp[w.driverOf(f.NetworkFence)] {
		return // no leader: the status stays as it is
	}
	if f.Deleting {
		delete(w.fences, name)
		return
	}
	if !f.due {
		return
	}
	if outcome == "fails" {
		f.Result, f.Message = resultFailed, "rpc error: code = Internal"
		w.put(name, f)
		return // and is due still
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

// lies: its status says that it blocks, and that is not what was last done.
func (f networkFence) lies() bool {
	return !f.Unfenced && f.Result == resultSucceeded && f.Message == fencedMessage && f.did != did(f.NetworkFence)
}

func (w *world) driverOf(n NetworkFence) string {
	if n.Class != "" {
		return strings.TrimPrefix(n.Class, "class-")
	}
	return n.Driver
}

// execute is the storage cluster executing requests.
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

// tamper: an address is unfenced behind Fairlead's back.
func (w *world) tamper(by, cluster, cidr string) {
	for name := range w.records {
		w.tampered[name+" "+cluster+" "+cidr] = by
	}
	for _, m := range w.machines {
		for _, v := range worldVolumes {
			// What has been released is lost; what has not is held again once Fairlead sees it.
			if m.mounts[v.Name] && v.ClusterID == cluster && HostPrefix(m.at(v)).String() == cidr && w.elsewhere(m, v) {
				w.forgive(m, v.Name)
			}
		}
	}
}

// isTampered: the machine was unfenced for a volume so, and Fairlead has not had the chance to see that.
func (w *world) isTampered(m *machine, v Volume) bool {
	for name, r := range w.records {
		if r.status.Node.BootID == m.bootID() && w.tampered[name+" "+v.ClusterID+" "+HostPrefix(m.at(v)).String()] != "" {
			return true
		}
	}
	return false
}

// elsewhere: a volume is attached to or mounted by another machine.
func (w *world) elsewhere(m *machine, v Volume) bool {
	for _, o := range w.machines {
		if o != m && o.on && o.mounts[v.Name] {
			return true
		}
	}
	return slices.ContainsFunc(w.attachments, func(a attachment) bool {
		return a.volume == v.Name && (a.node != m.node || a.bootID != m.bootID())
	})
}

// put is a write to a NetworkFence.
func (w *world) put(name string, f networkFence) {
	f.version++
	f.ResourceVersion = fmt.Sprint(f.version)
	w.fences[name] = f
}

// restart of csi-addons' manager: it looks at everything again.
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
	delete(w.nodes, node)
	w.machineOf(node).suspect = true
}

// rename a machine: it comes back as another node. Its former Node is deleted.
func (w *world) rename(m *machine, boots bool) {
	w.deleteNode(m.node)
	if boots {
		w.reboot(m)
	}
	m.node = fmt.Sprint("node-", w.id())
}

// replace a machine by another of the same name; the old one may still run.
func (w *world) replace(node string) {
	m := w.machineOf(node)
	m.reaches, m.scrap, m.suspect = false, true, true
	w.newMachine(node)
	delete(w.nodes, node)
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

// isOf: the record is of the machine, or of an unseen one, and the machine has none.
func (w *world) isOf(m *machine, r record) bool {
	is := func(r record) bool { return strings.HasPrefix(r.status.Node.BootID, m.uuid+"-") }
	if r.status.Node.BootID != "" {
		return is(r)
	}
	return m.node == r.node && !slices.ContainsFunc(w.records.names(m.node), func(name string) bool { return is(w.records[name]) })
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
	silent      map[string]bool
}

func (w *world) view() view {
	v := view{
		step: w.step, now: w.now, nodes: maps.Clone(w.nodes), attachments: slices.Clone(w.attachments),
		records: maps.Clone(w.records), fences: maps.Clone(w.fences), silent: maps.Clone(w.silent),
	}
	return v
}

// sources report by which addresses the storage knows a node, as old as its object
// is here; the CSIAddonsNodes may be gone, and then report none.
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
		Name: name, Exists: true, Created: n.created, Machine: v1alpha1.MachineIdentity{UID: types.UID(n.uid), BootID: n.bootID, SystemUUID: n.uuid},
		Ready: n.ready, ReadyChanged: n.changed, OutOfService: n.taint, OwnTaint: n.own, Addresses: []netip.Addr{n.address}, Unknown: n.unknown, RecordedLoss: n.loss,
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
	n.Shown = Holding(use, worldVolumes, func(driver string) bool { return policy.Mode(driver) != ModeOff })
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
	f.Now, f.Policy = now, w.policy()
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
	f.Others = f.OthersOf(Machines(nodes, all))
	for i, o := range f.Others {
		if o.Node.Exists {
			f.Others[i].ClientAddresses = slices.Collect(maps.Values(v.nodes[o.Node.Name].clients))
		}
	}
	if w.broken.facts != nil {
		w.broken.facts(w, v, &f)
	}
	return f, true
}

// --- Fairlead's controller

// act looks at a node's name: at each of its records, and makes the one that is missing once all that is to be
// recorded in the others is. Writes carry the version that was read, any of them may fail, and after writes of them it
// crashes. It reports whether there was anything to do.
func (w *world) act(t *rapid.T, v view, node string, now time.Time, writes int) bool {
	did := false
	for _, name := range v.records.names(node) {
		wrote, acted := w.actOn(t, v, node, name, now, &writes)
		if wrote {
			return true // what is done next follows from what is recorded
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

// actOn one record: it decides on facts and does what Next says. It reports whether it had to write the record, and else
// whether there was anything to do.
func (w *world) actOn(t *rapid.T, v view, node, name string, now time.Time, writes *int) (wrote, acted bool) {
	f, there := w.facts(v, node, name, now)
	step := Next(f)
	if v.cached && !w.broken.believesCaches {
		// As controllers/fencing has it: a healthy node's ledger is kept on what caches
		// say, nothing is forgotten before the node was read live, and all else is
		// decided on live reads only.
		if there && Forgets(f.Status, step.Status) {
			v.nodes, v.silent = w.view().nodes, w.view().silent
			f, there = w.facts(v, node, name, now)
			step = Next(f)
		}
		if !there || !routine(f, step) || f.Node.RecordedLoss != "" || len(w.records.names(node)) > 1 {
			v = w.view()
			f, there = w.facts(v, node, name, now)
			step = Next(f)
		}
	}
	if !there {
		return true, false
	}
	for _, h := range f.Holding {
		delete(w.givenUp, f.Node.Name+f.Status.Node.BootID+h.Driver) // it may be its own still
	}
	current, there := w.records[name]
	asRead := there && current.version == v.records[name].version
	if !reflect.DeepEqual(step.Status, f.Status) && !equality.Semantic.DeepEqual(step.Status, f.Status) {
		if *writes > 0 && asRead {
			noticed := maps.Clone(w.noticed)
			w.write(name, step.Status)
			if m := w.machineOf(node); m != nil && v.step < w.step {
				// An old leader, or one with an old cache, has written what it saw before a loss
				// that no other leader has noticed: what the kubelet does not show any more is not known then.
				for volume := range m.hidden {
					if k := forgivenKey(m, volume); !v.cached || !noticed[k] {
						delete(w.noticed, k)
					}
				}
			}
		}
		return true, true
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
	if marks && reflect.DeepEqual(w.nodes[node], v.nodes[node]) && did() {
		w.mark(node, loss)
	}
	for _, n := range step.Create {
		if _, exists := w.fences[n.Name]; !exists && did() {
			w.mustNotBeWell(t, f, n)
			decided := v.step
			if v.cached {
				decided = w.step // a cache is no excuse: it could have been read live
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

// mark a node with a loss; "" removes the mark.
func (w *world) mark(name, loss string) {
	if n, there := w.nodes[name]; there {
		n.loss, n.marked = loss, w.id()
		w.nodes[name] = n
	}
}

func routine(f Facts, s Step) bool {
	healthy := f.Status.Phase == "" || f.Status.Phase == v1alpha1.NodeHealthy && f.Status.Reason != ReasonTaintedButReady
	return healthy && !MissedLoss(f.Status, f.Node) && f.Node.Ready && !f.Node.OutOfService && len(f.Status.Fences) == 0 && s.Status.Phase == v1alpha1.NodeHealthy && !s.Forget && !s.RemoveTaint
}

// normal is comparable as text: pointers are followed.
func normal(s v1alpha1.NodeFenceStatus) string {
	at := func(t *metav1.Time) string {
		if t == nil {
			return ""
		}
		return t.UTC().String()
	}
	text := fmt.Sprint(s.Phase, "|", s.Reason, "|", s.Message, "|", s.Node, "|", at(s.LastHealthy), "|", at(s.LostSince), "|", s.Incident, "|", s.Addresses, "|", s.Volumes, "|", s.VolumeCount, "|", at(s.Tainted), "|", s.Ended)
	for _, i := range s.Identities {
		text += fmt.Sprintf("|%s %s %s %s %v", i.Driver, i.ClusterID, i.Class, i.Problem, i.Addresses)
	}
	for _, f := range s.Fences {
		text += fmt.Sprintf("|%s %s %s %v %s %s %d %s", f.Name, f.Driver, f.ClusterID, f.CIDRs, f.State, f.Since.UTC(), f.Failures, f.Message)
	}
	return text
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

// notice: what is on record of a machine's mounts must not be written to by another from here on.
func (w *world) notice(node string, before, s v1alpha1.NodeFenceStatus) {
	for _, m := range w.machines {
		for v := range m.mounts {
			if m.node != node || s.Node.BootID != m.bootID() {
				continue
			}
			if !m.known(before, volumeNamed(v)) && !w.lists(s, m, volumeNamed(v)) {
				delete(w.noticed, forgivenKey(m, v)) // the address was another before any was known
			}
			if _, hidden := m.hidden[v]; hidden && !mayHaveBeenForced(s) {
				continue // its node's word is of before its kubelet restarted, as in startKubelet
			}
			if slices.ContainsFunc(s.Volumes, func(h v1alpha1.HeldVolume) bool { return h.PersistentVolume == v && !h.Waiting }) && w.lists(s, m, volumeNamed(v)) {
				w.noticed[forgivenKey(m, v)] = true
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

// counts: no operator answers for what the machine writes to the volume,
// and Fairlead has been up at some time while it was mounted, and had the address: of an
// attachment that comes and goes without its looking, nothing is left to know.
func (w *world) counts(m *machine, v Volume) bool {
	return w.writes(m, v) && w.noticed[forgivenKey(m, v.Name)] && !w.forgiven[forgivenKey(m, v.Name)]
}

func (w *world) create(f Facts, n NetworkFence, decided int) {
	target := f.Status.Node.BootID
	if was, known := w.targets[n.Name]; known {
		target = was
	} else {
		w.targets[n.Name] = target
	}
	n.UID, n.ResourceVersion = types.UID(fmt.Sprint("fence-", w.id())), "1"
	w.fences[n.Name] = networkFence{NetworkFence: n, version: 1, ours: true, target: target, made: decided, late: decided < w.step, due: true}
}

// seen: Fairlead has looked at its fences as they are, and had the chance to
// take back what it believed of them.
func (w *world) seen(name string) {
	for _, r := range w.records[name].status.Fences {
		if f, there := w.fences[r.Name]; there && f.lies() {
			continue // unknown until csi-addons has looked at it again
		}
		for _, cidr := range r.CIDRs {
			at := name + " " + r.ClusterID + " " + cidr
			by := w.fences[w.tampered[at]]
			_, blocked := w.blocks[r.ClusterID][cidr]
			alone := count(w.records[name].status.Fences, func(o v1alpha1.Fence) bool { return o.ClusterID == r.ClusterID && slices.Contains(o.CIDRs, cidr) }) == 1
			// Else it left no trace: a stranger's object is gone or changed, or ours is flipped back.
			if blocked || w.tampered[at] == r.Name && alone || by.Unfenced && slices.Contains(by.CIDRs, cidr) {
				delete(w.tampered, at)
			}
		}
	}
}

// seenOff: Fairlead has had the chance to give up a machine that is gone and was never to be fenced.
func (w *world) seenOff(f Facts) {
	for driver, mode := range w.modes {
		uses := func(v v1alpha1.HeldVolume) bool { return v.Driver == driver }
		asked := slices.ContainsFunc(f.Status.Fences, func(r v1alpha1.Fence) bool { return r.Driver == driver })
		if mode == ModeOff && f.gone() && !asked && !slices.ContainsFunc(f.Holding, uses) && f.Status.Node.BootID != "" {
			w.givenUp[f.Node.Name+f.Status.Node.BootID+driver] = true
		}
	}
}

func count[T any](list []T, is func(T) bool) int {
	n := 0
	for _, x := range list {
		if is(x) {
			n++
		}
	}
	return n
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
		if len(writers) > 1 {
			t.Fatalf("invariant 10: %s is written to from %v\n%s", v.Name, writers, w)
		}
	}
}

// mustHaveRebooted: whom this unfences has booted since, or has nothing of before.
func (w *world) mustHaveRebooted(t *rapid.T, f *networkFence, cluster string, a netip.Addr) {
	for _, m := range w.machines {
		for _, v := range worldVolumes {
			if v.ClusterID == cluster && m.on && m.mounts[v.Name] && m.at(v) == a && !v.ReadOnly() && !w.forgiven[forgivenKey(m, v.Name)] && w.keepsOut(m, cluster, a, f) {
				t.Fatalf("invariant 10: %s unfences the machine %s of %s, which has not booted since it was lost and has %s mounted\n%s", f.Name, m.bootID(), m.node, v.Name, w)
			}
		}
	}
}

// keepsOut: volumes were released for the fence, or for another one of this boot whose record knows the address. A fence whose
// record never knew the address has not kept this client out. If its volumes go elsewhere meanwhile, mustNotBeWritable judges.
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

// mustNotBeInnocent: whom this shuts out was given up, or took over
// the address later.
func (w *world) mustNotBeInnocent(t *rapid.T, f *networkFence, cluster string, a netip.Addr) {
	if _, already := w.blocks[cluster][HostPrefix(a).String()]; already || f.did == did(f.NetworkFence) {
		return // done again: a node behind the same address was unfenced meanwhile
	}
	for _, m := range w.machines {
		if m.address[cluster] != a || !m.on || !m.reaches || m.unready || m.suspect || m.since > f.made {
			continue
		}
		if m.reported == 0 || f.late && f.made < m.reported || w.looked[f.Labels[NodeLabel]] <= m.reported {
			continue // it has booted since, and Fairlead had yet to see that
		}
		t.Fatalf("%s shuts out the healthy machine %s of %s\n%s", f.Name, m.bootID(), m.node, w)
	}
}

// mustNotBeWell: no fence is requested for a node that runs on as before it was
// lost, nor for a storage that is switched off, unless volumes were released for it.
func (w *world) mustNotBeWell(t *rapid.T, f Facts, n NetworkFence) {
	if n.Unfenced || w.stood[n.Labels[IncidentLabel]] {
		return
	}
	if f.Node.Ready && f.Node.Machine.BootID == f.Status.Node.BootID {
		t.Fatalf("%s is to shut out %s, which is Ready and runs as before\n%s", n.Name, f.Node.Name, w)
	}
	if w.givenUp[f.Node.Name+f.Status.Node.BootID+w.driverOf(n)] {
		t.Fatalf("%s is to shut out a machine that was gone before this was switched on\n%s", n.Name, w)
	}
	if mode := w.modes[w.driverOf(n)]; mode != ModeFence {
		t.Fatalf("%s is asked for, and the driver's mode is %s\n%s", n.Name, mode, w)
	}
}

// fencedMustBeFenced: what is recorded as fenced is.
func (w *world) fencedMustBeFenced(t *rapid.T) {
	for name, r := range w.records {
		if r.status.Phase == v1alpha1.NodeHealthy && len(r.status.Fences) > 0 { // by their label, records with fences are found
			t.Fatalf("%s is Healthy, and %s is on its record\n%s", name, r.status.Fences[0].Name, w)
		}
		if ReadOverride(r.annotations, r.status).Gate == GateUnfence {
			continue // it is to be unfenced, and may be so with another of its address
		}
		switch r.status.Phase {
		case v1alpha1.NodeFencing, v1alpha1.NodeFenced, v1alpha1.NodeDrained:
		default:
			continue
		}
		for _, f := range r.status.Fences {
			if r.status.Phase != v1alpha1.NodeFencing && f.Incident == r.status.Incident && f.State != v1alpha1.FenceFenced {
				t.Fatalf("%s is %s, and %s is %s\n%s", name, r.status.Phase, f.Name, f.State, w)
			}
			for _, cidr := range f.CIDRs {
				if _, blocked := w.blocks[f.ClusterID][cidr]; !blocked && f.State == v1alpha1.FenceFenced && f.Incident == r.status.Incident && w.tampered[name+" "+f.ClusterID+" "+cidr] == "" {
					t.Fatalf("invariant 10: %s is recorded as fenced by %s, and %s is not blocked\n%s", name, f.Name, cidr, w)
				}
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
	}
}

func (w *world) check(t *rapid.T) {
	w.mustHaveOneWriter(t)
	w.fencedMustBeFenced(t)
	w.policiesMustLetGo(t)
	w.gateMustHold(t)
}

func (w *world) String() string {
	var b strings.Builder
	for _, m := range w.machines {
		fmt.Fprintf(&b, "machine %s of %s: on %t, reaches %t, scrap %t, %v, mounts %v by %v\n", m.bootID(), m.node, m.on, m.reaches, m.scrap, m.address, m.mounts, m.from)
	}
	for _, n := range slices.Sorted(maps.Keys(w.nodes)) {
		fmt.Fprintf(&b, "node %s: %+v\n", n, w.nodes[n])
	}
	fmt.Fprintf(&b, "attachments %v\nblocks %v\n", w.attachments, w.blocks)
	for _, n := range slices.Sorted(maps.Keys(w.records)) {
		fmt.Fprintf(&b, "record %s: %s %v\n", n, normal(w.records[n].status), w.records[n].annotations)
	}
	for _, n := range slices.Sorted(maps.Keys(w.fences)) {
		fmt.Fprintf(&b, "networkfence %s: %+v\n", n, w.fences[n])
	}
	fmt.Fprintf(&b, "forgiven %v tampered %v\n", slices.Sorted(maps.Keys(w.forgiven)), w.tampered)
	return b.String()
}
