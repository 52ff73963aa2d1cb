package fence

import (
	"fmt"
	"net/netip"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/fairlead-io/fairlead/api/v1alpha1"
)

// The small world of TestExplore: two machines of two boots each, a volume of a storage cluster that knows each machine
// by one address, and everybody who acts on them. Only machines and blocks are the truth. Unlike the world of the random
// model it is small enough to visit every state of it: whatever is rare has a budget, which is part of the state.

const (
	machines = 2
	boots    = 4
)

// mounted is what a machine has of the volume.
type mounted byte

const (
	notMounted mounted = iota
	// isMounted, and in the kubelet's lists.
	isMounted
	// isHidden: detached by force before the kubelet started again. The old container writes on, and the kubelet does not
	// list the volume. It ends within five minutes of reaching the API server.
	isHidden
)

// computer runs and writes whatever Kubernetes thinks of it.
type computer struct {
	on, reaches bool
	boot        byte
	mount       mounted
	// waits: a pod waits for the volume, and the kubelet lists that.
	waits bool
	// heard is since when it has renewed its Lease without a gap; zero if it does not.
	heard time.Time
	// firstStatus of a kubelet that has started again keeps the lists that the API server has (kubernetes#33203).
	firstStatus bool

	// What must hold depends on these; no party in the world reads them.

	// noticed: the mount is on record, or was there when Fairlead looked and had nothing to do.
	noticed bool
	// sawTorn: Fairlead looked while the attachment was gone, and no period has ended since.
	sawTorn bool
	// forgiven: a person has answered for this boot's attachment of the volume.
	forgiven bool
	// lost in this boot: there was a reason to fence it.
	lost bool
}

// kubeNode is the Node object of a machine.
type kubeNode struct {
	exists         bool
	uid            byte
	boot           byte
	ready, unknown bool
	changed        time.Time
	taint          bool
	inUse          bool
	// attached is the VolumeAttachment: 0, or 1 and the boot that it was made in.
	attached byte
	// torn: a user deleted the VolumeAttachment by force, which the Node's status does not show.
	torn bool
	// gone since; only for nodes that do not exist.
	gone time.Time
}

// smallFence is a NetworkFence, and how csi-addons stands with it.
type smallFence struct {
	NetworkFence
	// due: csi-addons has not looked at it since its last change.
	due bool
	// of the machine and boot that it was made for.
	machine, boot byte
	// relied: it was confirmed once, so volumes may have been released.
	relied bool
	// flipped by a user, who answers for what it blocks.
	flipped bool
}

// late is a command that the storage runs after csi-addons has given it up.
type late struct {
	address byte
	unblock bool
}

// budgets bound what is rare.
type budgets struct {
	freezes, powers, restarts, deletions, taints, acts, volumes, failures, replays, slow, waits, tears, times, leaders, edits, crashes, gaps, unread, slowboots, secs byte
}

type small struct {
	world *exploredWorld

	now      time.Time
	machines [machines]computer
	nodes    [machines]kubeNode
	// volume: the PersistentVolume exists.
	volume bool
	// blocked addresses: each boot of a machine has one, or all have one.
	blocked [machines * boots]bool
	fences  []smallFence
	late    []late
	// uids and made count the Nodes and the NetworkFences.
	uids, made byte
	left       budgets

	fairlead memory
	// cached: this is what caches show.
	cached bool
	// found is what must not be.
	found string
}

// exploredWorld is what does not change.
type exploredWorld struct {
	name   string
	volume Volume
	left   budgets
	// system under test.
	system system
	// large: exploring all of it takes minutes or more.
	large bool
	// moves: each boot of a machine has another address.
	moves bool
	// both machines fail; else only the first, since the worlds are symmetric.
	both bool
	// begins with this; its budgets are for what follows.
	begins func(*small)
}

// system is Fairlead, as the small world sees it.
type system interface {
	// gate reports whether the volume may be attached to a node now, on live reads.
	gate(s *small, to int) bool
	// look decides on a node by what it saw then, and carries out what follows now, up to some writes.
	look(s *small, saw *small, node int, writes int)
	// mayUntaint reports whether the taint may be taken off a node.
	mayUntaint(s *small, node int) bool
	// remembers the volume on account of any boot of a machine, and records it of the present one.
	remembers(s *small, node int) bool
	records(s *small, node int) bool
	// showsLoss: what Fairlead knows shows that a machine was lost in this boot.
	showsLoss(s *small, node int) bool
	// actions of Fairlead beside its looks, and of people at its records.
	actions(s *small) []action
}

