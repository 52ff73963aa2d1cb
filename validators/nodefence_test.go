package validators

import (
	"strings"
	"testing"

	"github.com/fairlead-io/fairlead/api/v1alpha1"
	"github.com/fairlead-io/fairlead/internal/fence"
)

func TestOverrideOfGates(t *testing.T) {
	lost := v1alpha1.NodeFenceStatus{Phase: v1alpha1.NodeLost, Incident: "node-1-2"}
	record := func(gate, by, scope string) string {
		return fence.Override{Gate: gate, By: by, Reason: "it burnt", Scope: scope}.Text()
	}
	both := func(request, record string) map[string]string {
		return map[string]string{fence.OverrideAnnotation: request, fence.OverriddenAnnotation: record}
	}
	mine := record("attach", "alice", "node-1-2")
	open := both("attach: it burnt", mine)
	for name, test := range map[string]struct {
		is, was map[string]string
		mayNot  bool
		refused string
		warns   string
	}{
		"well formed, allowed and recorded": {is: open, warns: `gate attach of node node-1 is open for node-1-2, in your name: the volumes of node node-1 may be attached elsewhere although the node is not fenced`},
		"unfence":                           {is: both("unfence: it burnt", record("unfence", "alice", "node-1-2")), warns: "is unfenced without a reboot"},
		"taint":                             {is: both("taint: it burnt", record("taint", "alice", "node-1-2")), warns: "the out-of-service taint of node node-1 may be added and removed"},
		"another change while it is open":   {is: open, was: open},
		"another change without permission": {is: open, was: open, mayNot: true},
		"closed":                            {is: map[string]string{fence.OverriddenAnnotation: mine}, was: open, mayNot: true},
		"without a gate":                    {is: both("it burnt", mine), refused: `must be "<gate>: <reason>", with gate attach`},
		"of no such gate":                   {is: both("everything: it burnt", mine), refused: `must be "<gate>: <reason>"`},
		"without a reason":                  {is: both("attach: ", mine), refused: `must be "<gate>: <reason>"`},
		"empty":                             {is: map[string]string{fence.OverrideAnnotation: "", fence.OverriddenAnnotation: mine}, was: open, refused: `must be "<gate>: <reason>"`},
		"with a reason too long":            {is: both("attach: "+strings.Repeat("x", 513), mine), refused: "may not be more than 512"},
		"by a user without the verb":        {is: open, mayNot: true, refused: `alice may not override gates: that takes the verb "override-gate" on nodefences.fairlead.io`},
		"in another's name":                 {is: both("attach: it burnt", record("attach", "bob", "node-1-2")), refused: "is written by Fairlead's mutating webhook"},
		"of another incident":               {is: both("attach: it burnt", record("attach", "alice", "node-1-1")), refused: "is written by Fairlead's mutating webhook"},
		"of another gate":                   {is: both("unfence: it burnt", mine), refused: "is written by Fairlead's mutating webhook"},
		"not recorded":                      {is: map[string]string{fence.OverrideAnnotation: "attach: it burnt"}, refused: "the override is not recorded"},
		"used before":                       {is: open, was: map[string]string{fence.OverriddenAnnotation: mine}, refused: "this override was used before: give a new reason"},
		"a record alone":                    {is: map[string]string{fence.OverriddenAnnotation: mine}, refused: "is written by Fairlead and stays for the record"},
		"the record is lost":                {is: nil, was: open, refused: "is written by Fairlead and stays for the record"},
		"nothing":                           {},
	} {
		t.Run(name, func(t *testing.T) {
			var n, old NodeFence
			n.Metadata.Name, n.Metadata.Annotations, n.Status = "node-1", test.is, v1alpha1.NodeFenceStatus{Incident: "made up"}
			old.Metadata.Annotations, old.Status = test.was, lost
			v := ValidateNodeFence(n, &old, NodeFenceFacts{User: "alice", MayOverride: !test.mayNot})
			if test.refused == "" {
				if len(v.Problems) > 0 {
					t.Fatalf("refused: %v", v.Problems)
				}
				if warned := strings.Join(v.Warnings, "; "); !strings.Contains(warned, test.warns) || (test.warns == "") != (warned == "") {
					t.Fatalf("warned %q", warned)
				}
				return
			}
			if len(v.Problems) != 1 || !strings.Contains(v.Problems[0].Error(), test.refused) || v.Reason != ReasonOverride {
				t.Fatalf("got %v", v.Problems)
			}
		})
	}
}

func TestOnlyTaintGateOpensWithoutIncident(t *testing.T) {
	for gate, refused := range map[string]bool{fence.GateAttach: true, fence.GateUnfence: true, fence.GateTaint: false} {
		var n, old NodeFence
		old.Status = v1alpha1.NodeFenceStatus{Phase: v1alpha1.NodeHealthy, Node: v1alpha1.MachineIdentity{BootID: "b"}}
		n.Metadata.Name, n.Status = "node-1", v1alpha1.NodeFenceStatus{Incident: "made up"}
		n.Metadata.Annotations = map[string]string{
			fence.OverrideAnnotation:   gate + ": it burnt",
			fence.OverriddenAnnotation: fence.Override{Gate: gate, By: "alice", Reason: "it burnt", Scope: "boot b"}.Text(),
		}
		v := ValidateNodeFence(n, &old, NodeFenceFacts{User: "alice", MayOverride: true})
		if refused != (len(v.Problems) == 1) || refused && !strings.Contains(v.Problems[0].Error(), "there is nothing to override yet") {
			t.Errorf("%s: got %v", gate, v.Problems)
		}
		// One that was opened before stays, and may be taken away.
		if v := ValidateNodeFence(n, &n, NodeFenceFacts{User: "alice"}); len(v.Problems) > 0 {
			t.Errorf("%s, as it was: got %v", gate, v.Problems)
		}
	}
}

