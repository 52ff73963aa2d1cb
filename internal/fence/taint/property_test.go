package taint

import (
	"fmt"
	"slices"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"pgregory.net/rapid"

	"github.com/fairlead-io/fairlead/api/v1alpha1"
	"github.com/fairlead-io/fairlead/internal/fence"
)

// model is a cluster whose machines break, return and are cut off: single machines, zones, or all. Fairlead's readings may
// be stale, and a new leader knows only the records. Operators taint and untaint nodes. At every step:
//
//   - no more than MaxNodes have Fairlead's taint at once
//   - no node is tainted in a zone of which more than MaxShare is lost
//   - no node is tainted in the control plane, after a recent heartbeat, or twice in an incident
//   - no node is tainted in a storm or on a stale view
//
// Finally, only one node is lost: Fairlead taints that node.
type model struct {
	*rapid.T
	rules    Rules
	now      time.Time
	machines []*machine
	paused   bool
	cutOff   bool // no lease is renewed
	reading  Facts
	late     bool // the reading is stale
	taints   int
}

// machine is the real state of one node, which a reading may not show.
type machine struct {
	Candidate
	runs   bool
	beat   time.Time     // time of the last heartbeat
	skew   time.Duration // error of the node's clock
	wentAt time.Time     // when the node was last lost
	// incident counts the losses; taintedIn is the last one in which Fairlead tainted the node.
	incident, taintedIn int
}

var zones = []string{"", "a", "b"}

func newModel(t *rapid.T) *model {
	m := &model{T: t, now: noon}
	m.rules = Rules{
		Mode:     On,
		MaxNodes: rapid.IntRange(1, 3).Draw(t, "maxNodes"), MaxShare: rapid.SampledFrom([]int{20, 34, 50, 100}).Draw(t, "maxShare"),
		StormNodes: rapid.IntRange(1, 3).Draw(t, "stormNodes"), StormWindow: rapid.SampledFrom([]time.Duration{2 * time.Minute, 5 * time.Minute}).Draw(t, "stormWindow"),
	}
	for i := range rapid.IntRange(3, 16).Draw(t, "nodes") {
		n := &machine{Candidate: readyNode(fmt.Sprintf("node-%d", i)), runs: true, beat: m.now}
		n.skew = time.Duration(rapid.IntRange(-20, 20).Draw(t, "skew")) * time.Second
		n.Labels = map[string]string{zoneLabel: rapid.SampledFrom(zones).Draw(t, "zone")}
		if i > 0 && rapid.IntRange(0, 4).Draw(t, "controlPlane") == 0 {
			n.Labels["node-role.kubernetes.io/control-plane"] = ""
		}
		m.machines = append(m.machines, n)
	}
	m.read()
	return m
}

// pass advances the time: kubelets report, and the node controller sets conditions.
func (m *model) pass(d time.Duration) {
	for ; d > 0; d -= 10 * time.Second {
		m.now = m.now.Add(10 * time.Second)
		for _, n := range m.machines {
			if n.runs && !m.cutOff {
				// A returned node renews its lease a moment before its status.
				if back := m.now.Sub(n.beat) <= 10*time.Second; back && n.Node.Unknown {
					m.setReady(n, true, false)
				}
				n.beat, n.Heartbeat = m.now, m.now.Add(n.skew)
			} else if m.now.Sub(n.beat) > 50*time.Second {
				m.setReady(n, false, true)
			}
		}
	}
}

func (n *machine) untaint() { n.Node.OutOfService, n.Node.OwnTaint = false, false }

func (m *model) setReady(n *machine, ready, unknown bool) {
	if n.Node.Ready == ready && n.Node.Unknown == unknown {
		return
	}
	if n.Node.Ready {
		n.wentAt = m.now
	}
	n.Node.Ready, n.Node.Unknown, n.Node.ReadyChanged = ready, unknown, m.now
}

// record is one round of the fencing controller.
func (m *model) record() {
	for _, n := range m.machines {
		switch s := &n.Spec; {
		case n.Node.Ready:
			if n.Node.OwnTaint {
				n.untaint()
			}
			*s = v1alpha1.NodeFenceSpec{Boot: n.Node.Boot}
			n.Given = false // the incident is over
		case s.LostSince == nil:
			lost := n.Candidate
			lost.lose(0)
			*s, n.Drivers = lost.Spec, lost.Drivers
			s.LostSince = ptr.To(metav1.NewTime(n.Node.ReadyChanged))
			s.Identities[0].Addresses[0].LastSeen = metav1.NewTime(n.beat)
			n.incident++
		case n.Node.OutOfService:
			if s.Fences = []v1alpha1.Fence{{}}; n.Node.OwnTaint && s.Tainted == nil {
				s.Tainted = ptr.To(metav1.NewTime(m.now))
			}
		}
	}
}

