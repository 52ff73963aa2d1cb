package fence

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/types"

	"github.com/fairlead-io/fairlead/api/v1alpha1"
)

const (
	rbd           = "rook-ceph.rbd.csi.ceph.com"
	modelReadyFor = 30 * time.Second
)

// memory is what Fairlead has written, and what its leader knows.
type memory struct {
	records []smallRecord
	// skew of the leader's clock, and since when it leads, by that clock.
	skew    time.Duration
	started time.Time
	// last of Nodes that the leader saw deleted.
	last [machines]Deletion
	// saw is what a round is decided on that is still carried out, and todo for which nodes.
	saw  *small
	todo [machines]bool
	// made counts the records.
	made byte
}

type smallRecord struct {
	name    string
	uid     byte
	node    int
	version int
	spec    v1alpha1.NodeFenceSpec
	request Request
	// asked: the Ready time of the Node when the request was made, and the boot of the machine if it was on.
	asked     time.Time
	askedBoot string
}

// clock of the leader.
func (s *small) clock() time.Time { return s.now.Add(s.fairlead.skew) }

// lead begins with an empty memory.
func (s *small) lead(skew time.Duration) {
	s.fairlead.saw, s.fairlead.todo, s.fairlead.last = nil, [machines]bool{}, [machines]Deletion{}
	s.fairlead.skew = skew
	s.fairlead.started = s.clock()
}

// isVersion: the API server never gives a resource version twice, so a record that was made again by the same name is another one.
func (r smallRecord) isVersion(of smallRecord) bool {
	return r.name == of.name && r.uid == of.uid && r.version == of.version
}

func (r smallRecord) read() Record {
	return Record{Name: r.name, UID: fmt.Sprint("record-", r.uid), Spec: r.spec, Request: r.request}
}

// stateMachine is Next and Attach, or a broken version of them.
type stateMachine struct {
	// holders are changed before the gate judges by them, and facts before Next does.
	holders func(*Holder)
	facts   func(s *small, node int, f *Facts)
	// forgets volumes of which the PersistentVolume is gone.
	forgets bool
	// hasty: the Node is not read again before a fence is requested.
	hasty bool
}

func (stateMachine) policy() Policy {
	return Policy{
		MaxAge: time.Hour, ReadyFor: modelReadyFor,
		Storages: func(driver string) (StoragePolicy, bool) { return StoragePolicy{Mode: ModeFence}, driver == rbd },
	}
}

func (y stateMachine) namesakes(s *small, i int) Namesakes {
	n := Namesakes{Node: s.apiNode(i)}
	if !n.Node.Exists {
		n.Last = s.fairlead.last[i]
	}
	for _, r := range s.fairlead.records {
		if r.node == i {
			n.Records = append(n.Records, r.read())
		}
	}
	var use Use
	use.InUse = n.Node.InUse
	if s.nodes[i].attached > 0 {
		use.Attached, use.AttachedNames = []string{s.world.volume.Name}, n.Node.Attached
	}
	if s.nodes[i].torn {
		use.Attached, n.Torn = nil, n.Node.Attached
	}
	var volumes []Volume
	if s.volume {
		volumes = append(volumes, s.world.volume)
	}
	protected, recorded := func(string) bool { return true }, n.Recorded()
	if y.forgets {
		known := s.volume
		protected, recorded = func(string) bool { return known }, nil
	}
	n.Shown = Holding(use, volumes, recorded, protected)
	return n
}

func (y stateMachine) gate(s *small, to int) bool {
	var holders []Holder
	for i := range s.nodes {
		holders = append(holders, y.namesakes(s, i).Holders(s.world.volume)...)
	}
	for i := range holders {
		if y.holders != nil {
			y.holders(&holders[i])
		}
	}
	return Attach(s.world.volume, nodeName(to), holders, y.policy()) == nil
}

func (y stateMachine) mayUntaint(s *small, i int) bool {
	r, _ := y.namesakes(s, i).Present()
	return RemoveTaint(s.apiNode(i), r) == nil
}

// remembers that the node may write to the volume, whichever boot it was. What a user has released holds nothing.
func (stateMachine) remembers(s *small, i int) bool {
	return slices.ContainsFunc(s.fairlead.records, func(r smallRecord) bool {
		at := find(s.world.volume.Held(), r.spec.Volumes)
		return r.node == i && !r.spec.Over && at >= 0 && !r.spec.Volumes[at].Released
	})
}

func (stateMachine) records(s *small, i int) bool {
	return slices.ContainsFunc(s.fairlead.records, func(r smallRecord) bool {
		return r.spec.Boot.BootID == bootID(i, s.machines[i].boot) && find(s.world.volume.Held(), r.spec.Volumes) >= 0
	})
}

