package fence

import (
	"testing"
	"time"
	"unicode/utf8"

	"github.com/fairlead-io/fairlead/api/v1alpha1"
	"github.com/fairlead-io/fairlead/internal/testkit/must"
)

func TestParseOverride(t *testing.T) {
	for text, want := range map[string][2]string{
		"attach: it burns":           {GateAttach, "it burns"},
		"unfence:it burns":           {GateUnfence, "it burns"},
		" taint :  it: burns  ":      {GateTaint, "it: burns"},
		"attach":                     {},
		"attach:":                    {},
		"attach:  ":                  {},
		": it burns":                 {},
		"Attach: it burns":           {},
		"attach,unfence: it burns":   {},
		"everything: it burns":       {},
		"it burns, so attach please": {},
		"":                           {},
	} {
		gate, reason, ok := ParseOverride(text)
		if !ok {
			gate, reason = "", ""
		}
		must.Equal(t, [2]string{gate, reason}, want, "%q", text)
		must.Equal(t, ok, want != [2]string{}, "%q", text)
	}
}

func TestOverrideHoldsForOneIncident(t *testing.T) {
	lost := v1alpha1.NodeFenceStatus{Incident: "1234", Node: v1alpha1.MachineIdentity{BootID: "b"}}
	healthy := v1alpha1.NodeFenceStatus{Node: v1alpha1.MachineIdentity{BootID: "b"}}
	o := Override{Gate: GateAttach, By: "alice", Reason: "it burns", Scope: "1234", At: noon}
	of := func(request, record string) map[string]string {
		return map[string]string{OverrideAnnotation: request, OverriddenAnnotation: record}
	}
	scoped := func(scope string) Override { o := o; o.Scope = scope; return o }
	for name, test := range map[string]struct {
		annotations map[string]string
		status      v1alpha1.NodeFenceStatus
		holds       bool
	}{
		"admitted":                         {of("attach: it burns", o.Text()), lost, true},
		"another incident":                 {of("attach: it burns", scoped("5678").Text()), lost, false},
		"before the loss":                  {of("attach: it burns", scoped("boot b").Text()), lost, false},
		"another gate":                     {of("unfence: it burns", o.Text()), lost, false},
		"another reason":                   {of("attach: because", o.Text()), lost, false},
		"request removed":                  {map[string]string{OverriddenAnnotation: o.Text()}, lost, false},
		"not admitted":                     {map[string]string{OverrideAnnotation: "attach: it burns"}, lost, false},
		"admitted for no user":             {of("attach: it burns", Override{Gate: GateAttach, Reason: "it burns", Scope: "1234"}.Text()), lost, false},
		"an unreadable record":             {of("attach: it burns", "{"), lost, false},
		"a record of another shape":        {of("attach: it burns", `["attach"]`), lost, false},
		"an empty record":                  {of("attach: it burns", "{}"), lost, false},
		"a null record":                    {of("attach: it burns", "null"), lost, false},
		"unknown gate":                     {of("all: it burns", Override{Gate: "all", By: "alice", Reason: "it burns", Scope: "1234"}.Text()), lost, false},
		"in no incident":                   {of("attach: it burns", scoped("boot b").Text()), healthy, false},
		"the taint, in this boot":          {of("taint: a drill", Override{Gate: GateTaint, By: "alice", Reason: "a drill", Scope: "boot b"}.Text()), healthy, true},
		"in no incident, in another boot":  {of("attach: it burns", scoped("boot a").Text()), healthy, false},
		"after the incident":               {of("attach: it burns", o.Text()), healthy, false},
		"no incident is not any incident":  {of("attach: it burns", scoped("").Text()), healthy, false},
		"nothing recorded, nothing scoped": {nil, v1alpha1.NodeFenceStatus{}, false},
	} {
		t.Run(name, func(t *testing.T) {
			got := ReadOverride(test.annotations, test.status)
			must.Equal(t, got != (Override{}), test.holds, "%+v", got)
		})
	}
}

// An override in effect was admitted for its gate, reason, incident and user, and reads back as written.
func FuzzOverride(f *testing.F) {
	f.Add("attach: it burns", `{"gate":"attach","by":"alice","reason":"it burns","scope":"1234","at":"2026-01-01T12:00:00Z"}`, "1234")
	f.Add("unfence: x", `{"gate":"unfence","BY":"bob","reason":"x","scope":"boot "}`, "")
	f.Add("taint:\xff", "{}", "5")
	f.Add("", "", "")
	f.Fuzz(func(t *testing.T, request, record, incident string) {
		s := v1alpha1.NodeFenceStatus{Incident: incident}
		annotations := map[string]string{OverrideAnnotation: request, OverriddenAnnotation: record}
		gate, reason, asked := ParseOverride(request)
		o := ReadOverride(annotations, s)
		must.True(t, o == (Override{}) || asked && o.Gate == gate && o.Reason == reason && o.Scope == Scope(s) && o.By != "", "holds: %+v", o)
		written := Override{Gate: gate, By: "alice", Reason: reason, Scope: Scope(s), At: time.Unix(1_000_000, 0).UTC()}
		annotations[OverriddenAnnotation] = written.Text()
		got := ReadOverride(annotations, s)
		asked = asked && (incident != "" || gate == GateTaint)            // other gates need an incident
		isText := utf8.ValidString(request) && utf8.ValidString(incident) // the API stores valid UTF-8 only
		must.True(t, (got == (Override{}) || got == written) && (!isText || asked == (got == written)), "wrote %+v, read %+v", written, got)
	})
}

