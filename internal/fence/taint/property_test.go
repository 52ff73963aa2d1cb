package taint

import (
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"pgregory.net/rapid"

	"github.com/fairlead-io/fairlead/api/v1alpha1"
	"github.com/fairlead-io/fairlead/internal/fence"
)

// The model below is a cluster whose machines break, come back and are cut off, one
// by one, by zones and all together, watched by a node controller and by a Fairlead
// whose readings may be late and which forgets what it did when its leader changes.
// Operators taint and untaint, and delete nodes. Whatever happens:
//
//   - no more than MaxNodes have Fairlead's taint at once
//   - no node is tainted in a zone of which more than MaxShare is lost
//   - no node of the control plane is, none whose kubelet lives, and none twice in an incident
//   - none is during a storm, or on a stale view
//
// and in the end, when all is well but for one node, that one is.
type taintingModel struct {
	*rapid.T
	tainting Rules
	now      time.Time
	machines []*taintingMachine
	paused   bool
	// cutOff: no lease is renewed, whether or not machines run.
	cutOff bool
	// reading that Fairlead has, which is not renewed while it is late.
	reading Facts
	late    bool
	taints  int
}

// taintingMachine is one node in truth.
type taintingMachine struct {
	Candidate
	runs bool
	// beat is when the node was last heard of, by our clock; skew is the node's.
	beat time.Time
	skew time.Duration
	// incident counts its losses; taintedIn is the last one that Fairlead tainted it in.
	incident, taintedIn int
	// wentAt is when it last was not Ready any more.
	wentAt time.Time
}

func newTaintingModel(t *rapid.T) *taintingModel {
	m := &taintingModel{T: t, now: taintingNow}
	m.tainting = Rules{
		Mode:     On,
		MaxNodes: rapid.IntRange(1, 3).Draw(t, "maxNodes"), MaxShare: rapid.SampledFrom([]int{20, 34, 50, 100}).Draw(t, "maxShare"),
		StormNodes: rapid.IntRange(1, 3).Draw(t, "stormNodes"), StormWindow: rapid.SampledFrom([]time.Duration{2 * time.Minute, 5 * time.Minute}).Draw(t, "stormWindow"),
	}
	for i := range rapid.IntRange(3, 16).Draw(t, "nodes") {
		n := &taintingMachine{Candidate: readyNode(fmt.Sprintf("node-%d", i)), runs: true, beat: m.now}
		n.skew = time.Duration(rapid.IntRange(-20, 20).Draw(t, "skew")) * time.Second
		n.Labels = map[string]string{zoneLabel: rapid.SampledFrom([]string{"", "a", "b"}).Draw(t, "zone")}
		if i > 0 && rapid.IntRange(0, 4).Draw(t, "controlPlane") == 0 {
			n.Labels["node-role.kubernetes.io/control-plane"] = ""
		}
		m.machines = append(m.machines, n)
	}
	m.read()
	return m
}

