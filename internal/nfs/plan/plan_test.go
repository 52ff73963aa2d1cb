package plan

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"pgregory.net/rapid"

	"github.com/fairlead-io/fairlead/api/v1alpha1"
	"github.com/fairlead-io/fairlead/internal/nfs"
	"github.com/fairlead-io/fairlead/internal/nfs/assign"
	"github.com/fairlead-io/fairlead/internal/testkit/fixedruns"
	"github.com/fairlead-io/fairlead/internal/testkit/must"
)

func TestMain(m *testing.M) { fixedruns.Main(m, 300, 80) }

// service has healthy backends 10.0.0.1 and on, and slots 10.96.0.1 and on, in turn.
func service(exposure nfs.Exposure, backends, slots int) *v1alpha1.NFSService {
	s := &v1alpha1.NFSService{ObjectMeta: metav1.ObjectMeta{Namespace: "storage", Name: "files"}}
	s.Spec.Exposure = string(exposure)
	for i := range backends {
		address := fmt.Sprintf("10.0.0.%d", i+1)
		s.Spec.Backends = append(s.Spec.Backends, v1alpha1.NFSBackend{Address: address})
		s.Status.Backends = append(s.Status.Backends, v1alpha1.NFSBackendStatus{Address: address + ":2049", Source: "static", Health: "Healthy", Weight: 1, Zone: string(rune('a' + i%2))})
	}
	switch exposure {
	case nfs.PerNodeStable:
		for i := range slots {
			s.Status.Slots = append(s.Status.Slots, v1alpha1.NFSSlotStatus{Address: fmt.Sprintf("10.96.0.%d", i+1), Backend: s.Status.Backends[i%backends].Address})
		}
	case nfs.Stable:
		s.Status.Address, s.Status.Backend = "10.96.0.1", s.Status.Backends[0].Address
	}
	return s
}

// attached nodes node-0 and on have the addresses in turn.
func attached(count int, addresses ...string) []assign.Attachment {
	var list []assign.Attachment
	for i := range count {
		list = append(list, assign.Attachment{Node: assign.Node{Name: fmt.Sprintf("node-%d", i), Zone: "a"}, Volume: "pv", Address: addresses[i%len(addresses)]})
	}
	return list
}

func addressesOf(s *v1alpha1.NFSService) []string {
	var list []string
	switch nfs.Exposure(s.Spec.Exposure) {
	case nfs.Stable:
		return []string{s.Status.Address}
	case nfs.PerNodeStable:
		for _, slot := range s.Status.Slots {
			list = append(list, slot.Address)
		}
		return list
	}
	for _, b := range s.Status.Backends {
		list = append(list, strings.TrimSuffix(b.Address, ":2049"))
	}
	return list
}

func change(t *testing.T, s *v1alpha1.NFSService, attachments []assign.Attachment, c nfs.Change) Plan {
	t.Helper()
	plan, problems := Read(s, attachments).Change(c)
	must.Do(t, problems.Err())
	return plan
}

func (p Plan) text() string {
	var words []string
	for _, m := range p.Slots {
		words = append(words, fmt.Sprintf("slot %d %s>%s", m.Slot, short(m.From.String()), short(m.To.String())))
	}
	for _, m := range p.Moves {
		text := fmt.Sprintf("%s %s>%s %s", m.Node, short(m.From.String()), short(m.To.String()), m.Reason)
		if m.Remount {
			text += " remount"
		}
		words = append(words, text)
	}
	for _, b := range p.Backends {
		words = append(words, fmt.Sprintf("%s=%d>%d", short(b.Address.String()), b.NodesNow, b.NodesThen))
	}
	return strings.Join(words, ", ")
}

func short(addr string) string {
	return strings.NewReplacer("10.0.0.", ".", ":2049", "", "invalid AddrPort", "none").Replace(addr)
}