func (stateMachine) showsLoss(s *small, i int) bool {
	for _, r := range s.fairlead.records {
		if r.spec.Boot.BootID == bootID(i, s.machines[i].boot) {
			return !unbroken(r.spec, s.apiNode(i))
		}
	}
	return false
}

func (y stateMachine) read(s *small, i int, name string, now time.Time, m memory) (Facts, bool) {
	sakes := y.namesakes(s, i)
	at := slices.IndexFunc(sakes.Records, func(r Record) bool { return r.Name == name })
	if at < 0 {
		return Facts{}, false
	}
	f := sakes.Of(at)
	f.Now, f.Started, f.Policy = now, m.started, y.policy()
	if f.HeardSince = s.machines[i].heard; !f.HeardSince.IsZero() {
		if f.HeardSince = f.HeardSince.Add(m.skew); f.HeardSince.Before(m.started) {
			f.HeardSince = m.started
		}
	}
	f.Classes = []Class{{Name: "class-" + rbd, Driver: rbd, ClusterID: "a"}}
	if f.Node.Ready {
		f.Ledger = []v1alpha1.StorageIdentity{{Driver: rbd, ClusterID: "a", Class: "class-" + rbd, Addresses: []v1alpha1.ClientAddress{{CIDR: cidrOf(s.addressOf(i)), Source: SourceCSIAddonsNode}}}}
	}
	if n := s.nodes[i]; n.attached > 0 {
		f.Left = []string{"attachment"}
		if n.attached != 1+n.boot {
			f.OldAttachments = f.Left
		}
	}
	for _, fence := range s.fences {
		f.Fences = append(f.Fences, fence.NetworkFence)
	}
	var nodes []Node
	var all []Record
	for o := range s.nodes {
		if s.nodes[o].exists {
			nodes = append(nodes, s.apiNode(o))
		}
	}
	for _, r := range s.fairlead.records {
		all = append(all, r.read())
	}
	f.Machines = Machines(ByName(nodes, all))
	for o, other := range f.Machines {
		if other.Node.Exists {
			f.Machines[o].ClientAddresses = other.Node.Addresses
		}
	}
	if y.facts != nil {
		y.facts(s, i, &f)
	}
	return f, true
}

func (s *small) record(name string) *smallRecord {
	s.fairlead.records = slices.Clone(s.fairlead.records)
	for at := range s.fairlead.records {
		if s.fairlead.records[at].name == name {
			return &s.fairlead.records[at]
		}
	}
	return nil
}

func (y stateMachine) look(s, saw *small, i, writes int) {
	live := saw.fairlead.saw == nil && s.fairlead.saw == nil
	if f, missing := y.namesakes(saw, i).Missing(s.clock(), y.policy()); missing && writes > 0 {
		if s.record(f.Record) == nil {
			s.fairlead.made++
			s.fairlead.records = append(s.fairlead.records, smallRecord{name: f.Record, uid: s.fairlead.made, node: i, spec: f.Spec})
			slices.SortFunc(s.fairlead.records, func(a, b smallRecord) int { return strings.Compare(a.name, b.name) })
			s.notice(i, f.Spec)
		}
		return
	}
	for _, r := range saw.fairlead.records {
		if r.node == i && y.lookAt(s, saw, i, r.name, &writes, live) {
			return
		}
	}
	if live && writes >= 0 && saw.nodes[i].torn && s.machines[i].noticed {
		s.machines[i].sawTorn = true
	}
	if live && writes >= 0 && s.sameBoot(i) && s.machines[i].mount == isMounted && (s.nodes[i].attached > 0 || y.remembers(s, i)) {
		s.machines[i].noticed = true // Fairlead has looked, and had nothing to do; else a pod might only wait for the volume
	}
}

// routine: caches suffice to record what a working node has.
func routine(f Facts, step Step) bool {
	return f.working() && len(f.Spec.Fences) == 0 && len(step.Spec.Fences) == 0 && !step.Spec.Over && !step.Consumed
}