// read takes a new reading.
func (m *model) read() {
	m.reading = Facts{Read: m.now, Paused: m.paused, Policy: cephIsFenced(fence.ModeFence)}
	for _, n := range m.machines {
		read := n.Candidate
		read.Spec = *n.Spec.DeepCopy()
		m.reading.Nodes = append(m.reading.Nodes, read)
	}
}

// decide is one round of Fairlead's tainting: one node at most is tainted for each reading.
func (m *model) decide() {
	if !m.late {
		m.read()
	}
	m.reading.Now = m.now
	for _, v := range m.rules.Judge(m.reading) {
		if v.Action == None {
			continue
		}
		n := m.machines[slices.IndexFunc(m.machines, func(n *machine) bool { return n.Node.Name == v.Node })]
		m.judge(n, v)
		if m.late {
			return // the node was changed since the reading, so the write is refused
		}
		n.Node.OutOfService, n.Node.OwnTaint, n.Given = true, true, true
		n.taintedIn = n.incident
		m.taints++
		return
	}
}

// judge compares a taint with the real state, which may differ from the reading.
func (m *model) judge(n *machine, v Verdict) {
	rules := m.rules.Defaulted()
	own := m.count(func(o *machine) bool { return o.Node.OwnTaint && o != n }) + 1
	zone, gone := m.zone(n)
	heard := m.count(func(o *machine) bool { return m.now.Sub(o.beat) <= rules.MaxStaleness+20*time.Second }) > 0
	_, controlPlane := n.Labels["node-role.kubernetes.io/control-plane"]
	problems := map[string]bool{
		"in the control plane":       controlPlane,
		"on a stale view":            m.now.Sub(m.reading.Read) > rules.MaxStaleness,
		"without any heartbeat":      !m.late && !heard,
		"beyond MaxNodes":            !m.late && own > rules.MaxNodes,
		"beyond MaxShare":            !m.late && gone*100 > zone*rules.MaxShare,
		"in a storm":                 !m.late && m.isStorm(),
		"while paused":               !m.late && m.paused,
		"after a recent heartbeat":   !m.late && m.now.Sub(n.beat) < rules.NotReadyFor,
		"twice in an incident":       !m.late && n.taintedIn == n.incident,
		"although it has that taint": !m.late && n.Node.OutOfService,
	}
	for problem, is := range problems {
		if is {
			m.Fatalf("%s is tainted %s (%d own taints, %d of %d nodes of the zone are lost): %s", v.Node, problem, own, gone, zone, v.Message)
		}
	}
}

func (m *model) count(is func(*machine) bool) int {
	count := 0
	for _, n := range m.machines {
		if is(n) {
			count++
		}
	}
	return count
}

// zone counts the nodes in the zone of a node, and those of them that are lost or tainted.
func (m *model) zone(n *machine) (all, gone int) {
	in := func(o *machine) bool { return o.Labels[zoneLabel] == n.Labels[zoneLabel] }
	return m.count(in), m.count(func(o *machine) bool { return in(o) && (!o.Node.Ready || o.Node.OutOfService) })
}

// isStorm: too many nodes were lost within StormWindow, either just now or at the time when nodes were lost that are
// still missing. Nodes that an operator has tainted do not count.
func (m *model) isStorm() bool {
	rules := m.rules.Defaulted()
	limit := max(rules.StormNodes, len(m.machines)*rules.StormShare/100)
	exceeds := func(from time.Time, lost func(*machine) time.Time) bool {
		return limit < m.count(func(o *machine) bool {
			after := lost(o).Sub(from)
			return (!o.Node.OutOfService || o.Node.OwnTaint) && after >= 0 && after <= rules.StormWindow
		})
	}
	stillLost := func(o *machine) time.Time {
		if o.Node.Ready {
			return time.Time{}
		}
		return o.Node.ReadyChanged
	}
	return exceeds(m.now.Add(-rules.StormWindow), func(o *machine) time.Time { return o.wentAt }) ||
		slices.ContainsFunc(m.machines, func(first *machine) bool { return exceeds(first.Node.ReadyChanged, stillLost) })
}