func newSmall(w *exploredWorld) small {
	s := small{world: w, fairlead: memory{started: time.Unix(990_000, 0)}, now: time.Unix(1_000_000, 0), volume: true, left: w.left}
	for i := range s.machines {
		s.machines[i] = computer{on: true, reaches: true, heard: s.now.Add(-time.Hour)}
		s.heartbeat(i)
		for range 4 {
			saw := s
			w.system.look(&s, &saw, i, 9)
		}
	}
	s.attach(0)
	s.mountVolume(0)
	saw := s
	w.system.look(&s, &saw, 0, 9)
	if w.begins != nil {
		w.begins(&s)
		s.left = w.left
	}
	return s
}

func (s *small) fail(format string, args ...any) {
	if s.found == "" {
		s.found = fmt.Sprintf(format, args...)
	}
}

func nodeName(i int) string          { return fmt.Sprintf("node-%d", i+1) }
func bootID(i int, boot byte) string { return fmt.Sprintf("uuid-%d-boot-%d", i+1, boot) }

// address of a boot, by its number.
func address(n int) netip.Addr {
	return netip.AddrFrom4([4]byte{10, 0, byte(n % boots), byte(n/boots + 1)})
}
func cidrOf(n int) string { return HostPrefix(address(n)).String() }

func (s *small) addressOfBoot(i int, boot byte) int {
	if !s.world.moves {
		boot = 0
	}
	return i*boots + int(boot)
}

// addressOf the boot that the Node shows.
func (s *small) addressOf(i int) int { return s.addressOfBoot(i, s.nodes[i].boot) }

// addressIn is the number of the address in a list; -1: there is none.
func addressIn(cidrs []string) int {
	for n := range machines * boots {
		if slices.Contains(cidrs, cidrOf(n)) {
			return n
		}
	}
	return -1
}

// isBlocked: the storage refuses what the machine writes now.
func (s *small) isBlocked(i int) bool { return s.blocked[s.addressOfBoot(i, s.machines[i].boot)] }

func (s *small) writes(i int) bool {
	return s.machines[i].on && s.machines[i].mount != notMounted && !s.isBlocked(i)
}
func (s *small) sameBoot(i int) bool {
	return s.nodes[i].exists && s.nodes[i].boot == s.machines[i].boot
}
func (s *small) transition() time.Time { s.now = s.now.Add(time.Second); return s.now }

// apiNode is the Node as it is read.
func (s *small) apiNode(i int) Node {
	n := s.nodes[i]
	if !n.exists {
		return Node{Name: nodeName(i)}
	}
	node := Node{
		Name: nodeName(i), Exists: true, Ready: n.ready, ReadyChanged: n.changed, Unknown: n.unknown,
		OutOfService: n.taint, OthersTaint: n.taint, Addresses: []netip.Addr{address(s.addressOf(i))},
		UID: types.UID(fmt.Sprint("uid-", n.uid)), Boot: v1alpha1.Boot{SystemUUID: fmt.Sprintf("uuid-%d", i+1), BootID: bootID(i, n.boot)},
	}
	if n.inUse {
		node.InUse = []string{UniqueName(s.world.volume.Driver, s.world.volume.Handle)}
	}
	if n.attached > 0 {
		node.Attached = []string{UniqueName(s.world.volume.Driver, s.world.volume.Handle)}
	}
	return node
}

// --- machines

func (s *small) heartbeat(i int) {
	m, n := &s.machines[i], &s.nodes[i]
	if !m.on || !m.reaches {
		return
	}
	if !n.exists {
		s.uids++
		*n = kubeNode{exists: true, uid: s.uids, attached: n.attached}
		m.firstStatus = false // there is no list to keep
	}
	if !n.ready {
		n.ready, n.unknown, n.changed = true, false, s.transition()
	}
	if n.boot = m.boot; !m.firstStatus {
		n.inUse = m.mount == isMounted || m.waits
	}
	m.firstStatus = false
	if n.taint {
		m.lost = true
	}
}

func (s *small) stop(i int) {
	m := &s.machines[i]
	m.on, m.mount, m.waits, m.firstStatus = false, notMounted, false, false
	m.noticed, m.sawTorn, m.forgiven = false, false, false
}

func (s *small) boot(i int) {
	s.stop(i)
	m := &s.machines[i]
	m.on, m.lost = true, false
	s.reach(i)
	m.boot++
}

// reach a machine again. A gap shows once time passes.
func (s *small) reach(i int) {
	m := &s.machines[i]
	if m.reaches = true; m.heard.IsZero() {
		m.heard = s.now
	}
}

// startKubelet again. A mount without attachment is not found again.
func (s *small) startKubelet(i int) {
	m := &s.machines[i]
	if m.mount == isMounted && (s.nodes[i].attached == 0 || s.nodes[i].torn) {
		m.mount = isHidden
		if !m.sawTorn && !s.world.system.showsLoss(s, i) {
			m.noticed = false // detached by force and back, all unseen: it looks like a volume that was given back
		}
	}
	m.firstStatus = true
}

