package mutators

import (
	"testing"
	"time"

	"github.com/fairlead-io/fairlead/internal/fence"
	"github.com/fairlead-io/fairlead/internal/testkit/must"
)

func TestRecordNodeFenceOverride(t *testing.T) {
	noon := time.Date(2026, 11, 21, 12, 0, 0, 500, time.UTC)
	alice := OverrideFacts{User: "alice", Now: noon}
	const burnt = "attach: it burnt"
	record := func(gate, by string, at time.Time) string {
		return fence.Request{Gate: gate, By: by, Reason: "it burnt", At: at.Truncate(time.Second)}.Text()
	}
	both := func(request, record string) map[string]string {
		return map[string]string{fence.OverrideAnnotation: request, fence.OverriddenAnnotation: record}
	}
	requested := func(request string) map[string]string { return map[string]string{fence.OverrideAnnotation: request} }
	mine, earlier := record("attach", "alice", noon), record("attach", "alice", noon.Add(-time.Hour))
	asked, alone := both(burnt, mine), map[string]string{fence.OverriddenAnnotation: mine}
	for name, test := range map[string]struct {
		is, was map[string]string
		want    string // the record afterwards
		outcome Outcome
		reason  string
	}{
		"requested":                      {is: requested(" attach : it burnt "), want: mine, outcome: Mutated, reason: ReasonOverrideRecorded},
		"requested, record forged":       {is: both(burnt, record("attach", "bob", noon)), want: mine, outcome: Mutated, reason: ReasonOverrideRecorded},
		"another gate requested":         {is: both("unfence: it burnt", mine), was: asked, want: record("unfence", "alice", noon), outcome: Mutated, reason: ReasonOverrideRecorded},
		"unchanged":                      {is: both(burnt, earlier), was: both(burnt, earlier), want: earlier, outcome: Unchanged},
		"malformed":                      {is: requested("attach"), outcome: Unchanged},
		"unknown gate":                   {is: requested("everything: now"), outcome: Unchanged},
		"taken back":                     {was: asked, outcome: Unchanged},
		"taken back, record left":        {is: alone, was: asked, outcome: Mutated, reason: ReasonOverrideKept},
		"object replaced without record": {is: requested(burnt), was: both(burnt, earlier), want: earlier, outcome: Mutated, reason: ReasonOverrideKept},
		"record changed":                 {is: both(burnt, record("attach", "eve", noon)), was: asked, want: mine, outcome: Mutated, reason: ReasonOverrideKept},
		"record forged":                  {is: alone, outcome: Mutated, reason: ReasonOverrideKept},
		"nothing":                        {outcome: Unchanged},
	} {
		t.Run(name, func(t *testing.T) {
			var n, old NodeFence
			n.Metadata.Annotations, old.Metadata.Annotations = test.is, test.was
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
