package fence

import (
	"fmt"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/fairlead-io/fairlead/api/v1alpha1"
	"github.com/fairlead-io/fairlead/internal/testkit/must"
)

func TestParseOverride(t *testing.T) {
	for text, want := range map[string][2]string{
		"attach: it burns": {GateAttach, "it burns"}, "unfence:it burns": {GateUnfence, "it burns"}, " taint : it: burns ": {GateTaint, "it: burns"},
		"attach": {}, "attach:": {}, "attach: ": {}, ": it burns": {}, "Attach: it burns": {}, "attach,unfence: it burns": {}, "everything: it burns": {},
		"it burns, so attach please": {}, "": {},
	} {
		t.Run(text, func(t *testing.T) {
			gate, reason, ok := ParseOverride(text)
			must.True(t, ok == (want != [2]string{}) && (!ok || want == [2]string{gate, reason}), "got %q and %q, %t", gate, reason, ok)
		})
	}
	must.Equal(t, OverrideCommand("node-1-0a1b", GateAttach), "kubectl annotate nodefence node-1-0a1b 'fairlead.io/override-gate=attach: <why>'")
}

func TestRequestIsReadIfTheWebhookAdmittedIt(t *testing.T) {
	admitted := Request{Gate: GateAttach, By: "alice", Reason: "it burns", At: noon}
	of := func(asked, record string) map[string]string {
		return map[string]string{OverrideAnnotation: asked, OverriddenAnnotation: record}
	}
	for name, test := range map[string]struct {
		annotations map[string]string
		asks        bool
	}{
		"admitted":                  {of("attach: it burns", admitted.Text()), true},
		"another gate":              {of("unfence: it burns", admitted.Text()), false},
		"another reason":            {of("attach: because", admitted.Text()), false},
		"the question is gone":      {map[string]string{OverriddenAnnotation: admitted.Text()}, false},
		"not admitted":              {map[string]string{OverrideAnnotation: "attach: it burns"}, false},
		"admitted for no user":      {of("attach: it burns", Request{Gate: GateAttach, Reason: "it burns"}.Text()), false},
		"an unreadable record":      {of("attach: it burns", "{"), false},
		"a record of another shape": {of("attach: it burns", `["attach"]`), false},
		"an empty record":           {of("attach: it burns", "{}"), false},
		"a null record":             {of("attach: it burns", "null"), false},
		"an unknown gate":           {of("all: it burns", Request{Gate: "all", By: "alice", Reason: "it burns"}.Text()), false},
		"nothing":                   {nil, false},
	} {
		t.Run(name, func(t *testing.T) {
			got := ReadRequest(test.annotations)
			must.True(t, test.asks && got == admitted || !test.asks && got == Request{}, "got %+v", got)
		})
	}
}

// What is read was admitted for its gate, reason and user, and reads back as written.
func FuzzRequest(f *testing.F) {
	f.Add("attach: it burns", `{"gate":"attach","by":"alice","reason":"it burns","at":"2026-01-01T12:00:00Z"}`)
	f.Add("unfence: x", `{"gate":"unfence","BY":"bob","reason":"x"}`)
	f.Add("taint:\xff", "{}")
	f.Add("", "")
	f.Fuzz(func(t *testing.T, asked, record string) {
		annotations := map[string]string{OverrideAnnotation: asked, OverriddenAnnotation: record}
		gate, reason, is := ParseOverride(asked)
		r := ReadRequest(annotations)
		must.True(t, r == (Request{}) || is && r.Gate == gate && r.Reason == reason && r.By != "", "it asks: %+v", r)
		written := Request{Gate: gate, By: "alice", Reason: reason, At: time.Unix(1_000_000, 0).UTC()}
		annotations[OverriddenAnnotation] = written.Text()
		got := ReadRequest(annotations)
		// The API stores valid UTF-8 only.
		must.True(t, (got == (Request{}) || got == written) && (!utf8.ValidString(asked) || is == (got == written)), "wrote %+v, read %+v", written, got)
	})
}