// passTime lets every period end.
func (s *small) passTime() {
	s.now = s.now.Add(10 * time.Minute)
	s.late = nil // a command runs for five minutes at most
	for i := range s.machines {
		m := &s.machines[i]
		if m.sawTorn = false; !m.on || !m.reaches {
			m.heard = time.Time{}
		}
		if m.mount == isHidden && m.reaches {
			m.mount, m.noticed = notMounted, false
		}
	}
}

// --- Kubernetes

func (s *small) nodeController(i int) {
	n, m := &s.nodes[i], &s.machines[i]
	n.ready, n.unknown, n.changed = false, true, s.transition()
	m.lost = true
}

func (s *small) attachable(to int) bool {
	n := s.nodes[to]
	if !n.exists || !n.ready || n.taint || n.attached > 0 || !s.volume {
		return false
	}
	return !s.world.volume.exclusive() || s.nodes[1-to].attached == 0
}

func (s *small) attach(to int) {
	from := 1 - to
	if m := s.machines[from]; s.writes(from) && m.noticed && !m.forgiven {
		healthy := s.sameBoot(from) && s.nodes[from].ready && !s.nodes[from].taint && s.nodes[from].attached > 0
		shared := s.world.volume.HasManyWriters() && s.nodes[from].exists && !s.nodes[from].taint
		if !healthy && !shared { // else Kubernetes sees to it
			s.fail("two writers: the volume is attached to %s while %s writes to it", nodeName(to), nodeName(from))
		}
	}
	s.nodes[to].attached, s.nodes[to].torn = 1+s.nodes[to].boot, false
	if m := &s.machines[to]; m.mount == notMounted {
		m.forgiven = false // people have answered for what was attached before
	}
}

func (s *small) forced(i int) bool {
	n := s.nodes[i]
	return !n.exists || n.taint || !n.ready && s.now.Sub(n.changed) >= 6*time.Minute
}

func (s *small) mountVolume(i int) {
	m := &s.machines[i]
	m.mount, m.waits, m.sawTorn, m.noticed = isMounted, false, false, !s.nodes[i].torn && s.world.system.remembers(s, i)
	s.nodes[i].inUse = true // the kubelet reports a volume before it mounts it
}

func (s *small) seenDeleted(i int) Deletion {
	n := s.apiNode(i)
	return Deletion{n.UID, n.Boot, n.ReadyChanged, s.clock()}
}

func (s *small) deleteNode(i int) {
	s.fairlead.last[i] = s.seenDeleted(i) // the watch shows it
	s.nodes[i] = kubeNode{attached: s.nodes[i].attached, gone: s.now}
}

// --- csi-addons

func (s *small) block(f *smallFence) {
	at := addressIn(f.CIDRs)
	if at < 0 {
		return
	}
	i := at / boots
	if m := s.machines[i]; !s.blocked[at] && at == s.addressOfBoot(i, m.boot) && m.on && m.reaches && !m.lost && s.sameBoot(i) && s.nodes[i].ready && byte(i) == f.machine && m.boot == f.boot && !f.flipped {
		s.fail("healthy node fenced: %s is blocked", nodeName(i))
	}
	s.blocked[at] = true
}

func (s *small) unblock(f smallFence) {
	at := addressIn(f.CIDRs)
	if at < 0 {
		return
	}
	i := at / boots
	if m := s.machines[i]; s.blocked[at] && m.on && m.mount != notMounted && !m.forgiven && f.relied && m.boot == f.boot {
		s.fail("fence lifted: %s is unblocked with its old mount", nodeName(i))
	}
	s.blocked[at] = false
}

func (s *small) csiAddons(at int) {
	s.fences = slices.Clone(s.fences)
	f := &s.fences[at]
	switch {
	case f.Deleting:
		s.fences = slices.Delete(s.fences, at, at+1)
		return
	case f.Unfenced:
		s.unblock(*f)
		f.Message = unfencedMessage
	default:
		s.block(f)
		f.Message = fencedMessage
	}
	f.Result, f.due = resultSucceeded, false
	f.bump()
}

// csiAddonsSilently does what is asked, and has yet to write that.
func (s *small) csiAddonsSilently(at int) {
	was := s.fences[at].NetworkFence
	s.csiAddons(at)
	s.fences[at].NetworkFence, s.fences[at].due = was, true
}

// csiAddonsTimesOut: the command runs later.
func (s *small) csiAddonsTimesOut(at int) {
	s.fences = slices.Clone(s.fences)
	f := &s.fences[at]
	f.Result, f.Message, f.due = resultFailed, "rpc error: code = DeadlineExceeded", false
	f.bump()
	s.late = append(slices.Clone(s.late), late{byte(addressIn(f.CIDRs)), f.Unfenced})
}

func (s *small) runLate() {
	l := s.late[0]
	s.late = slices.Clone(s.late[1:])
	s.blocked[l.address] = !l.unblock
}

func (f *smallFence) bump() { f.ResourceVersion += "'" }
