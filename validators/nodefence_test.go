package validators

import (
	"strings"
	"testing"

	"github.com/fairlead-io/fairlead/api/v1alpha1"
	"github.com/fairlead-io/fairlead/internal/fence"
	"github.com/fairlead-io/fairlead/internal/testkit/must"
)

const incident = "node-1-2"

func overrideRecord(gate, by, scope string) string {
	return fence.Override{Gate: gate, By: by, Reason: "it burnt", Scope: scope}.Text()
}

func overrideAnnotations(request, record string) map[string]string {
	return map[string]string{fence.OverrideAnnotation: request, fence.OverriddenAnnotation: record}
}

// opened by alice for an incident.
func opened(gate, scope string) map[string]string {
	return overrideAnnotations(gate+": it burnt", overrideRecord(gate, "alice", scope))
}

func nodeFence(status v1alpha1.NodeFenceStatus, annotations map[string]string) (n NodeFence) {
	n.Metadata.Name, n.Metadata.Annotations, n.Status = "node-1", annotations, status
	return n
}

func checkRefused(t *testing.T, v Verdict, reason, detail string) {
	t.Helper()
	must.Check(t, (detail != "" || len(v.Problems) == 0) && (detail == "" || len(v.Problems) == 1 && strings.Contains(v.Problems[0].Error(), detail) && v.Reason == reason),
		"got %v (%s), want %q", v.Problems, v.Reason, detail)
}

func TestOverrideOfGates(t *testing.T) {
	const (
		malformed = `must be "<gate>: <reason>", with gate attach`
		fairleads = "is written by Fairlead's mutating webhook"
		isRecord  = "is Fairlead's record of overrides"
	)
	mine, longest := overrideRecord("attach", "alice", incident), strings.Repeat("x", 512)
	open, closed := opened("attach", incident), map[string]string{fence.OverriddenAnnotation: mine}
	for name, test := range map[string]struct {
		is, was map[string]string
		mayNot  bool
		refused string
		warns   string
	}{
		"attach":                            {is: open, warns: `gate attach of node node-1 is open for node-1-2, in your name: the volumes of node node-1 may be attached elsewhere although the node is not fenced`},
		"unfence":                           {is: opened("unfence", incident), warns: "is unfenced without a reboot"},
		"taint":                             {is: opened("taint", incident), warns: "the out-of-service taint of node node-1 may be added and removed"},
		"another change without permission": {is: open, was: open, mayNot: true},
		"closed":                            {is: closed, was: open, mayNot: true},
		"no gate":                           {is: overrideAnnotations("it burnt", mine), refused: malformed},
		"unknown gate":                      {is: overrideAnnotations("everything: it burnt", mine), refused: malformed},
		"no reason":                         {is: overrideAnnotations("attach: ", mine), refused: malformed},
		"empty":                             {is: overrideAnnotations("", mine), was: open, refused: malformed},
		"reason too long":                   {is: overrideAnnotations("attach: "+longest+"x", mine), refused: "may not be more than 512"},
		"reason of the greatest length":     {is: overrideAnnotations("attach: "+longest, strings.ReplaceAll(mine, "it burnt", longest)), warns: "gate attach of node node-1 is open"},
		"new request, old record":           {is: overrideAnnotations("attach: again", mine), was: open, refused: fairleads},
		"user without the verb":             {is: open, mayNot: true, refused: `alice may not override gates: that takes the verb "override-gate" on nodefences.fairlead.io`},
		"in another user's name":            {is: overrideAnnotations("attach: it burnt", overrideRecord("attach", "bob", incident)), refused: fairleads},
		"of another incident":               {is: opened("attach", "node-1-1"), refused: fairleads},
		"of another gate":                   {is: overrideAnnotations("unfence: it burnt", mine), refused: fairleads},
		"not recorded":                      {is: map[string]string{fence.OverrideAnnotation: "attach: it burnt"}, refused: "the override is not recorded"},
		"used before":                       {is: open, was: closed, refused: "the override was used before: give a new reason"},
		"a record alone":                    {is: closed, refused: isRecord},
		"record removed":                    {is: nil, was: open, refused: isRecord},
		"nothing":                           {},
	} {
		t.Run(name, func(t *testing.T) {
			old := nodeFence(v1alpha1.NodeFenceStatus{Phase: v1alpha1.NodeLost, Incident: incident}, test.was)
			n := nodeFence(v1alpha1.NodeFenceStatus{Incident: "of the request, not stored"}, test.is)
			v := ValidateNodeFence(n, &old, NodeFenceFacts{User: "alice", MayOverride: !test.mayNot})
			checkRefused(t, v, ReasonOverride, test.refused)
			warned := strings.Join(v.Warnings, "; ")
			must.Check(t, strings.Contains(warned, test.warns) && (test.warns == "") == (warned == "") && (v.Reason == ReasonOverridden) == (warned != ""), "%s: warned %q", v.Reason, warned)
		})
	}
}

