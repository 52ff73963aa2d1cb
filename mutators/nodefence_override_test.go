package mutators

import (
	"testing"
	"time"

	"github.com/fairlead-io/fairlead/api/v1alpha1"
	"github.com/fairlead-io/fairlead/internal/fence"
	"github.com/fairlead-io/fairlead/internal/testkit/must"
)

func TestRecordNodeFenceOverride(t *testing.T) {
	noon := time.Date(2026, 11, 21, 12, 0, 0, 500, time.UTC)
	alice := OverrideFacts{User: "alice", Now: noon}
	const incident, burnt = "node-1-2", "attach: it burnt"
	record := func(gate, by, scope string) string {
		return fence.Override{Gate: gate, By: by, Reason: "it burnt", Scope: scope, At: noon.Truncate(time.Second)}.Text()
	}
	both := func(request, record string) map[string]string {
		return map[string]string{fence.OverrideAnnotation: request, fence.OverriddenAnnotation: record}
	}
	requested := func(request string) map[string]string { return map[string]string{fence.OverrideAnnotation: request} }
	mine, earlier := record("attach", "alice", incident), record("attach", "alice", "node-1-1")
	beforeNoon := fence.Override{Gate: "attach", By: "alice", Reason: "it burnt", Scope: incident, At: noon.Add(-time.Hour).Truncate(time.Second)}.Text()
	open, closed := both(burnt, mine), map[string]string{fence.OverriddenAnnotation: mine}
	for name, test := range map[string]struct {
		is, was map[string]string
		want    string // the record afterwards
		outcome Outcome
		reason  string
	}{
		"requested":                      {is: requested(" attach : it burnt "), want: mine, outcome: Mutated, reason: ReasonOverrideRecorded},
		"requested, record forged":       {is: both(burnt, record("attach", "bob", incident)), want: mine, outcome: Mutated, reason: ReasonOverrideRecorded},
		"another gate requested":         {is: both("unfence: it burnt", mine), was: open, want: record("unfence", "alice", incident), outcome: Mutated, reason: ReasonOverrideRecorded},
		"repeated":                       {is: both(burnt, beforeNoon), was: map[string]string{fence.OverriddenAnnotation: beforeNoon}, want: beforeNoon, outcome: Unchanged},
		"repeated in another incident":   {is: both(burnt, earlier), was: map[string]string{fence.OverriddenAnnotation: earlier}, want: mine, outcome: Mutated, reason: ReasonOverrideRecorded},
		"unchanged in another incident":  {is: both(burnt, earlier), was: both(burnt, earlier), want: earlier, outcome: Unchanged},
		"malformed":                      {is: requested("attach"), outcome: Unchanged},
		"unknown gate":                   {is: requested("everything: now"), outcome: Unchanged},
		"removed":                        {is: closed, was: open, want: mine, outcome: Unchanged},
		"object replaced without record": {was: open, want: mine, outcome: Mutated, reason: ReasonOverrideKept},
		"record changed":                 {is: both(burnt, record("attach", "eve", incident)), was: open, want: mine, outcome: Mutated, reason: ReasonOverrideKept},
		"record forged":                  {is: closed, outcome: Mutated, reason: ReasonOverrideKept},
		"nothing":                        {outcome: Unchanged},
	} {
		t.Run(name, func(t *testing.T) {
			var n, old NodeFence
			n.Metadata.Annotations, old.Metadata.Annotations, old.Status = test.is, test.was, v1alpha1.NodeFenceStatus{Phase: v1alpha1.NodeLost, Incident: incident}
			n.Status.Incident = "of the request, not stored"
			result := RecordNodeFenceOverride(n, &old, alice)
			must.True(t, result.Outcome == test.outcome && (result.Reason == test.reason || test.reason == ""), "got %+v", result)
			after := n
			if result.Outcome == Mutated {
				after = view[NodeFence](t, string(apply(t, encode(t, n), result)))
			}
			recorded, is := after.Metadata.Annotations[fence.OverriddenAnnotation]
			must.True(t, recorded == test.want && is == (test.want != ""), "recorded: %q", recorded)
			again := RecordNodeFenceOverride(after, &old, alice)
			must.Check(t, again.Outcome == Unchanged, "applied twice: %+v", again)
		})
	}
}
