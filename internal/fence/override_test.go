package fence

import (
	"testing"
	"time"
	"unicode/utf8"

	"github.com/fairlead-io/fairlead/api/v1alpha1"
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
		if got := [2]string{gate, reason}; got != want || ok != (want != [2]string{}) {
			t.Errorf("%q: got %q, %t", text, got, ok)
		}
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
		"asked and let pass":               {of("attach: it burns", o.Text()), lost, true},
		"another incident":                 {of("attach: it burns", scoped("5678").Text()), lost, false},
		"of before it was lost":            {of("attach: it burns", scoped("boot b").Text()), lost, false},
		"another gate":                     {of("unfence: it burns", o.Text()), lost, false},
		"another reason":                   {of("attach: because", o.Text()), lost, false},
		"taken back":                       {map[string]string{OverriddenAnnotation: o.Text()}, lost, false},
		"not let pass":                     {map[string]string{OverrideAnnotation: "attach: it burns"}, lost, false},
		"admitted for no user":             {of("attach: it burns", Override{Gate: GateAttach, Reason: "it burns", Scope: "1234"}.Text()), lost, false},
		"an unreadable record":             {of("attach: it burns", "{"), lost, false},
		"a record of another shape":        {of("attach: it burns", `["attach"]`), lost, false},
		"an empty record":                  {of("attach: it burns", "{}"), lost, false},
		"a record of nothing":              {of("attach: it burns", "null"), lost, false},
		"no gate of ours":                  {of("all: it burns", Override{Gate: "all", By: "alice", Reason: "it burns", Scope: "1234"}.Text()), lost, false},
		"in no incident":                   {of("attach: it burns", scoped("boot b").Text()), healthy, false},
		"the taint, in this boot":          {of("taint: a drill", Override{Gate: GateTaint, By: "alice", Reason: "a drill", Scope: "boot b"}.Text()), healthy, true},
		"in no incident, in another boot":  {of("attach: it burns", scoped("boot a").Text()), healthy, false},
		"after the incident":               {of("attach: it burns", o.Text()), healthy, false},
		"no incident is not any incident":  {of("attach: it burns", scoped("").Text()), healthy, false},
		"nothing recorded, nothing scoped": {nil, v1alpha1.NodeFenceStatus{}, false},
	} {
		t.Run(name, func(t *testing.T) {
			got := ReadOverride(test.annotations, test.status)
			if holds := got != (Override{}); holds != test.holds {
				t.Fatalf("got %+v", got)
			}
		})
	}
}

// Whatever annotations say: an override that holds was let pass for this gate,
// reason and incident, for a user, and reads back as it was written.
func FuzzOverride(f *testing.F) {
	f.Add("attach: it burns", `{"gate":"attach","by":"alice","reason":"it burns","scope":"1234","at":"2026-01-01T12:00:00Z"}`, "1234")
	f.Add("unfence: x", `{"gate":"unfence","BY":"bob","reason":"x","scope":"boot "}`, "")
	f.Add("taint:\xff", "{}", "5")
	f.Add("", "", "")
	f.Fuzz(func(t *testing.T, request, record, incident string) {
		s := v1alpha1.NodeFenceStatus{Incident: incident}
		annotations := map[string]string{OverrideAnnotation: request, OverriddenAnnotation: record}
		gate, reason, asked := ParseOverride(request)
		if o := ReadOverride(annotations, s); o != (Override{}) && (!asked || o.Gate != gate || o.Reason != reason || o.Scope != Scope(s) || o.By == "") {
			t.Fatalf("holds: %+v", o)
		}
		written := Override{Gate: gate, By: "alice", Reason: reason, Scope: Scope(s), At: time.Unix(1_000_000, 0).UTC()}
		annotations[OverriddenAnnotation] = written.Text()
		got := ReadOverride(annotations, s)
		asked = asked && (incident != "" || gate == GateTaint)            // there is nothing else to override yet
		isText := utf8.ValidString(request) && utf8.ValidString(incident) // as all that the API has is
		if got != (Override{}) && got != written || isText && asked != (got == written) {
			t.Fatalf("wrote %+v, read %+v", written, got)
		}
	})
}

// Who has given a node up has not given up what it became since: back while it was
// let in, and lost once more.
func TestReturnedNodeIsNotGivenUp(t *testing.T) {
	for name, back := range map[string]bool{"it was back": true, "it was not": false} {
		f := Facts{
			Now:  noon,
			Node: Node{Name: "node-1", Exists: true, Ready: true, Machine: v1alpha1.MachineIdentity{UID: "u", BootID: "anew", SystemUUID: "m"}},
			Status: v1alpha1.NodeFenceStatus{
				Phase: v1alpha1.NodeUnfencing, Incident: "i", LostSince: at(noon.Add(-time.Hour)),
				Node:   v1alpha1.MachineIdentity{UID: "u", BootID: "b", SystemUUID: "m"},
				Fences: []v1alpha1.Fence{{Name: "theirs", Incident: "i", Driver: rbd, CIDRs: []string{"10.0.0.1/32"}, State: v1alpha1.FenceUnfencing}},
			},
			Override: Override{Gate: GateUnfence, By: "eve", Reason: "clean", Scope: "i", At: noon.Add(-time.Minute)},
			Holding:  []v1alpha1.HeldVolume{{PersistentVolume: "pv", Driver: rbd}},
			Policy:   allFenced(),
		}
		if back {
			f.Status = Next(f).Status
		}
		f.Node, f.Holding, f.Now = Node{Name: "node-1"}, nil, noon.Add(time.Minute)
		s := Next(f).Status
		if held := len(s.Volumes) == 1 && s.Phase == v1alpha1.NodeFencing && s.Incident != "i"; held != back {
			t.Errorf("%s: it is %s in %s with %v", name, s.Phase, s.Incident, s.Volumes)
		}
	}
}