func (y stateMachine) lookAt(s, saw *small, i int, name string, writes *int, live bool) (wrote bool) {
	view := *saw
	now := s.clock()
	f, there := y.read(&view, i, name, now, s.fairlead)
	if !there {
		return true
	}
	step := Next(f)
	if cached := saw.cached; cached && !routine(f, step) {
		view = *s
		if f, there = y.read(&view, i, name, now, s.fairlead); !there {
			return true
		}
		step = Next(f)
	}
	if !live && Forgets(f.Spec, step.Spec) && routine(f, step) {
		view.nodes = s.nodes // read live before anything is forgotten
		f, _ = y.read(&view, i, name, now, s.fairlead)
		step = Next(f)
	}
	current := s.record(name)
	asRead := current != nil && slices.ContainsFunc(saw.fairlead.records, current.isVersion)
	differs := func() bool { return step.Consumed || !equality.Semantic.DeepEqual(step.Spec, f.Spec) }
	if differs() {
		if *writes <= 0 || !asRead {
			return true
		}
		*writes--
		current.spec, current.version = step.Spec, current.version+1
		if step.Consumed {
			s.carriedOut(i, current, f, step)
		}
		s.notice(i, step.Spec)
		view.fairlead.records = slices.Clone(view.fairlead.records)
		for at := range view.fairlead.records {
			if view.fairlead.records[at].name == name {
				view.fairlead.records[at] = *current
			}
		}
		if f, _ = y.read(&view, i, name, now, s.fairlead); *writes <= 0 {
			return true
		}
		if step = Next(f); differs() {
			return true
		}
	}
	did := func() bool { *writes--; return *writes >= 0 }
	if step.Forget && asRead && did() {
		s.fairlead.records = slices.DeleteFunc(slices.Clone(s.fairlead.records), func(r smallRecord) bool { return r.name == name })
	}
	for _, n := range step.Create {
		if now := s.apiNode(i); !y.hasty && (now.Ready != f.Node.Ready || now.UID != f.Node.UID || now.Boot != f.Node.Boot || now.OutOfService != f.Node.OutOfService || !now.Exists && s.fairlead.last[i].UID != f.Deleted.UID) {
			break // as controllers/fencing, which reads the Node before it takes anything from it
		}
		if !slices.ContainsFunc(s.fences, func(f smallFence) bool { return f.Name == n.Name }) && did() {
			s.create(i, f, n)
		}
	}
	change := func(n NetworkFence, do func(*smallFence)) {
		for at, have := range s.fences {
			if have.UID == n.UID && have.ResourceVersion == n.ResourceVersion && did() {
				s.fences = slices.Clone(s.fences)
				do(&s.fences[at])
				s.fences[at].bump()
			}
		}
	}
	for _, n := range step.Unfence {
		change(n, func(f *smallFence) { f.Unfenced, f.due = true, true })
	}
	for _, n := range step.Delete {
		change(n, func(f *smallFence) { f.Deleting = true })
	}
	return step.Forget || len(step.Create)+len(step.Unfence)+len(step.Delete) > 0
}

// carriedOut notes what a person answers for.
func (s *small) carriedOut(i int, r *smallRecord, f Facts, step Step) {
	if step.Void == nil && f.here() && !r.asked.Equal(f.Node.ReadyChanged) {
		s.fail("act of another loss: %s", r.name)
	}
	m, is := &s.machines[i], step.Spec.Boot.BootID
	running := bootID(i, m.boot)
	unrecorded := r.askedBoot == running && !slices.ContainsFunc(s.fairlead.records, func(r smallRecord) bool { return r.spec.Boot.BootID == running })
	if r.request = (Request{}); step.Void == nil && f.Request.Gate != GateTaint && (is == running || is == "" || unrecorded) {
		m.forgiven = true
	}
}

func (s *small) create(i int, f Facts, n NetworkFence) {
	m, node := s.machines[i], s.nodes[i]
	if !n.Unfenced && node.exists && node.ready && !node.taint && f.Spec.Boot.BootID == bootID(i, node.boot) && m.on && m.reaches && m.boot == node.boot && !m.forgiven && !f.relied(n) {
		s.fail("healthy node fenced: %s is requested for %s, which is Ready in the same boot", n.Name, nodeName(i))
	}
	if !n.Unfenced && !node.exists && f.Spec.Boot.BootID == bootID(i, m.boot) && m.on && m.reaches && !m.lost && s.now.Sub(node.gone) < 40*time.Second {
		s.fail("healthy node fenced: %s is requested for %s, whose Node was deleted a moment ago, and no pod waits", n.Name, nodeName(i))
	}
	if (!node.exists || f.relied(n)) && f.Spec.Boot.BootID == bootID(i, m.boot) {
		s.machines[i].lost = true // it may register again while csi-addons acts, or did after its volumes were released
	}
	s.made++
	n.UID, n.ResourceVersion = types.UID(fmt.Sprint("fence-", s.made)), "1"
	boot := m.boot
	for b := range byte(boots) {
		if f.Spec.Boot.BootID == bootID(i, b) {
			boot = b
		}
	}
	s.fences = append(slices.Clone(s.fences), smallFence{NetworkFence: n, due: true, machine: byte(i), boot: boot})
	slices.SortFunc(s.fences, func(a, b smallFence) int { return strings.Compare(a.Name, b.Name) })
}

// relied: volumes were released by a fence, which is recreated since a user has removed it.
func (f Facts) relied(n NetworkFence) bool {
	return slices.ContainsFunc(f.Spec.Fences, func(r v1alpha1.Fence) bool { return r.Name == n.Name && r.VolumesReleased })
}