func (m *model) any(what string) *machine {
	return m.machines[rapid.IntRange(0, len(m.machines)-1).Draw(m.T, what)]
}

// restart is a change of the leader, which knows only the records. A taint that is not recorded yet is still on its node.
func (m *model) restart() {
	for _, n := range m.machines {
		if n.Given && (n.Spec.Tainted != nil || n.Node.Ready) {
			n.Given = false
		}
	}
}

func TestTaintingHoldsItsBounds(t *testing.T) {
	total := 0
	rapid.Check(t, func(t *rapid.T) {
		m := newModel(t)
		seldom := func(do func()) func(*rapid.T) {
			return func(t *rapid.T) {
				if rapid.IntRange(0, 4).Draw(t, "seldom") == 0 {
					do()
				}
			}
		}
		t.Repeat(map[string]func(*rapid.T){
			"pass":        func(t *rapid.T) { m.pass(time.Duration(rapid.IntRange(1, 24).Draw(t, "by")) * 10 * time.Second) },
			"break":       func(*rapid.T) { m.any("node").runs = false },
			"come back":   func(*rapid.T) { m.any("node").runs = true },
			"all back":    func(*rapid.T) { m.setZone(true, zones...) },
			"go on":       func(*rapid.T) { m.goOn(time.Minute) },
			"go on long":  func(*rapid.T) { m.goOn(7 * time.Minute) },
			"all go on":   func(*rapid.T) { m.cutOff, m.late, m.paused = false, false, false; m.goOn(time.Minute) },
			"one is lost": func(*rapid.T) { m.any("node").runs = false; m.goOn(8 * time.Minute) },
			"not Ready":   func(*rapid.T) { m.saysNo(m.any("node")) },
			"restart":     func(*rapid.T) { m.restart() },
			"decide":      func(*rapid.T) { m.decide() },
			"cut":         seldom(func() { m.cutOff = true }),
			"late":        seldom(func() { m.late = true }),
			"pause":       seldom(func() { m.paused = true }),
			"untaint":     seldom(func() { m.any("node").untaint() }),
			"taint":       seldom(func() { m.any("node").Node.OutOfService = true }),
			"lose zone":   seldom(func() { m.setZone(false, rapid.SampledFrom(zones).Draw(t, "zone")) }),
			"": func(*rapid.T) {
				if own := m.count(func(n *machine) bool { return n.Node.OwnTaint }); own > m.rules.Defaulted().MaxNodes {
					t.Fatalf("%d own taints", own)
				}
			},
		})
		total += m.taints
		m.settle()
	})
	if t.Logf("tainted %d times", total); total == 0 {
		t.Error("nothing was ever tainted before the end")
	}
}

// goOn advances the time while all controllers run.
func (m *model) goOn(d time.Duration) {
	for ; d > 0; d -= 30 * time.Second {
		m.pass(30 * time.Second)
		m.record()
		m.decide()
	}
}

func (m *model) saysNo(n *machine) {
	if n.runs && !m.cutOff && !n.Node.Unknown {
		m.setReady(n, false, false)
	}
}

// setZone turns the machines of a zone on or off.
func (m *model) setZone(runs bool, zones ...string) {
	for _, n := range m.machines {
		if slices.Contains(zones, n.Labels[zoneLabel]) {
			n.runs = runs
		}
	}
}

// settle makes all well again, but for one node, which is to be tainted if its zone can spare it.
func (m *model) settle() {
	m.cutOff, m.late, m.paused = false, false, false
	for _, n := range m.machines {
		n.runs, n.Given = true, false
		n.untaint()
		m.setReady(n, true, false)
	}
	m.pass(time.Minute)
	m.record()
	m.record()
	m.pass(6 * time.Minute)
	lost := m.machines[0]
	zone, _ := m.zone(lost)
	lost.runs = false
	m.pass(2 * time.Minute)
	m.record()
	m.decide()
	if lost.Node.OwnTaint {
		m.Fatalf("tainted after two minutes")
	}
	m.pass(5 * time.Minute)
	m.decide()
	if spared := 100 <= m.rules.MaxShare*zone; lost.Node.OwnTaint != spared {
		m.Fatalf("all is well but for one of %d nodes of a zone, and it is tainted: %t: %+v", zone, lost.Node.OwnTaint, m.rules.Judge(m.reading))
	}
}