func TestActIsCarriedOutOnce(t *testing.T) {
	rebooted := func(s *story) { s.hold().Node.Boot.BootID = "boot-2" }
	lostAgain := func(s *story) { s.pass(time.Minute).Node.ReadyChanged = s.Now }
	for name, c := range map[string]struct {
		of       func(*testing.T) *story
		gate     string
		changes  func(*story) // since the request
		void     bool
		released int    // volumes
		fence    string // its state after the act, and whether volumes are released by it
		held     bool
	}{
		"attach, of a lost node":                   {of: recordedLoss, gate: GateAttach, released: 1},
		"attach, of a node that is being fenced":   {of: requested, gate: GateAttach, released: 1, fence: "Requested true"},
		"attach, of a fenced node":                 {of: fenced, gate: GateAttach, released: 1, fence: "Fenced true"},
		"attach, of a healthy node":                {of: healthy, gate: GateAttach, void: true, held: true},
		"attach, and the node was lost again":      {of: recordedLoss, gate: GateAttach, changes: lostAgain, void: true, held: true},
		"attach, and the node is back":             {of: recordedLoss, gate: GateAttach, changes: func(s *story) { s.comeBack() }, void: true, held: true},
		"attach, and the node was recreated":       {of: recordedLoss, gate: GateAttach, changes: func(s *story) { s.Node.UID = "uid-2" }, void: true, held: true},
		"attach, and the node was deleted":         {of: recordedLoss, gate: GateAttach, changes: func(s *story) { s.drop() }, void: true, held: true},
		"attach, and another machine has the name": {of: recordedLoss, gate: GateAttach, changes: func(s *story) { s.replace("machine-2", "192.168.1.2") }, void: true, fence: "Requested false", held: true},
		"attach, and the node was tainted":         {of: recordedLoss, gate: GateAttach, changes: func(s *story) { s.taint(true) }, released: 1, fence: "Requested true"},
		"attach, of a deleted node":                {of: func(t *testing.T) *story { return healthy(t).dropNode() }, gate: GateAttach, released: 1, fence: "Requested true"},
		"unfence, of a lost node":                  {of: recordedLoss, gate: GateUnfence, released: 1},
		"unfence, of a node that is being fenced":  {of: requested, gate: GateUnfence, released: 1, fence: "Unfencing false"},
		"unfence, of a fenced node":                {of: fenced, gate: GateUnfence, released: 1, fence: "Unfencing true"},
		"unfence, of a gone node":                  {of: goneMachine, gate: GateUnfence, released: 1, fence: "Unfencing true"},
		"unfence, of a boot that is over":          {of: func(t *testing.T) *story { return fenced(t).boot("boot-2") }, gate: GateUnfence, fence: "Unfencing true"},
		"unfence, and the node has rebooted":       {of: fenced, gate: GateUnfence, changes: rebooted, void: true, fence: "Fenced true"},
		"taint, of a healthy node":                 {of: healthy, gate: GateTaint, held: true},
		"taint, of a fenced node":                  {of: fenced, gate: GateTaint, fence: "Fenced true"},
		"taint, and the node was lost again":       {of: recordedLoss, gate: GateTaint, changes: lostAgain, void: true, held: true},
	} {
		t.Run(name, func(t *testing.T) {
			s := c.of(t).request(c.gate)
			asked := s.Now
			if c.changes != nil {
				c.changes(s)
			}
			s.look().wantThat((s.void != nil) == c.void, "it is void").wantHeld(c.held)
			if acts := s.Spec.Acts; c.void {
				must.True(t, len(acts) == 1 && acts[0].Void && WasMade(s.Spec, c.gate, "it is off", "alice"), "acts on record are %+v", acts)
			} else {
				must.True(t, len(acts) == 1 && acts[0].Gate == c.gate && acts[0].By == "alice" && acts[0].Reason == "it is off" && acts[0].At.Time.Equal(asked) && acts[0].Volumes == c.released, "acts on record are %+v", acts)
				must.True(t, !s.Node.Exists && acts[0].Of == nil || s.Node.Exists && acts[0].Of.Time.Equal(s.Node.ReadyChanged), "it is of the node's present state: %+v", acts[0])
			}
			fence := ""
			for _, r := range s.Spec.Fences {
				fence += fmt.Sprint(r.State, " ", r.VolumesReleased)
			}
			must.Equal(t, fence, c.fence)
			s.look().wantThat(len(s.Spec.Acts) <= 1, "nothing is done twice")
		})
	}
}

