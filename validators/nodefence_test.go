package validators

import (
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fairlead-io/fairlead/api/v1alpha1"
	"github.com/fairlead-io/fairlead/internal/fence"
	"github.com/fairlead-io/fairlead/internal/testkit/must"
)

func overrideRecord(gate, by string) string {
	return fence.Request{Gate: gate, By: by, Reason: "it burnt"}.Text()
}

func overrideAnnotations(request, record string) map[string]string {
	return map[string]string{fence.OverrideAnnotation: request, fence.OverriddenAnnotation: record}
}

// requested by alice.
func requested(gate string) map[string]string {
	return overrideAnnotations(gate+": it burnt", overrideRecord(gate, "alice"))
}

// lost is the memory of a lost boot that holds a volume.
func lost() v1alpha1.NodeFenceSpec {
	now := metav1.Now()
	return v1alpha1.NodeFenceSpec{NodeName: "node-1", LostSince: &now, Volumes: []v1alpha1.HeldVolume{{PersistentVolume: "pv-1"}}}
}

func nodeFence(spec v1alpha1.NodeFenceSpec, annotations map[string]string) (n NodeFence) {
	n.Metadata.Name, n.Metadata.Annotations, n.Spec = "node-1-a", annotations, spec
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
	)
	mine, longest := overrideRecord("attach", "alice"), strings.Repeat("x", 512)
	asked, alone := requested("attach"), map[string]string{fence.OverriddenAnnotation: mine}
	carriedOut := []v1alpha1.Act{{Gate: "attach", By: "alice", Reason: "it burnt"}}
	for name, test := range map[string]struct {
		is, was map[string]string
		acts    []v1alpha1.Act
		mayNot  bool
		refused string
		warns   string
	}{
		"attach":                            {is: asked, warns: `gate attach of node node-1 is overridden once, in your name: the volumes of node node-1 may be attached elsewhere although the node is not fenced`},
		"unfence":                           {is: requested("unfence"), warns: "is unfenced without a reboot"},
		"taint":                             {is: requested("taint"), warns: "the out-of-service taint of node node-1 may be added and removed"},
		"another change without permission": {is: asked, was: asked, mayNot: true},
		"taken back without permission":     {was: asked, mayNot: true},
		"taken back, record left":           {is: alone, was: asked, mayNot: true},
		"no gate":                           {is: overrideAnnotations("it burnt", mine), refused: malformed},
		"unknown gate":                      {is: overrideAnnotations("everything: it burnt", mine), refused: malformed},
		"no reason":                         {is: overrideAnnotations("attach: ", mine), refused: malformed},
		"empty":                             {is: overrideAnnotations("", mine), was: asked, refused: malformed},
		"reason too long":                   {is: overrideAnnotations("attach: "+longest+"x", mine), refused: "may not be more than 512"},
		"reason of the greatest length":     {is: overrideAnnotations("attach: "+longest, strings.ReplaceAll(mine, "it burnt", longest)), warns: "gate attach of node node-1 is overridden once"},
		"new request, old record":           {is: overrideAnnotations("attach: again", mine), was: asked, refused: fairleads},
		"user without the verb":             {is: asked, mayNot: true, refused: `alice may not override gates: that takes the verb "override-gate" on nodefences.fairlead.io`},
		"in another user's name":            {is: overrideAnnotations("attach: it burnt", overrideRecord("attach", "bob")), refused: fairleads},
		"of another gate":                   {is: overrideAnnotations("unfence: it burnt", mine), refused: fairleads},
		"not recorded":                      {is: map[string]string{fence.OverrideAnnotation: "attach: it burnt"}, refused: "the override is not recorded"},
		"carried out before":                {is: asked, acts: carriedOut, refused: "the same override was made before (spec.acts): give a new reason"},
		"another gate, carried out before":  {is: requested("unfence"), acts: carriedOut, warns: "is unfenced without a reboot"},
		"nothing":                           {},
	} {
		t.Run(name, func(t *testing.T) {
			spec := lost()
			spec.Acts = test.acts
			old, n := nodeFence(spec, test.was), nodeFence(spec, test.is)
			v := ValidateNodeFence(n, &old, NodeFenceFacts{User: "alice", MayOverride: !test.mayNot})
			checkRefused(t, v, ReasonOverride, test.refused)
			warned := strings.Join(v.Warnings, "; ")
			must.Check(t, strings.Contains(warned, test.warns) && (test.warns == "") == (warned == "") && (v.Reason == ReasonOverridden) == (warned != ""), "%s: warned %q", v.Reason, warned)
		})
	}
}

func TestOnlyTaintIsOverriddenWithoutIncident(t *testing.T) {
	const nothing = "there is nothing to override yet"
	old := nodeFence(v1alpha1.NodeFenceSpec{NodeName: "node-1", Boot: v1alpha1.Boot{BootID: "b"}}, nil)
	for gate, refused := range map[string]string{fence.GateAttach: nothing, fence.GateUnfence: nothing, fence.GateTaint: ""} {
		n := nodeFence(old.Spec, requested(gate))
		checkRefused(t, ValidateNodeFence(n, &old, NodeFenceFacts{User: "alice", MayOverride: true}), ReasonOverride, refused)
		checkRefused(t, ValidateNodeFence(n, &n, NodeFenceFacts{User: "alice"}), "", "") // a request that waits is not judged again
	}
}