func TestChanges(t *testing.T) {
	for name, test := range map[string]struct {
		exposure nfs.Exposure
		change   nfs.Change
		want     string
		outcome  Outcome
	}{
		"nothing":                {nfs.PerNode, nfs.Change{}, ".1=2>2, .2=2>2", Nothing},
		"a server more":          {nfs.PerNode, nfs.Change{Add: []v1alpha1.NFSBackend{{Address: "10.0.0.3"}}}, ".1=2>2, .2=2>2, .3=0>0", Nothing},
		"a drain":                {nfs.PerNode, nfs.Change{Drain: []string{"10.0.0.1"}}, "node-0 .1>.2 Draining remount, node-2 .1>.2 Draining remount, .1=2>0, .2=2>4", Waits},
		"a removal":              {nfs.PerNode, nfs.Change{Remove: []string{"10.0.0.1"}}, "node-0 .1>.2 Gone remount, node-2 .1>.2 Gone remount, .1=2>0, .2=2>4", Waits},
		"a replacement":          {nfs.PerNode, nfs.Change{Add: []v1alpha1.NFSBackend{{Address: "10.0.0.3"}}, Remove: []string{"10.0.0.1:2049"}}, "node-0 .1>.3 Gone remount, node-2 .1>.3 Gone remount, .1=2>0, .2=2>2, .3=0>2", Waits},
		"all drain":              {nfs.PerNode, nfs.Change{Drain: []string{"10.0.0.1", "10.0.0.2"}}, "node-0 .1>none Draining remount, node-1 .2>none Draining remount, node-2 .1>none Draining remount, node-3 .2>none Draining remount, .1=2>2, .2=2>2", Waits},
		"slots: nothing":         {nfs.PerNodeStable, nfs.Change{}, ".1=2>2, .2=2>2", Nothing},
		"slots: a drain":         {nfs.PerNodeStable, nfs.Change{Drain: []string{"10.0.0.1"}}, "slot 0 .1>.2, slot 2 .1>.2, slot 4 .1>.2, slot 6 .1>.2, node-0 .1>.2 Draining, node-2 .1>.2 Draining, .1=2>0, .2=2>4", Now},
		"slots: a server more":   {nfs.PerNodeStable, nfs.Change{Add: []v1alpha1.NFSBackend{{Address: "10.0.0.3"}}}, "slot 6 .1>.3, slot 7 .2>.3, slot 8 none>.3, slot 9 none>.1, slot 10 none>.2, slot 11 none>.3, .1=2>2, .2=2>2, .3=0>0", Now},
		"slots: all are removed": {nfs.PerNodeStable, nfs.Change{Remove: []string{"10.0.0.1", "10.0.0.2"}}, "node-0 .1>none Gone, node-1 .2>none Gone, node-2 .1>none Gone, node-3 .2>none Gone, .1=2>0, .2=2>0", Waits},
		"one address: a removal": {nfs.Stable, nfs.Change{Remove: []string{"10.0.0.1"}}, "node-0 .1>.2 Gone, node-1 .1>.2 Gone, node-2 .1>.2 Gone, node-3 .1>.2 Gone, .1=4>0, .2=0>4", Now},
		"one address: the other": {nfs.Stable, nfs.Change{Remove: []string{"10.0.0.2"}}, ".1=4>4, .2=0>0", Nothing},
	} {
		t.Run(name, func(t *testing.T) {
			s := service(test.exposure, 2, 8)
			plan := change(t, s, attached(4, addressesOf(s)...), test.change)
			if got := plan.text(); got != test.want || plan.Outcome != test.outcome {
				t.Errorf("got  %s: %s\nwant %s: %s", plan.Outcome, got, test.outcome, test.want)
			}
		})
	}
}

// Moves that wait already do not make a change wait.
func TestMovesThatArePendingDoNotCount(t *testing.T) {
	s := service(nfs.PerNode, 3, 0)
	s.Status.Backends[0].Drain = true
	attachments := attached(3, addressesOf(s)...)
	if plan := change(t, s, attachments, nfs.Change{}); plan.Outcome != Waits || plan.Moves[0].Pending {
		t.Errorf("without a change: %s, %+v", plan.Outcome, plan.Moves)
	}
	if plan := change(t, s, attachments, nfs.Change{Weights: map[string]int32{"10.0.0.2": 2}}); plan.Outcome != Nothing || !plan.Moves[0].Pending {
		t.Errorf("another weight: %s, %+v", plan.Outcome, plan.Moves)
	}
	if plan := change(t, s, attachments, nfs.Change{Drain: []string{"10.0.0.2"}}); plan.Outcome != Waits || !plan.Moves[0].Pending || plan.Moves[1].Pending {
		t.Errorf("another drain: %s, %+v", plan.Outcome, plan.Moves)
	}
}

func TestChangesThatAdmissionWouldRefuse(t *testing.T) {
	s := service(nfs.PerNodeStable, 2, 4)
	_, problems := Read(s, nil).Change(nfs.Change{
		Add: []v1alpha1.NFSBackend{{Address: "fd00::1"}, {Address: "x"}, {Address: "10.0.0.1"}}, Drain: []string{"10.0.0.9"}, Remove: []string{"y"}, Weights: map[string]int32{"10.0.0.1": 0},
	})
	var fields []string
	for _, p := range problems {
		fields = append(fields, p.Field)
	}
	slices.Sort(fields)
	must.Equal(t, strings.Join(fields, " "), "add add[1].address drain[0] remove[0] spec.backends weight[10.0.0.1]", "%v", problems)
	s.Spec.Versions = []int32{5} // wrong already
	if _, problems = Read(s, nil).Change(nfs.Change{Drain: []string{"10.0.0.1"}}); len(problems) > 0 {
		t.Errorf("problems that the change does not make: %v", problems)
	}
}