// Nothing later is under an act.
func TestActIsNoMode(t *testing.T) {
	for _, gate := range []string{GateAttach, GateUnfence} {
		released := func(t *testing.T) *story { return recordedLoss(t).act(gate).wantHeld(false) }
		t.Run(gate, func(t *testing.T) {
			tales(t, released, map[string]tale[bool]{
				"the node stays lost":                   {func(s *story) { s.pass(time.Hour).look() }, false},
				"it is tainted":                         {func(s *story) { s.taint(true).look() }, false},
				"its Node is deleted":                   {func(s *story) { s.dropNode().look() }, false},
				"its Node is deleted, and replaced":     {func(s *story) { s.drop().look().replace("machine-2", "192.168.1.2").look() }, false},
				"its Node is replaced, all unseen":      {func(s *story) { s.replace("machine-2", "192.168.1.2").look() }, true},
				"it is back":                            {func(s *story) { s.comeBack().look() }, true},
				"it is back, and Fairlead has not seen": {func(s *story) { s.comeBack() }, true},
				"it is back, and tainted":               {func(s *story) { s.taint(true).comeBack().look() }, true},
				"it is back, and lost again":            {func(s *story) { s.comeBack().look().lose().look() }, true},
				"it is back, and deleted":               {func(s *story) { s.comeBack().look().dropNode() }, true},
				"it was back, unseen":                   {func(s *story) { s.lose().look() }, true},
				"it was back, unseen, and recreated":    {func(s *story) { s.register("boot-1").lose().look() }, true},
				"it was back, unseen, and deleted":      {func(s *story) { s.dropUnseen().look() }, true},
				"it is back for longer than its grace":  {func(s *story) { s.comeBack().look().pass(endsWithin).look().lose().look() }, true},
			}, func(s *story, held bool) { s.wantHeld(held) })
		})
	}
	t.Run("a volume that is found later is held, and fenced", func(t *testing.T) {
		s := requested(t).act(GateUnfence).wantHeld(false)
		v := pv("pv-2", rbd, "a", "ReadWriteOnce")
		s.hold(append(s.Holding, v.Held())...).look().wantVolumes(2)
		must.True(t, Attach(v, "node-2", s.namesakes().Holders(v), s.Policy) != nil, "it is not held")
		s.answer().answer().answer().wantObjects(fencedOf1)
	})
	t.Run("a node that is back is not fenced again for what was released", func(t *testing.T) {
		s := fenced(t).act(GateUnfence).answer().answer().wantObjects().pass(time.Hour).look().wantObjects().want(v1alpha1.NodeLost, ReasonOverridden, `the node is not Ready; it is not fenced, and its volumes are not held: alice says "it is off"`)
		s.taint(false).comeBack().look().wantObjects().loseTainted().wantObjects(fencedOf1).wantHeld(true)
	})
	t.Run("of a node that is back it releases its volumes, or is void", func(t *testing.T) {
		s := recordedLoss(t).hold().comeBack().look().wantReason(ReasonStillMounted).wantHeld(true).act(GateAttach)
		must.True(t, s.void != nil || s.attach() == nil, "the act is carried out (%+v), and pv-1 is held: %s", s.Spec.Acts, s.Status.Message)
	})
}

func TestReleasedLossIsReported(t *testing.T) {
	s := recordedLoss(t).act(GateAttach).wantWarning()
	s.want(v1alpha1.NodeLost, ReasonReleased, `the node is not Ready; its volumes may be attached elsewhere although it is not fenced: alice says "it is off". Its pods move once it is tainted`)
	const released = `its volumes may be attached elsewhere although it is not fenced: alice says "it is off"`
	s.taint(true).look().want(v1alpha1.NodeFencing, ReasonOverridden, released).wantObjects(fencedOf1)
	s = lost(t)
	s.Spec.Identities = nil // no fence is possible
	s.taint(true).look().wantHeld(true).act(GateAttach).want(v1alpha1.NodeFencing, ReasonOverridden, released).wantHeld(false)
}