// Two nodes share an address; one is unfenced. The other is on record as fenced by it
// until it is seen that something lets it in: that must not be gone before.
func TestUnfencedSharedAddressStaysUntilNoticed(t *testing.T) {
	const address = "10.0.0.1/32"
	for state, kept := range map[string]bool{v1alpha1.FenceFenced: true, v1alpha1.FenceRequested: false, v1alpha1.FenceUnfencing: false} {
		f := Facts{
			Fences: []NetworkFence{{Name: "mine", Unfenced: true, CIDRs: []string{address}}},
			Others: []Other{{Status: v1alpha1.NodeFenceStatus{Phase: v1alpha1.NodeFenced, Incident: "i", Fences: []v1alpha1.Fence{{Name: "theirs", Incident: "i", CIDRs: []string{address}, State: state}}}}},
		}
		var step Step
		done := f.release(&step, &v1alpha1.Fence{Name: "mine", CIDRs: []string{address}, State: v1alpha1.FenceLeaving}, f.Fences[0], true)
		if done || kept != (len(step.Delete) == 0) {
			t.Errorf("the other's is %s: done %v, deletes %v", state, done, step.Delete)
		}
	}
}

// What was released for a fence counts as shut out by its address, though its object is gone.
func TestFenceThatReleasedVolumesIsShared(t *testing.T) {
	const address = "10.0.0.1/32"
	for letGo, shared := range map[bool]bool{true: true, false: false} {
		f := Facts{
			Status: v1alpha1.NodeFenceStatus{Fences: []v1alpha1.Fence{{Name: "mine", CIDRs: []string{address}, State: v1alpha1.FenceFenced}}},
			Others: []Other{{Node: Node{Name: "node-2"}, Status: v1alpha1.NodeFenceStatus{
				Phase: v1alpha1.NodeFencing, Incident: "i",
				Fences: []v1alpha1.Fence{{Name: "theirs", Incident: "i", CIDRs: []string{address}, State: v1alpha1.FenceRequested, LetGo: letGo}},
			}}},
		}
		if got, _ := f.hindrance(f.Status.Fences); (got != "") != shared {
			t.Errorf("let go %v: shared: %q", letGo, got)
		}
	}
}

// Lost again after it had come back: what is blocked still is unfenced when it is given up.
func TestGivenUpNodeWithEarlierFencesIsUnfenced(t *testing.T) {
	f := Facts{
		Now: noon, Policy: allFenced(),
		Node: Node{Name: "node-1"},
		Status: v1alpha1.NodeFenceStatus{
			Phase: v1alpha1.NodeLost, Incident: "new", LostSince: at(noon.Add(-time.Minute)), LastHealthy: at(noon.Add(-time.Hour)),
			Node:    v1alpha1.MachineIdentity{UID: "u", BootID: "b", SystemUUID: "m"},
			Volumes: []v1alpha1.HeldVolume{{PersistentVolume: "pv", Driver: rbd}},
			Fences:  []v1alpha1.Fence{{Name: "of-before", Incident: "old", CIDRs: []string{"10.0.0.1/32"}, State: v1alpha1.FenceFenced}},
		},
		Override: Override{Gate: GateUnfence, By: "eve", Reason: "scrapped", Scope: "new", At: noon},
	}
	step := Next(f)
	if step.Status.Phase != v1alpha1.NodeUnfencing || step.Status.Fences[0].State != v1alpha1.FenceUnfencing {
		t.Errorf("it is %s: %s", step.Status.Phase, step.Status.Message)
	}
}

// The machine was back while Fairlead did not look, and mounted more.
func TestAttachOverrideEndsWithTheLossItWasGivenFor(t *testing.T) {
	s := askedOnly(t)
	s.override(GateAttach).look()
	s.wantReason(ReasonOverridden)
	s.wantHeld(false)
	s.pass(time.Minute)
	s.Node.ReadyChanged = s.Now // lost again
	s.Holding = append(s.Holding, held("pv-2", rbd, "a"))
	s.look()
	s.wantHeld(true)
	// Back without a boot, it may write to what was taken by force.
	s.Node.Ready, s.Node.OutOfService, s.Node.ReadyChanged, s.Holding = true, false, s.Now.Add(time.Minute), nil
	s.pass(time.Minute).look()
	if len(s.Status.Volumes) != 2 {
		t.Errorf("it holds %v", VolumeNames(s.Status.Volumes))
	}
}

// Back from the loss that the override was given for, it mounts more, and is lost again while Fairlead does not look.
func TestOverrideDoesNotPardonALossAfterTheReturn(t *testing.T) {
	s := askedOnly(t)
	s.override(GateAttach).look()
	s.answer()
	s.boot("boot-2")
	s.Holding = []v1alpha1.HeldVolume{held("pv-2", rbd, "a")}
	s.look()
	s.wantReason(ReasonTainted)
	s.Node.ReadyChanged, s.Holding = s.Now.Add(time.Second), nil
	s.pass(time.Minute).look()
	if v := s.Status.Volumes; len(v) != 1 || v[0].Until == nil {
		t.Errorf("it holds %+v", v)
	}
}