// pass lets time go by, in which kubelets report and the node controller looks.
func (m *taintingModel) pass(d time.Duration) {
	for ; d > 0; d -= 10 * time.Second {
		m.now = m.now.Add(10 * time.Second)
		for _, n := range m.machines {
			if n.runs && !m.cutOff {
				// The first lease of a node that is back comes a moment before its status.
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

func (m *taintingModel) setReady(n *taintingMachine, ready, unknown bool) {
	if n.Node.Ready == ready && n.Node.Unknown == unknown {
		return
	}
	if n.Node.Ready {
		n.wentAt = m.now
	}
	n.Node.Ready, n.Node.Unknown, n.Node.ReadyChanged = ready, unknown, m.now
}

// record is what the fencing controller does, whenever it gets round to it.
func (m *taintingModel) record() {
	for _, n := range m.machines {
		switch s := &n.Status; {
		case n.Node.Ready:
			if n.Node.OwnTaint {
				n.Node.OutOfService, n.Node.OwnTaint = false, false
			}
			*s = v1alpha1.NodeFenceStatus{Phase: v1alpha1.NodeHealthy, Node: n.Node.Machine}
			n.Given = false // in an incident that is over
		case s.Phase == v1alpha1.NodeHealthy:
			beat := n.beat
			lost := n.Candidate
			lost.lose(0)
			*s, n.Drivers = lost.Status, lost.Drivers
			since := metav1.NewTime(n.Node.ReadyChanged)
			s.LostSince = &since
			s.Identities[0].Addresses[0].LastSeen = metav1.NewTime(beat)
			n.incident++
		case n.Node.OutOfService:
			if s.Phase = v1alpha1.NodeFencing; n.Node.OwnTaint && s.Tainted == nil {
				at := metav1.NewTime(m.now)
				s.Tainted = &at
			}
		}
	}
}

// read takes a new reading.
func (m *taintingModel) read() {
	m.reading = Facts{Read: m.now, Paused: m.paused, Policy: cephIsFenced(fence.ModeFence)}
	for _, n := range m.machines {
		read := n.Candidate
		read.Status = *n.Status.DeepCopy()
		m.reading.Nodes = append(m.reading.Nodes, read)
	}
}

// decide does what Fairlead does. Only the first node is tainted; then it reads again.
func (m *taintingModel) decide() {
	if !m.late {
		m.read()
	}
	m.reading.Now = m.now
	for _, v := range m.tainting.Judge(m.reading) {
		if v.Action == None {
			continue
		}
		n := m.machines[slices.IndexFunc(m.machines, func(n *taintingMachine) bool { return n.Node.Name == v.Node })]
		m.judge(n, v)
		if m.late {
			return // it was changed since then, so the write is refused
		}
		n.Node.OutOfService, n.Node.OwnTaint, n.Given = true, true, true
		n.taintedIn = n.incident
		m.taints++
		return
	}
}

// judge holds a taint against the truth, which is not what Fairlead has read if that is late.
func (m *taintingModel) judge(n *taintingMachine, v Verdict) {
	tainting := m.tainting.Defaulted()
	own, zone, gone := 1, 0, 0
	for _, o := range m.machines {
		if o.Node.OwnTaint && o != n {
			own++
		}
		if o.Labels[zoneLabel] == n.Labels[zoneLabel] {
			zone++
			if !o.Node.Ready || o.Node.OutOfService {
				gone++
			}
		}
	}
	heard := slices.ContainsFunc(m.machines, func(o *taintingMachine) bool { return m.now.Sub(o.beat) <= tainting.MaxStaleness+20*time.Second })
	_, controlPlane := n.Labels["node-role.kubernetes.io/control-plane"]
	problems := map[string]bool{
		"of the control plane":      controlPlane,
		"on a stale view":           m.now.Sub(m.reading.Read) > tainting.MaxStaleness,
		"while no node is heard of": !heard && !m.late,
	}
	if !m.late {
		maps.Copy(problems, map[string]bool{
			fmt.Sprintf("as own taint number %d", own):                own > tainting.MaxNodes,
			fmt.Sprintf("with %d of %d lost in its zone", gone, zone): gone*100 > zone*tainting.MaxShare,
			"in a storm":                   m.stormy(),
			"while paused":                 m.paused,
			"whose kubelet is heard of":    m.now.Sub(n.beat) < tainting.NotReadyFor,
			"once more in an incident":     n.taintedIn == n.incident,
			"though it is tainted already": n.Node.OutOfService,
		})
	}
	for problem, is := range problems {
		if is {
			m.Fatalf("%s tainted %s: %s", v.Node, problem, v.Message)
		}
	}
}

// stormy: too many went a moment ago, whether or not they are back, or went at one
// time and are still away. Those that an operator has tainted count for neither.
func (m *taintingModel) stormy() bool {
	tainting := m.tainting.Defaulted()
	limit := max(tainting.StormNodes, len(m.machines)*tainting.StormShare/100)
	within := func(from time.Time, of func(*taintingMachine) time.Time) int {
		count := 0
		for _, o := range m.machines {
			if after := of(o).Sub(from); (!o.Node.OutOfService || o.Node.OwnTaint) && after >= 0 && after <= tainting.StormWindow {
				count++
			}
		}
		return count
	}
	if within(m.now.Add(-tainting.StormWindow), func(o *taintingMachine) time.Time { return o.wentAt }) > limit {
		return true
	}
	return slices.ContainsFunc(m.machines, func(first *taintingMachine) bool {
		return within(first.Node.ReadyChanged, func(o *taintingMachine) time.Time {
			if o.Node.Ready {
				return time.Time{}
			}
			return o.Node.ReadyChanged
		}) > limit
	})
}

func (m *taintingModel) any(what string) *taintingMachine {
	return m.machines[rapid.IntRange(0, len(m.machines)-1).Draw(m.T, what)]
}

// restart is a change of the leader: what is not on record is forgotten. A taint
// that is not recorded yet is still seen on its node.
func (m *taintingModel) restart() {
	for _, n := range m.machines {
		if n.Given && (n.Status.Tainted != nil || n.Node.Ready) {
			n.Given = false
		}
	}
}

func TestTaintingHoldsItsBounds(t *testing.T) {
	total := 0
	rapid.Check(t, func(t *rapid.T) {
		m := newTaintingModel(t)
		seldom := func(do func()) func(*rapid.T) {
			return func(t *rapid.T) {
				if rapid.IntRange(0, 4).Draw(t, "seldom") == 0 {
					do()
				}
			}
		}
		actions := map[string]func(*rapid.T){
			"pass":        func(t *rapid.T) { m.pass(time.Duration(rapid.IntRange(1, 24).Draw(t, "by")) * 10 * time.Second) },
			"break":       func(*rapid.T) { m.any("node").runs = false },
			"come back":   func(*rapid.T) { m.any("node").runs = true },
			"all back":    func(*rapid.T) { m.each(func(n *taintingMachine) { n.runs = true }) },
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
			"untaint":     seldom(func() { n := m.any("node"); n.Node.OutOfService, n.Node.OwnTaint = false, false }),
			"taint":       seldom(func() { m.any("node").Node.OutOfService = true }),
			"lose zone":   seldom(func() { m.loseZone(rapid.SampledFrom([]string{"", "a", "b"}).Draw(t, "zone")) }),
			"": func(*rapid.T) {
				own := 0
				m.each(func(n *taintingMachine) {
					if n.Node.OwnTaint {
						own++
					}
				})
				if own > m.tainting.Defaulted().MaxNodes {
					t.Fatalf("%d own taints", own)
				}
			},
		}
		t.Repeat(actions)
		total += m.taints
		m.settle()
	})
	if t.Logf("tainted %d times", total); total == 0 {
		t.Error("nothing was ever tainted before the end")
	}
}

// goOn lets time go by with everybody at work.
func (m *taintingModel) goOn(d time.Duration) {
	for ; d > 0; d -= 30 * time.Second {
		m.pass(30 * time.Second)
		m.record()
		m.decide()
	}
}

func (m *taintingModel) each(do func(*taintingMachine)) {
	for _, n := range m.machines {
		do(n)
	}
}

func (m *taintingModel) saysNo(n *taintingMachine) {
	if n.runs && !m.cutOff && !n.Node.Unknown {
		m.setReady(n, false, false)
	}
}

func (m *taintingModel) loseZone(zone string) {
	m.each(func(n *taintingMachine) { n.runs = n.runs && n.Labels[zoneLabel] != zone })
}

// settle makes all well again, but for one node, which is to be tainted if its zone can spare it.
func (m *taintingModel) settle() {
	m.cutOff, m.late, m.paused = false, false, false
	m.each(func(n *taintingMachine) {
		n.runs, n.Given = true, false
		n.Node.OutOfService, n.Node.OwnTaint = false, false
		m.setReady(n, true, false)
	})
	m.pass(time.Minute)
	m.record()
	m.record()
	m.pass(6 * time.Minute)
	lost, zone := m.machines[0], 0
	m.each(func(n *taintingMachine) {
		if n.Labels[zoneLabel] == lost.Labels[zoneLabel] {
			zone++
		}
	})
	lost.runs = false
	m.pass(2 * time.Minute)
	m.record()
	m.decide()
	if lost.Node.OwnTaint {
		m.Fatalf("tainted after two minutes")
	}
	m.pass(5 * time.Minute)
	m.decide()
	if spared := 100 <= m.tainting.MaxShare*zone; lost.Node.OwnTaint != spared {
		m.Fatalf("all is well but for one of %d nodes of a zone, and it is tainted: %t: %+v", zone, lost.Node.OwnTaint, m.tainting.Judge(m.reading))
	}
}