func TestOnlyTaintGateOpensWithoutIncident(t *testing.T) {
	const nothing = "there is nothing to override yet"
	old := nodeFence(v1alpha1.NodeFenceStatus{Phase: v1alpha1.NodeHealthy, Node: v1alpha1.MachineIdentity{BootID: "b"}}, nil)
	for gate, refused := range map[string]string{fence.GateAttach: nothing, fence.GateUnfence: nothing, fence.GateTaint: ""} {
		n := nodeFence(v1alpha1.NodeFenceStatus{Incident: "of the request, not stored"}, opened(gate, "boot b"))
		checkRefused(t, ValidateNodeFence(n, &old, NodeFenceFacts{User: "alice", MayOverride: true}), ReasonOverride, refused)
		checkRefused(t, ValidateNodeFence(n, &n, NodeFenceFacts{User: "alice"}), "", "") // an open gate stays open
	}
}

func TestLabelsAndFinalizerBelongToController(t *testing.T) {
	const label = "metadata.labels[fairlead.io/phase]: Forbidden: is written by Fairlead's controller"
	const record = fence.RecordFinalizer
	labelled := func(label string, finalizers ...string) NodeFence {
		n := nodeFence(v1alpha1.NodeFenceStatus{Phase: v1alpha1.NodeFenced, Incident: incident}, nil)
		n.Metadata.Labels, n.Metadata.Finalizers = map[string]string{fence.PhaseLabel: label, "team": label}, finalizers
		return n
	}
	overridden := func(n NodeFence, fences ...v1alpha1.Fence) NodeFence {
		n.Metadata.Annotations, n.Status.Fences = opened("unfence", incident), fences
		return n
	}
	fenced := overridden(labelled("Fenced", record), v1alpha1.Fence{Name: "fairlead-node-1-a"}, v1alpha1.Fence{Name: "fairlead-node-1-b"})
	unopened := fenced
	unopened.Metadata.Annotations = nil
	var unlabelled NodeFence
	unlabelled.Metadata.Finalizers = []string{"others/too"}
	for name, test := range map[string]struct {
		is, was NodeFence
		refused string
	}{
		"label changed":                        {is: labelled("Healthy", record), was: labelled("Fenced", record), refused: label},
		"label added":                          {is: labelled("Healthy"), refused: label},
		"label removed":                        {is: unlabelled, was: labelled("Fenced"), refused: label},
		"finalizer removed":                    {is: labelled("Fenced"), was: labelled("Fenced", record), refused: "metadata.finalizers: Forbidden: fairlead.io/node-fence belongs to Fairlead's controller"},
		"finalizer added":                      {is: labelled("Fenced", record), was: labelled("Fenced"), refused: "kubectl annotate --overwrite nodefence "},
		"finalizer removed, overridden":        {is: overridden(labelled("Fenced")), was: overridden(labelled("Fenced", record))},
		"finalizer removed, overridden, fence": {is: overridden(labelled("Fenced")), was: fenced, refused: "stays until the node is unfenced (NetworkFence fairlead-node-1-a, fairlead-node-1-b)"},
		"finalizer added, overridden":          {is: overridden(labelled("Fenced", record)), was: overridden(labelled("Fenced")), refused: "belongs to Fairlead's controller"},
		"finalizer removed, fence":             {is: labelled("Fenced"), was: unopened, refused: "belongs to Fairlead's controller"},
		"no finalizer, overridden, fence":      {is: overridden(labelled("Fenced")), was: overridden(labelled("Fenced"), v1alpha1.Fence{Name: "fairlead-node-1-a"})},
		"another finalizer added":              {is: labelled("Fenced", record, "others/too"), was: labelled("Fenced", record)},
	} {
		t.Run(name, func(t *testing.T) {
			checkRefused(t, ValidateNodeFence(test.is, &test.was, NodeFenceFacts{User: "alice", MayOverride: true}), ReasonReserved, test.refused)
			checkRefused(t, ValidateNodeFence(test.is, &test.was, NodeFenceFacts{User: "fairlead", Controller: true}), "", "")
		})
	}
	checkRefused(t, ValidateNodeFence(labelled("Lost"), nil, NodeFenceFacts{User: "alice", MayOverride: true}), ReasonReserved, label)
	was, is := labelled("Fenced"), labelled("Lost")
	is.Metadata.Annotations = opened("attach", incident)
	checkRefused(t, ValidateNodeFence(is, &was, NodeFenceFacts{User: "alice", MayOverride: true}), ReasonReserved, label)
}