func TestDiscoveredBackendsAreChangedOtherwise(t *testing.T) {
	s := service(nfs.PerNode, 2, 0)
	s.Spec.Backends, s.Spec.ServerService = s.Spec.Backends[:1], &v1alpha1.NFSServerService{Name: "servers"}
	s.Status.Backends[1].Source = "service"
	plan := change(t, s, nil, nfs.Change{Remove: []string{"10.0.0.2"}})
	if len(plan.Notes) != 1 || !strings.Contains(plan.Notes[0], "Service servers") {
		t.Errorf("got %q", plan.Notes)
	}
	plan = change(t, s, nil, nfs.Change{Drain: []string{"10.0.0.1", "10.0.0.2"}})
	if len(plan.Notes) != 1 || !strings.Contains(plan.Notes[0], "10.0.0.2:2049 comes from source service: list it") {
		t.Errorf("got %q", plan.Notes)
	}
}

// A Service of server pods may have addresses of both families; a slot's ClusterIP has one.
func TestSlotsStayWithinTheirFamily(t *testing.T) {
	s := service(nfs.PerNodeStable, 2, 2)
	s.Spec.Slots = ptr.To[int32](2)
	s.Status.Backends = append(s.Status.Backends, v1alpha1.NFSBackendStatus{Address: "[fd00::1]:2049", Source: "service", Health: "Healthy", Weight: 1000})
	plan := change(t, s, attached(2, addressesOf(s)...), nfs.Change{Drain: []string{"10.0.0.1"}})
	if len(plan.Slots) != 1 || plan.Slots[0].To.String() != "10.0.0.2:2049" {
		t.Errorf("got %s", plan.text())
	}
}

func TestExplain(t *testing.T) {
	s := service(nfs.PerNodeStable, 2, 4)
	s.Status.Backends[1].Drain = true
	attachments := append(attached(2, "10.96.0.1", "10.96.0.2"), assign.Attachment{Node: assign.Node{Name: "node-2"}, Volume: "pv", Address: "10.96.9.9"},
		assign.Attachment{Node: assign.Node{Name: "node-0", Zone: "a"}, Volume: "other", Address: "10.96.0.3"}, assign.Attachment{Node: assign.Node{Name: "node-9"}, Volume: "pv"})
	state := Read(s, attachments)
	var got []string
	for _, n := range state.Explain() {
		got = append(got, fmt.Sprintf("%s %d %d %s", n.Node, ptr.Deref(n.Slot, -1), n.Volumes, n.Why))
	}
	want := []string{
		"node-0 0 2 slot 0 points to it; in the node's zone; its volumes have different addresses until they are detached",
		"node-1 1 1 slot 1 points to it; in another zone than the node; backend is draining: the address is pointed to another backend as soon as one takes it",
		"node-2 -1 1 its address leads to no backend: the node gets one when it mounts again",
	}
	must.Equal(t, got, want, "got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	if len(state.Explain()) != 3 || state.Slots[0].Nodes != 1 || state.Loads()[0].Nodes != 1 {
		t.Errorf("%d nodes, slots %v, loads %v", len(state.Explain()), state.Slots, state.Loads())
	}
}

// A drain moves only the backend's nodes. No node is lost, and none stays while another backend is open.
func TestDrainMovesOnlyNodesOfTheBackend(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		exposure := rapid.SampledFrom([]nfs.Exposure{nfs.PerNode, nfs.PerNodeStable, nfs.Stable}).Draw(t, "exposure")
		backends := rapid.IntRange(2, 6).Draw(t, "backends")
		s := service(exposure, backends, backends*rapid.IntRange(1, 4).Draw(t, "slots per backend"))
		state := Read(s, attached(rapid.IntRange(0, 30).Draw(t, "nodes"), addressesOf(s)...))
		drained := state.members[rapid.IntRange(0, backends-1).Draw(t, "drained")].Addr
		plan, problems := state.Change(nfs.Change{Drain: []string{drained.String()}})
		must.Do(t, problems.Err())
		nodes := 0
		for _, b := range plan.Backends {
			nodes += b.NodesThen
			if b.Address == drained && (b.NodesThen != 0 || b.NodesNow != len(plan.Moves)) {
				t.Fatalf("%d nodes of %d stay, %d move", b.NodesThen, b.NodesNow, len(plan.Moves))
			}
		}
		if nodes != len(state.Explain()) {
			t.Fatalf("%d nodes, then %d", len(state.Explain()), nodes)
		}
		for _, m := range plan.Moves {
			if m.From != drained || !m.To.IsValid() || m.To == drained || m.Remount != (exposure == nfs.PerNode) {
				t.Fatalf("got %+v", m)
			}
		}
	})
}