// notice what is on record from here on.
func (s *small) notice(i int, is v1alpha1.NodeFenceSpec) {
	m := &s.machines[i]
	if m.mount == isMounted && is.Boot.BootID == bootID(i, m.boot) && find(s.world.volume.Held(), is.Volumes) >= 0 {
		m.noticed = true
	}
	for _, r := range is.Fences {
		if r.State == v1alpha1.FenceFenced {
			s.fences = slices.Clone(s.fences)
			for at := range s.fences {
				if s.fences[at].Name == r.Name {
					s.fences[at].relied = true
				}
			}
		}
	}
}

func (y stateMachine) override(s *small, name, gate string) {
	r := s.record(name)
	r.request = Request{Gate: gate, By: "alice", Reason: "I know", At: s.now}
	r.asked, r.askedBoot = s.nodes[r.node].changed, ""
	if m := s.machines[r.node]; m.on {
		r.askedBoot = bootID(r.node, m.boot)
	}
	r.version++
}

func (y stateMachine) actions(s *small) (list []action) {
	add := func(name string, do func(*small)) { list = append(list, action{name, do}) }
	if s.fairlead.saw == nil && s.left.slow > 0 {
		add("Fairlead begins a round", func(s *small) {
			saw := *s
			s.fairlead.saw, s.fairlead.todo = &saw, [machines]bool{true, true}
			s.left.slow--
		})
	}
	if s.fairlead.saw != nil {
		for i, todo := range s.fairlead.todo {
			if todo {
				add("Fairlead goes on with its round for "+nodeName(i), func(s *small) {
					saw := s.fairlead.saw
					y.look(s, saw, i, 9)
					if s.fairlead.todo[i] = false; s.fairlead.todo == [machines]bool{} {
						s.fairlead.saw = nil
					}
				})
			}
		}
		add("Fairlead crashes in its round", func(s *small) {
			s.lead(s.fairlead.skew)
		})
	}
	if saw := s.fairlead.saw; saw != nil {
		for i := range s.nodes {
			add("Fairlead looks at "+nodeName(i)+" in a cache with Nodes of before", func(s *small) {
				view := *s
				view.nodes, view.cached = saw.nodes, true
				y.look(s, &view, i, 9)
			})
		}
	}
	if s.left.leaders > 0 {
		for _, skew := range []time.Duration{time.Hour, -time.Hour} {
			add(fmt.Sprint("another leader leads, whose clock is off by ", skew), func(s *small) {
				s.lead(skew)
				s.left.leaders--
			})
		}
	}
	if s.left.unread > 0 {
		for i := range s.nodes {
			add("Fairlead looks at "+nodeName(i)+", and can't read what a fence needs", func(s *small) { s.left.unread--; y.lookUnread(s, i) })
		}
	}
	if s.left.edits > 0 {
		for at, f := range s.fences {
			add("a user flips "+f.Name, func(s *small) {
				s.fences = slices.Clone(s.fences)
				f := &s.fences[at]
				f.Unfenced, f.due, f.flipped = !f.Unfenced, true, true
				f.bump()
				if i := addressIn(f.CIDRs); i >= 0 {
					s.machines[i/boots].forgiven = true
				}
				s.left.edits--
			})
		}
	}
	if s.left.acts > 0 {
		for _, r := range s.fairlead.records {
			for _, gate := range Gates() {
				if r.request.Gate == "" && (InIncident(r.spec) || gate == GateTaint) {
					add("a user overrides "+gate+" of "+r.name, func(s *small) { y.override(s, r.name, gate); s.left.acts-- })
				}
			}
		}
	}
	return list
}

// lookUnread: as onlyRemember in controllers/fencing.
func (y stateMachine) lookUnread(s *small, i int) {
	if f, missing := y.namesakes(s, i).Missing(s.clock(), y.policy()); missing {
		if step := Remember(f); s.record(f.Record) == nil {
			s.fairlead.made++
			s.fairlead.records = append(s.fairlead.records, smallRecord{name: f.Record, uid: s.fairlead.made, node: i, spec: step.Spec})
			slices.SortFunc(s.fairlead.records, func(a, b smallRecord) int { return strings.Compare(a.name, b.name) })
			s.notice(i, step.Spec)
		}
		return
	}
	for _, r := range slices.Clone(s.fairlead.records) {
		if r.node != i {
			continue
		}
		f, _ := y.read(s, i, r.name, s.clock(), s.fairlead)
		f.Ledger = nil
		step := Remember(f)
		if !step.Consumed && equality.Semantic.DeepEqual(step.Spec, f.Spec) {
			continue
		}
		current := s.record(r.name)
		current.spec, current.version = step.Spec, current.version+1
		if step.Consumed {
			s.carriedOut(i, current, f, step)
		}
		s.notice(i, step.Spec)
	}
}