func TestRecordOfMountedVolumeIsKept(t *testing.T) {
	n := nodeFence(v1alpha1.NodeFenceStatus{Phase: v1alpha1.NodeHealthy, Volumes: []v1alpha1.HeldVolume{{PersistentVolume: "pv-1", Detached: true}}}, nil)
	checkRefused(t, ValidateNodeFenceDeletion(n), ReasonRecordNeeded, "status.volumes: Forbidden: node node-1 is StillMounted: the NodeFence is the only record")
}

func TestRecordIsKeptDuringIncident(t *testing.T) {
	for _, phase := range []v1alpha1.NodeFencePhase{"", v1alpha1.NodeHealthy, v1alpha1.NodeLost, v1alpha1.NodeFencing, v1alpha1.NodeFenced, v1alpha1.NodeDrained, v1alpha1.NodeReturned, v1alpha1.NodeUnfencing} {
		n := nodeFence(v1alpha1.NodeFenceStatus{Phase: phase, Incident: incident}, nil)
		kept := ""
		if phase != "" && phase != v1alpha1.NodeHealthy {
			kept = "node node-1 is " + string(phase) + ": the NodeFence is the only record"
		}
		checkRefused(t, ValidateNodeFenceDeletion(n), ReasonRecordNeeded, kept)
		for _, gate := range []string{fence.GateUnfence, fence.GateAttach, fence.GateTaint} {
			n.Metadata.Annotations, n.Status.Fences = opened(gate, incident), nil
			withoutFence := kept
			if gate == fence.GateUnfence {
				withoutFence = ""
			}
			checkRefused(t, ValidateNodeFenceDeletion(n), ReasonRecordNeeded, withoutFence)
			// csi-addons still has to unfence the node.
			n.Status.Fences = []v1alpha1.Fence{{Name: "fairlead-node-1-a", State: v1alpha1.FenceUnfencing}}
			v := ValidateNodeFenceDeletion(n)
			must.Check(t, len(v.Problems) == 1 && (gate != fence.GateUnfence && v.Problems[0].Field == "status.phase" || strings.Contains(v.Problems[0].Detail, "(NetworkFence fairlead-node-1-a)")),
				"%s, gate %s, fenced: got %v", phase, gate, v.Problems)
		}
	}
}