func TestOnlyTheUnfenceGateGivesUpALostNode(t *testing.T) {
	earlier, later := noon.Add(-time.Minute), noon.Add(time.Minute)
	for name, test := range map[string]struct {
		gate string
		node Node
		want bool
	}{
		"gone":                      {GateUnfence, Node{}, true},
		"lost before the override":  {GateUnfence, Node{Exists: true, ReadyChanged: earlier}, true},
		"lost again":                {GateUnfence, Node{Exists: true, ReadyChanged: later}, false},
		"Ready":                     {GateUnfence, Node{Exists: true, Ready: true, ReadyChanged: earlier}, false},
		"gone, another gate":        {GateAttach, Node{}, false},
		"lost before, another gate": {GateTaint, Node{Exists: true, ReadyChanged: earlier}, false},
	} {
		o := Override{Gate: test.gate, At: noon}
		must.Equal(t, o.givesUp(test.node), test.want, "%s", name)
		must.Equal(t, o.still(test.node) == o, test.gate != GateAttach || !test.node.ReadyChanged.After(noon), "%s: still", name)
	}
	must.Equal(t, Override{Gate: GateUnfence, At: noon}.still(Node{Exists: true, ReadyChanged: later}).Gate, GateUnfence)
}

func TestUnfenceOverrideReadmitsAtOnce(t *testing.T) {
	for reason, waits := range map[string]func(*story){
		ReasonTainted:  func(*story) {},
		ReasonSettling: func(s *story) { s.taint(false) },
		ReasonStillMounted: func(s *story) {
			v := held("pv-1", rbd, "a")
			v.Detached = true
			s.taint(false).hold(v).pass(DefaultReadyFor)
		},
	} {
		s := fenced(t).boot("boot-2").do(waits).look().wantPhase(v1alpha1.NodeReturned, reason)
		s.override(GateUnfence).look().wantPhase(v1alpha1.NodeUnfencing, ReasonOverridden)
	}
}

// An unfence override gives up the node while it stays lost. After a return, a later loss is a new incident.
func TestReturnedNodeIsNotGivenUp(t *testing.T) {
	for _, returned := range []bool{true, false} {
		s := fenced(t).hold(held("pv-1", rbd, "a")).override(GateUnfence).look()
		incident := s.Status.Incident
		if returned {
			s.boot("boot-2")
		}
		s.pass(time.Minute).deleteNode().look()
		if held := len(s.Status.Volumes) == 1 && s.Status.Phase == v1alpha1.NodeFencing && s.Status.Incident != incident; held != returned {
			t.Errorf("returned %t: the record is %+v", returned, s.Status)
		}
	}
}

// Two nodes share an address, and one is unfenced. Its NetworkFence stays while the other node is on record as fenced.
func TestUnfencedSharedAddressStaysUntilNoticed(t *testing.T) {
	const address = "10.0.0.1/32"
	for state, kept := range map[string]bool{v1alpha1.FenceFenced: true, v1alpha1.FenceRequested: false, v1alpha1.FenceUnfencing: false} {
		f := Facts{
			Fences:   []NetworkFence{{Name: "mine", Unfenced: true, CIDRs: []string{address}}},
			Machines: []Other{sharing("node-2", v1alpha1.NodeFenced, state)},
		}
		var step Step
		done := f.unfence(&step, &v1alpha1.Fence{Name: "mine", CIDRs: []string{address}, State: v1alpha1.FenceUnfenced}, f.Fences[0], true)
		must.True(t, !done && kept == (len(step.Delete) == 0), "the other's is %s: done %v, deletes %v", state, done, step.Delete)
	}
}

// The node returned, and was lost again. When it is given up, its earlier fences are unfenced.
func TestGivenUpNodeWithEarlierFencesIsUnfenced(t *testing.T) {
	s := fenced(t).boot("boot-2").lose().taint(false).look().wantPhase(v1alpha1.NodeLost, ReasonNotReady).wantObjects(fencedOf1)
	s.dropNode().override(GateUnfence)
	next := Next(s.Facts).Status
	s.wantThat(next.Phase == v1alpha1.NodeUnfencing && next.Fences[0].State == v1alpha1.FenceUnfencing, "the fence is released")
}

// The machine returned unseen, and may have mounted more volumes.
func TestAttachOverrideEndsWithTheLossItWasGivenFor(t *testing.T) {
	s := requested(t).override(GateAttach).look().wantReason(ReasonOverridden).wantHeld(false).pass(time.Minute)
	s.Node.ReadyChanged = s.Now // lost again
	s.Holding = append(s.Holding, held("pv-2", rbd, "a"))
	s.look().wantHeld(true)
	// Back without a boot, it may write to what was taken by force.
	s.Node.Ready, s.Node.OutOfService, s.Node.ReadyChanged, s.Holding = true, false, s.Now.Add(time.Minute), nil
	s.pass(time.Minute).look().wantVolumes(2)
}

// Back from the loss that the override was given for, it mounts more, and is lost again while Fairlead does not look.
func TestOverrideDoesNotPardonALossAfterTheReturn(t *testing.T) {
	s := requested(t).override(GateAttach).look().answer().boot("boot-2")
	s.hold(held("pv-2", rbd, "a")).look().wantReason(ReasonTainted)
	s.Node.ReadyChanged, s.Holding = s.Now.Add(time.Second), nil
	s.pass(time.Minute).look().wantVolumes(1).wantThat(s.Status.Volumes[0].Until != nil, "its volume has time to end")
}
