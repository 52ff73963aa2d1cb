package validators

import (
	"strings"
	"testing"

	"github.com/fairlead-io/fairlead/api/v1alpha1"
	"github.com/fairlead-io/fairlead/fence"
)

func TestOverridesOfANodesGates(t *testing.T) {
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
		"well formed, allowed and written down": {is: open, warns: `gate attach of node node-1 is open for node-1-2, in your name: the volumes of node node-1 may be attached elsewhere though it is not fenced`},
		"unfence":                               {is: both("unfence: it burnt", record("unfence", "alice", "node-1-2")), warns: "is let in again without having booted anew"},
		"taint":                                 {is: both("taint: it burnt", record("taint", "alice", "node-1-2")), warns: "the out-of-service taint of node node-1 may come and go"},
		"another change while it is open":       {is: open, was: open},
		"another change by whom it is not":      {is: open, was: open, mayNot: true},
		"closed":                                {is: map[string]string{fence.OverriddenAnnotation: mine}, was: open, mayNot: true},
		"without a gate":                        {is: both("it burnt", mine), refused: `must be "<gate>: <reason>", with gate attach`},
		"of no such gate":                       {is: both("everything: it burnt", mine), refused: `must be "<gate>: <reason>"`},
		"without a reason":                      {is: both("attach: ", mine), refused: `must be "<gate>: <reason>"`},
		"empty":                                 {is: map[string]string{fence.OverrideAnnotation: "", fence.OverriddenAnnotation: mine}, was: open, refused: `must be "<gate>: <reason>"`},
		"with a reason too long":                {is: both("attach: "+strings.Repeat("x", 513), mine), refused: "may not be more than 512"},
		"by whom RBAC does not allow it":        {is: open, mayNot: true, refused: `alice may not override gates: that takes the verb "override-gate" on nodefences.fairlead.io`},
		"in another's name":                     {is: both("attach: it burnt", record("attach", "bob", "node-1-2")), refused: "must be as Fairlead's mutating webhook writes it"},
		"of another incident":                   {is: both("attach: it burnt", record("attach", "alice", "node-1-1")), refused: "must be as Fairlead's mutating webhook writes it"},
		"of another gate":                       {is: both("unfence: it burnt", mine), refused: "must be as Fairlead's mutating webhook writes it"},
		"not written down":                      {is: map[string]string{fence.OverrideAnnotation: "attach: it burnt"}, refused: "who overrides the gate was not written down"},
		"used before":                           {is: open, was: map[string]string{fence.OverriddenAnnotation: mine}, refused: "this override was used before: give a new reason"},
		"a record alone":                        {is: map[string]string{fence.OverriddenAnnotation: mine}, refused: "is written by Fairlead and stays for the record"},
		"the record is lost":                    {is: nil, was: open, refused: "is written by Fairlead and stays for the record"},
		"nothing":                               {},
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
		}
	}
}