func TestLabelsAndFinalizerBelongToController(t *testing.T) {
	made := func(label string, finalizers ...string) (n NodeFence) {
		n.Metadata.Name, n.Metadata.Labels, n.Metadata.Finalizers = "node-1", map[string]string{fence.PhaseLabel: label, "team": label}, finalizers
		n.Status = v1alpha1.NodeFenceStatus{Phase: v1alpha1.NodeFenced, Incident: "node-1-1"}
		return n
	}
	record := fence.RecordFinalizer
	unfence := made("Fenced", record)
	unfence.Metadata.Annotations = map[string]string{
		fence.OverrideAnnotation:   "unfence: it burnt",
		fence.OverriddenAnnotation: fence.Override{Gate: "unfence", By: "alice", Reason: "it burnt", Scope: "node-1-1"}.Text(),
	}
	given := made("Fenced")
	given.Metadata.Annotations = unfence.Metadata.Annotations
	stands, done := unfence, given
	stands.Status.Fences = []v1alpha1.Fence{{Name: "fairlead-node-1-a"}, {Name: "fairlead-node-1-b"}}
	var unlabelled NodeFence
	unlabelled.Metadata.Finalizers = []string{"others/too"}
	for name, test := range map[string]struct {
		is, was NodeFence
		refused string
	}{
		"the label is changed":                     {is: made("Healthy", record), was: made("Fenced", record), refused: "metadata.labels[fairlead.io/phase]: Forbidden: is written by Fairlead's controller"},
		"the label comes":                          {is: made("Healthy"), was: NodeFence{}, refused: "is written by Fairlead's controller"},
		"the label goes":                           {is: unlabelled, was: made("Fenced"), refused: "is written by Fairlead's controller"},
		"the finalizer is taken":                   {is: made("Fenced"), was: made("Fenced", record), refused: "metadata.finalizers: Forbidden: fairlead.io/node-fence belongs to Fairlead's controller"},
		"the finalizer is given":                   {is: made("Fenced", record), was: made("Fenced"), refused: "kubectl annotate --overwrite nodefence "},
		"the finalizer is taken, with an override": {is: given, was: unfence},
		"the finalizer is taken while fences stand, with an override": {is: done, was: stands,
			refused: "stays until the node is unfenced (NetworkFence fairlead-node-1-a, fairlead-node-1-b)"},
		"another finalizer comes": {is: made("Fenced", record, "others/too"), was: made("Fenced", record)},
		"nothing of it":           {is: made("Fenced", record), was: made("Fenced", record)},
	} {
		v := ValidateNodeFence(test.is, &test.was, NodeFenceFacts{User: "alice", MayOverride: true})
		if test.refused == "" && len(v.Problems) > 0 || test.refused != "" && (len(v.Problems) != 1 || !strings.Contains(v.Problems[0].Error(), test.refused) || v.Reason != ReasonNotTheirs) {
			t.Errorf("%s: got %v (%s)", name, v.Problems, v.Reason)
		}
		if v := ValidateNodeFence(test.is, &test.was, NodeFenceFacts{User: "fairlead", Controller: true}); len(v.Problems) > 0 {
			t.Errorf("%s, by the controller: got %v", name, v.Problems)
		}
	}
	if v := ValidateNodeFence(made("Lost"), nil, NodeFenceFacts{User: "alice", MayOverride: true}); len(v.Problems) != 1 {
		t.Errorf("created with a label: got %v", v.Problems)
	}
}

func TestANodeInAnIncidentIsNotForgotten(t *testing.T) {
	for _, phase := range []v1alpha1.NodeFencePhase{"", v1alpha1.NodeHealthy, v1alpha1.NodeLost, v1alpha1.NodeFencing, v1alpha1.NodeFenced, v1alpha1.NodeDrained, v1alpha1.NodeReturned, v1alpha1.NodeUnfencing} {
		var n NodeFence
		n.Metadata.Name, n.Status.Phase, n.Status.Incident = "node-1", phase, "node-1-1"
		forgotten := phase == "" || phase == v1alpha1.NodeHealthy
		if v := ValidateNodeFenceDeletion(n); len(v.Problems) == 0 != forgotten {
			t.Errorf("%s: got %v", phase, v.Problems)
		}
		for gate, opens := range map[string]bool{fence.GateUnfence: true, fence.GateAttach: false, fence.GateTaint: false} {
			n.Metadata.Annotations = map[string]string{
				fence.OverrideAnnotation:   gate + ": it burnt",
				fence.OverriddenAnnotation: fence.Override{Gate: gate, By: "alice", Reason: "it burnt", Scope: "node-1-1"}.Text(),
			}
			if v := ValidateNodeFenceDeletion(n); len(v.Problems) == 0 != (opens || forgotten) {
				t.Errorf("%s, gate %s overridden: got %v", phase, gate, v.Problems)
			}
			// The gate does not forget for csi-addons what it has still to take back.
			fenced := n
			fenced.Status.Fences = []v1alpha1.Fence{{Name: "fairlead-node-1-a", State: v1alpha1.FenceUnfencing}}
			v := ValidateNodeFenceDeletion(fenced)
			if len(v.Problems) == 0 {
				t.Errorf("%s, gate %s overridden, a fence stands: may be deleted", phase, gate)
			} else if says := v.Problems[0].Error(); opens && (!strings.Contains(says, "(NetworkFence fairlead-node-1-a)") || !strings.Contains(says, "kubectl get nodefence node-1")) {
				t.Errorf("%s: says %s", phase, says)
			}
		}
	}
}