func TestActsAreBounded(t *testing.T) {
	s := recordedLoss(t)
	for i := range maxActs + 4 {
		s.request(GateTaint).Request.Reason = fmt.Sprint("act ", i)
		s.look()
	}
	acts := s.Spec.Acts
	must.True(t, len(acts) == 16 && acts[0].Reason == "act 4" && acts[15].Reason == "act 19", "on record are %d, from %+v", len(acts), acts[0])
	must.True(t, WasMade(s.Spec, GateTaint, "act 19", "alice"), "a file that is applied again is a new act")
	for _, again := range []v1alpha1.Act{{Gate: GateAttach, Reason: "act 19", By: "alice"}, {Gate: GateTaint, Reason: "because", By: "alice"}, {Gate: GateTaint, Reason: "act 19", By: "bob"}} {
		must.True(t, !WasMade(s.Spec, again.Gate, again.Reason, again.By), "%+v passes for an act on record", again)
	}
}

// goneMachine is fenced, nothing is left on it, and its Node is deleted.
func goneMachine(t *testing.T) *story {
	s := fenced(t)
	s.Policy.GiveUpAfter = time.Hour
	s.deleteNode().look().is(saysGone)
	return s.wantAfter(s.Spec.LostSince.Add(time.Hour).Sub(s.Now))
}

func TestGoneMachineIsGivenUpByConfiguration(t *testing.T) {
	unfenceable := func(s *story) {
		s.Spec.Volumes = append(s.Spec.Volumes, held("pv-2", other, "b"))
		s.look().wantReason(ReasonNoIdentity).pass(time.Hour)
	}
	for name, c := range map[string]struct {
		of      func(*testing.T) *story
		happens func(*story)
		givenUp bool
	}{
		"lost long ago":               {goneMachine, func(s *story) { s.pass(time.Hour) }, true},
		"lost recently":               {goneMachine, func(s *story) { s.pass(58 * time.Minute) }, false},
		"its address taken":           {goneMachine, func(s *story) { s.beside(liveAt("10.0.0.1")) }, false},
		"pods are left":               {goneMachine, func(s *story) { s.pass(time.Hour).Left = []string{"pod default/db"} }, false},
		"its fence fails":             {goneMachine, func(s *story) { s.csiFails("no quorum").look().pass(time.Hour) }, false},
		"its Node exists":             {goneMachine, func(s *story) { s.register("boot-1").loseTainted().pass(time.Hour) }, false},
		"a volume can't be fenced":    {goneMachine, unfenceable, false},
		"never, by the configuration": {goneMachine, func(s *story) { s.pass(1000 * time.Hour).Policy.GiveUpAfter = 0 }, false},
		"it may have booted unseen": {healthy, func(s *story) {
			s.dropUnseen().hold().look().answer().pass(time.Hour).Policy.GiveUpAfter = time.Hour
		}, false},
		"another machine has its name": {goneMachine, func(s *story) { s.replace("machine-2", "192.168.1.2").look().pass(time.Hour) }, true},
		"rebooted meanwhile": {fenced, func(s *story) {
			s.bootUntainted("boot-2").follow().hold(held("pv-1", rbd, "a")).look().dropNode().look().pass(time.Hour).Policy.GiveUpAfter = time.Hour
		}, false},
	} {
		t.Run(name, func(t *testing.T) {
			s := c.of(t).do(c.happens).look()
			if !c.givenUp {
				s.wantThat(len(s.Spec.Acts) == 0 && s.Status.Phase != v1alpha1.NodeUnfencing, "the machine stays fenced")
				return
			}
			s.want(v1alpha1.NodeUnfencing, ReasonUnfencing, `unfencing the node: fencing.giveUp says "it was lost more than 1h0m0s ago"`).wantObjects(unfencedOf1).wantHeld(false)
			s.Left = []string{"pod default/db"} // it is shown for a moment
			s.look().wantObjects(unfencedOf1).answer().answer().wantObjects().wantForgotten()
		})
	}
	t.Run("what the configuration says is no void request of a person", func(t *testing.T) {
		s := fenced(t).pass(2 * time.Hour).hold().drop()
		s.Policy.GiveUpAfter = time.Hour
		n := s.namesakes()
		f := n.Of(0)
		f.Now, f.Policy, f.Fences = s.Now, s.Policy, s.Fences
		step := Next(f)
		must.True(t, step.Void == nil && !step.Consumed, "a request is void: %+v", step.Void)
	})
	// Unfencing waits for another fenced machine of the same address; the volumes are released at once.
	goneMachine(t).beside(sharing("node-2", v1alpha1.FenceFenced)).pass(time.Hour).look().want(v1alpha1.NodeUnfencing, ReasonSharedAddress, keepsOut).wantHeld(false)
}
