package mutators

import (
	"testing"
	"time"

	jsonpatch "gopkg.in/evanphx/json-patch.v4"

	"github.com/fairlead-io/fairlead/api/v1alpha1"
	"github.com/fairlead-io/fairlead/internal/fence"
)

func TestRecordNodeFenceOverride(t *testing.T) {
	noon := time.Date(2026, 11, 21, 12, 0, 0, 500, time.UTC)
	alice := OverrideFacts{User: "alice", Now: noon}
	record := func(gate, by, reason, scope string) string {
		return fence.Override{Gate: gate, By: by, Reason: reason, Scope: scope, At: noon.Truncate(time.Second)}.Text()
	}
	both := func(request, record string) map[string]string {
		return map[string]string{fence.OverrideAnnotation: request, fence.OverriddenAnnotation: record}
	}
	lost := v1alpha1.NodeFenceStatus{Phase: v1alpha1.NodeLost, Incident: "node-1-2"}
	mine := record("attach", "alice", "it burnt", "node-1-2")
	for name, test := range map[string]struct {
		is, was map[string]string
		// want is the record afterwards.
		want    string
		outcome Outcome
		reason  string
	}{
		"asked":                             {is: map[string]string{fence.OverrideAnnotation: " attach : it burnt "}, want: mine, outcome: Mutated, reason: ReasonOverrideRecorded},
		"asked, with a record made up":      {is: both("attach: it burnt", record("attach", "bob", "it burnt", "node-1-2")), want: mine, outcome: Mutated, reason: ReasonOverrideRecorded},
		"asked for another gate":            {is: both("unfence: it burnt", mine), was: both("attach: it burnt", mine), want: record("unfence", "alice", "it burnt", "node-1-2"), outcome: Mutated, reason: ReasonOverrideRecorded},
		"asked again, after it was closed":  {is: both("attach: it burnt", mine), was: map[string]string{fence.OverriddenAnnotation: mine}, want: mine, outcome: Unchanged},
		"asked again, in another incident":  {is: both("attach: it burnt", record("attach", "alice", "it burnt", "node-1-1")), was: map[string]string{fence.OverriddenAnnotation: record("attach", "alice", "it burnt", "node-1-1")}, want: mine, outcome: Mutated, reason: ReasonOverrideRecorded},
		"left as it is in another incident": {is: both("attach: it burnt", record("attach", "alice", "it burnt", "node-1-1")), was: both("attach: it burnt", record("attach", "alice", "it burnt", "node-1-1")), want: record("attach", "alice", "it burnt", "node-1-1"), outcome: Unchanged},
		"not well formed":                   {is: map[string]string{fence.OverrideAnnotation: "attach"}, outcome: Unchanged},
		"no such gate":                      {is: map[string]string{fence.OverrideAnnotation: "everything: now"}, outcome: Unchanged},
		"taken away":                        {is: map[string]string{fence.OverriddenAnnotation: mine}, was: both("attach: it burnt", mine), want: mine, outcome: Unchanged},
		"the object is replaced without it": {is: nil, was: both("attach: it burnt", mine), want: mine, outcome: Mutated, reason: ReasonOverrideKept},
		"the record is changed":             {is: both("attach: it burnt", record("attach", "eve", "it burnt", "node-1-2")), was: both("attach: it burnt", mine), want: mine, outcome: Mutated, reason: ReasonOverrideKept},
		"a record out of nothing":           {is: map[string]string{fence.OverriddenAnnotation: mine}, outcome: Mutated, reason: ReasonOverrideKept},
		"nothing":                           {outcome: Unchanged},
	} {
		t.Run(name, func(t *testing.T) {
			var n, old NodeFence
			n.Metadata.Annotations, old.Metadata.Annotations, old.Status = test.is, test.was, lost
			n.Status.Incident = "of the request, which is not stored"
			result := RecordNodeFenceOverride(n, &old, alice)
			if result.Outcome != test.outcome || result.Reason != test.reason && test.reason != "" {
				t.Fatalf("got %+v", result)
			}
			after := applied(t, n, result)
			if got := after.Metadata.Annotations[fence.OverriddenAnnotation]; got != test.want {
				t.Errorf("recorded %s\nwant     %s", got, test.want)
			}
			if again := RecordNodeFenceOverride(after, &old, alice); again.Outcome != Unchanged {
				t.Errorf("applied twice: %+v", again)
			}
		})
	}
}

// applied is the object after the patch.
func applied[V any](t *testing.T, object V, r Result) V {
	t.Helper()
	if len(r.Patch) == 0 {
		return object
	}
	patch, err := jsonpatch.DecodePatch(encode(t, r.Patch))
	if err != nil {
		t.Fatal(err)
	}
	after, err := patch.Apply(encode(t, object))
	if err != nil {
		t.Fatal(err)
	}
	return view[V](t, string(after))
}