func TestRecordBelongsToController(t *testing.T) {
	const record = fence.RecordFinalizer
	const label, node = "metadata.labels[fairlead.io/in-incident]: Forbidden: is written by Fairlead's controller", "metadata.labels[fairlead.io/node]: Forbidden: is written by Fairlead's controller"
	labelled := func(key, value string, finalizers ...string) NodeFence {
		n := nodeFence(lost(), nil)
		n.Spec.LostSince = nil
		n.Metadata.Labels, n.Metadata.Finalizers = map[string]string{key: value, "team": value}, finalizers
		return n
	}
	incident := func(finalizers ...string) NodeFence { return labelled(fence.IncidentLabel, "true", finalizers...) }
	var unlabelled NodeFence
	unlabelled.Spec, unlabelled.Metadata.Finalizers = incident().Spec, incident().Metadata.Finalizers
	forgets := incident()
	forgets.Spec.Volumes = nil
	asks := labelled(fence.IncidentLabel, "")
	asks.Metadata.Annotations = requested("attach")
	for name, test := range map[string]struct {
		is, was NodeFence
		refused string
	}{
		"spec changed":            {is: forgets, was: incident(), refused: "spec: Forbidden: is written by Fairlead's controller, which fences by it"},
		"label changed":           {is: labelled(fence.IncidentLabel, "no", record), was: incident(record), refused: label},
		"label removed":           {is: unlabelled, was: incident(), refused: label},
		"label added":             {is: incident(), was: unlabelled, refused: label},
		"label of another node":   {is: labelled(fence.NodeLabel, "node-2"), was: labelled(fence.NodeLabel, "node-1"), refused: node},
		"label and override":      {is: asks, was: incident(), refused: label},
		"finalizer removed":       {is: incident(), was: incident(record), refused: "metadata.finalizers: Forbidden: belong to Fairlead's controller: fairlead.io/node-fence keeps"},
		"finalizer added":         {is: incident(record), was: incident(), refused: "kubectl annotate nodefence node-1-a "},
		"another finalizer added": {is: incident(record, "others/too"), was: incident(record), refused: "no other finalizer may delay a deletion"},
		"deleted in foreground":   {is: incident(record, metav1.FinalizerDeleteDependents), was: incident(record)},
	} {
		t.Run(name, func(t *testing.T) {
			checkRefused(t, ValidateNodeFence(test.is, &test.was, NodeFenceFacts{User: "alice", MayOverride: true}), ReasonReserved, test.refused)
			test.is.Metadata.Annotations = nil
			checkRefused(t, ValidateNodeFence(test.is, &test.was, NodeFenceFacts{User: "fairlead", Controller: true}), "", "")
		})
	}
	made := incident()
	made.Spec = v1alpha1.NodeFenceSpec{}
	checkRefused(t, ValidateNodeFence(made, nil, NodeFenceFacts{User: "alice"}), ReasonReserved, label)
	checkRefused(t, ValidateNodeFence(made, nil, NodeFenceFacts{User: "alice", MayOverride: true}), "", "") // it is restored from a backup
}

func TestNeededRecordIsNotDeleted(t *testing.T) {
	const mounts, only = "spec.volumes: Forbidden: node node-1 is Ready, and the NodeFence is the only record of mounts", "the NodeFence is the only record of the volumes and fences of node node-1"
	released, fenced, over := lost(), lost(), lost()
	released.Volumes[0].Released = true
	fenced.LostSince, fenced.Fences = nil, []v1alpha1.Fence{{Name: "fairlead-node-1-a", State: v1alpha1.FenceUnfencing}}
	over.LostSince, over.Over, over.Volumes = nil, true, nil
	working := v1alpha1.NodeFenceSpec{NodeName: "node-1", Volumes: []v1alpha1.HeldVolume{{PersistentVolume: "pv-1"}}}
	withholds, moved := working, working
	withholds.Withheld = []string{"pv-1"}
	moved.Identities = []v1alpha1.StorageIdentity{{Addresses: []v1alpha1.ClientAddress{{CIDR: "10.0.0.1/32", Earlier: true}}}}
	for name, test := range map[string]struct {
		spec    v1alpha1.NodeFenceSpec
		refused string
	}{
		"working":                             {working, ""},
		"working, withholds a volume":         {withholds, mounts},
		"working, mounts by an older address": {moved, mounts},
		"lost, holds a volume":                {lost(), only},
		"lost, released by a person":          {released, ""},
		"being unfenced":                      {fenced, only},
		"over, and unfenced":                  {over, ""},
	} {
		t.Run(name, func(t *testing.T) {
			checkRefused(t, ValidateNodeFenceDeletion(nodeFence(test.spec, nil)), ReasonRecordNeeded, test.refused)
		})
	}
}
