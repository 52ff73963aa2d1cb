package assign

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	"pgregory.net/rapid"

	"github.com/fairlead-io/fairlead/internal/nfs"
	"github.com/fairlead-io/fairlead/internal/testkit/must"
)

// The model holds VolumeAttachments as the API has them, and two processes. Each
// has a pool that follows the API with a delay, may crash and rebuild its pool
// from a list, and may be leader for a while although the other one is too.

type key struct{ node, volume string }

func (k key) compare(other key) int {
	return cmp.Or(cmp.Compare(k.node, other.node), cmp.Compare(k.volume, other.volume))
}

// event is a change of an attachment, or of the targets if they are not nil.
type event struct {
	key
	address string // empty: not attached yet
	deleted bool
	targets []nfs.Backend
}

type process struct {
	pool    *Pool
	unread  []event
	pending map[key]bool // seen, not attached yet
	leader  bool
}

type world struct {
	slack       int
	zones       map[string]string
	targets     []nfs.Backend
	attachments map[key]string
	processes   []*process
}

func (w *world) publish(e event) {
	for _, p := range w.processes {
		p.unread = append(p.unread, e)
	}
}

func (w *world) node(name string) Node { return Node{Name: name, Zone: w.zones[name]} }

// list is what a process reads when it starts.
func (w *world) list() []Attachment {
	var list []Attachment
	for k, address := range w.attachments {
		if address != "" {
			list = append(list, Attachment{w.node(k.node), k.volume, address})
		}
	}
	return list // in the random order of a map
}

func (w *world) start(p *process) {
	p.pool, p.unread, p.pending = newPool(w.slack, w.targets), nil, map[key]bool{}
	rebuild(p.pool, w.list())
	for k, address := range w.attachments {
		if address == "" {
			p.pending[k] = true
		}
	}
}

// read takes the oldest event.
func (w *world) read(t *rapid.T, p *process) {
	if len(p.unread) == 0 {
		return
	}
	e := p.unread[0]
	p.unread = p.unread[1:]
	switch {
	case e.targets != nil:
		setMembers(p.pool, e.targets)
	case e.deleted:
		delete(p.pending, e.key)
		w.detach(t, p, e.key)
	case e.address == "":
		p.pending[e.key] = true
	default:
		delete(p.pending, e.key)
		p.pool.Record(Attachment{w.node(e.node), e.volume, e.address})
	}
}

// detach checks that a node with more volumes moves nowhere and counts as before.
func (w *world) detach(t *rapid.T, p *process, k key) {
	before, was := p.pool.Node(k.node)
	loads, count := nodesOf(p.pool), p.pool.Len()
	p.pool.Detach(k.node, k.volume)
	after, is := p.pool.Node(k.node)
	if was && is && !before.Split && (after.Address != before.Address || !slices.Equal(nodesOf(p.pool), loads) || p.pool.Len() != count) {
		t.Fatalf("%s lost volume %s: it was %+v and is %+v; loads %v, then %v", k.node, k.volume, before, after, loads, nodesOf(p.pool))
	}
	must.True(t, !was || !is || !before.Split || p.pool.Len() == count, "%s is not counted", k.node)
}

// attach is one step of a leader: choose, and write if the other leader has not.
func (w *world) attach(t *rapid.T, p *process, k key) {
	before, known := p.pool.Node(k.node)
	loads := p.pool.Loads()
	address, err := p.pool.Attach(w.node(k.node), k.volume)
	if err != nil {
		must.True(t, !slices.ContainsFunc(loads, Load.Open), "%s gets no address although a backend is open: %v", k.node, loads)
		return
	}
	w.checkChoice(t, p, k, before, known, loads, address)
	delete(p.pending, k)
	switch now, ok := w.attachments[k]; {
	case !ok: // deleted meanwhile: the write fails
		p.pool.Detach(k.node, k.volume)
	case now != "": // the other leader was faster
		p.pool.Record(Attachment{w.node(k.node), k.volume, now})
	default:
		w.attachments[k] = address
		w.publish(event{key: k, address: address})
	}
}

func (w *world) checkChoice(t *rapid.T, p *process, k key, before Placement, known bool, loads []Load, address string) {
	i := slices.IndexFunc(loads, func(l Load) bool { return l.Addr.Addr().String() == address })
	must.True(t, i >= 0, "%s is on %s, which the service does not have", k.node, address)
	chosen := loads[i]
	if known && before.Address == address {
		must.True(t, chosen.Health != nfs.Down, "a volume of %s goes to %s, which is down", k.node, address)
		return
	}
	if known {
		j := slices.IndexFunc(loads, func(l Load) bool { return l.Addr == before.Backend })
		must.True(t, j < 0 || loads[j].Health == nfs.Down, "%s moves from %s to %s", k.node, before.Address, address)
	}
	total, weights := 1, int32(0)
	for _, l := range loads {
		if l.Open() {
			total, weights = total+l.Nodes, weights+l.Weight
		}
	}
	inZone := chosen.Zone != "" && chosen.Zone == w.zones[k.node] &&
		float64(chosen.Nodes) < float64(total)/float64(weights)*float64(chosen.Weight)*(1+float64(w.slack)/100)
	for _, l := range loads {
		if !l.Open() {
			continue
		}
		must.True(t, rank(l.Health) >= rank(chosen.Health), "%s goes to a backend that is %s while %s is %s", k.node, chosen.Health, l.Addr, l.Health)
		if l.Health == chosen.Health && !inZone && float64(l.Nodes+1)/float64(l.Weight) < float64(chosen.Nodes+1)/float64(chosen.Weight)-1e-9 {
			t.Fatalf("%s goes to %s with %d nodes of weight %d, and %s has %d of weight %d", k.node, chosen.Addr, chosen.Nodes, chosen.Weight, l.Addr, l.Nodes, l.Weight)
		}
	}
	must.True(t, chosen.Open(), "%s goes to %+v", k.node, chosen)
}

// check holds each pool against itself, and those that have read everything against a new one.
func (w *world) check(t *rapid.T) {
	for _, p := range w.processes {
		w.checkCounts(t, p.pool)
		w.checkPlan(t, p.pool)
		if len(p.unread) > 0 {
			continue
		}
		fresh := &process{}
		w.start(fresh)
		got, want := describe(p.pool), describe(fresh.pool)
		must.True(t, got == want, "a restart changes the pool from\n%s\nto\n%s", got, want)
		for k, address := range w.attachments {
			if address == "" {
				continue
			}
			got, err := fresh.pool.Attach(w.node(k.node), k.volume)
			must.True(t, err == nil && got == address, "%v was published with %s, and now with %s, %v", k, address, got, err)
		}
	}
}

func (w *world) checkCounts(t *rapid.T, p *Pool) {
	counts := map[string]int{}
	for _, at := range p.Nodes() {
		counts[at.Backend.String()]++
	}
	for _, l := range p.Loads() {
		must.True(t, l.Nodes == counts[l.Addr.String()], "%s counts %d nodes and has %d", l.Addr, l.Nodes, counts[l.Addr.String()])
	}
}

// describe is the whole state, and what the next nodes would get.
func describe(p *Pool) string {
	nodes := p.Nodes()
	text := fmt.Sprintln(p.Loads())
	for _, name := range slices.Sorted(maps.Keys(nodes)) {
		text += fmt.Sprintf("%s %+v\n", name, nodes[name])
	}
	for i := range 4 {
		for _, zone := range []string{"", "a", "b"} {
			text += p.choose(fmt.Sprint("next-", i), zone) + " "
		}
	}
	return text
}
