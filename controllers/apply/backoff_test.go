package apply

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/utils/ptr"

	"github.com/fairlead-io/fairlead/internal/settings/catalog"
	"github.com/fairlead-io/fairlead/internal/settings/plan"
)

func TestBackoffGrowsWithEachUndoneChange(t *testing.T) {
	work := func(want string) plan.Work {
		return plan.Work{
			Component: catalog.Component{Name: "im", Version: "7"}, Action: plan.RestartComponent,
			Wants: map[catalog.Trait]plan.Want{catalog.CPURequest: {Text: want}},
		}
	}
	refusal := errors.New("a policy says no")
	for name, test := range map[string]struct {
		made    []plan.Work
		errs    []error
		want    time.Duration
		version string
	}{
		"once":                           {made: []plan.Work{work("1m")}, want: pauses[0], version: "@7"},
		"twice":                          {made: []plan.Work{work("1m"), work("1m")}, want: pauses[1], version: "@7"},
		"for ever":                       {made: slices.Repeat([]plan.Work{work("1m")}, 9), want: pauses[3], version: "@7"},
		"another value in between":       {made: []plan.Work{work("1m"), work("1m"), work("2m"), work("1m")}, want: pauses[0], version: "@7"},
		"refused":                        {made: []plan.Work{work("1m")}, errs: []error{refusal}, want: pauses[0]},
		"refused for ever":               {made: slices.Repeat([]plan.Work{work("1m")}, 4), errs: slices.Repeat([]error{refusal}, 4), want: afterRefusal},
		"refused after a change":         {made: []plan.Work{work("1m"), work("1m")}, errs: []error{nil, refusal}, want: pauses[0]},
		"a change that did not go again": {made: []plan.Work{work("1m"), work("1m")}, errs: []error{refusal, nil}, want: pauses[0], version: "@7"},
	} {
		t.Run(name, func(t *testing.T) {
			var b backoff
			for i, w := range test.made {
				var err error
				if i < len(test.errs) {
					err = test.errs[i]
				}
				b.record(w, plan.Facts{Now: noon}, err)
			}
			if held := b.holds()["im"]; held.Until.Sub(noon) != test.want || held.Seen != test.version {
				t.Errorf("held for %s as of version %q: %s", held.Until.Sub(noon), held.Seen, held.Message)
			}
		})
	}
}

func TestBackoffForgetsOldChanges(t *testing.T) {
	var b backoff
	work := plan.Work{Component: catalog.Component{Name: "im"}, Wants: map[catalog.Trait]plan.Want{catalog.CPURequest: {Text: "1m"}}}
	for range 4 {
		b.record(work, plan.Facts{Now: noon}, nil)
	}
	later := noon.Add(2*pauses[3] + time.Second)
	b.record(work, plan.Facts{Now: later}, nil)
	if got := b.holds()["im"].Until.Sub(later); got != pauses[0] {
		t.Errorf("the next is held for %s", got)
	}
}

// linger has instance manager pods take their time to terminate.
func (w *world) linger() {
	w.Helper()
	for _, name := range []string{"im-node-1", "im-node-2"} {
		if pod := w.pod(name); pod != nil && pod.DeletionTimestamp == nil && len(pod.Finalizers) == 0 {
			pod.Finalizers = []string{"kubernetes.io/kubelet"}
			w.Must(w.API.Update(w.Context(), pod))
		}
	}
}

// terminated are those that were told to, and are gone now.
func (w *world) terminated() {
	w.Helper()
	for _, name := range []string{"im-node-1", "im-node-2"} {
		if pod := w.pod(name); pod != nil && pod.DeletionTimestamp != nil {
			pod.Finalizers = nil
			w.Must(w.API.Update(w.Context(), pod))
		}
	}
}

// Pods that come back as they were are restarted ever more seldom, and the status
// says why. A pod that still terminates is no such pod.
func TestUnchangedPodIsRestartedLessAndLessOften(t *testing.T) {
	w := newWorld(t, setting(class, ""))
	w.comeToRest()
	w.setSystem(class, "high")
	w.stale = ptr.To("") // Longhorn builds with the old value
	restarts, minutes := 0, 0
	for ; minutes < 15; minutes++ {
		for range 6 { // every ten seconds
			w.linger()
			w.step()
			for _, b := range w.status(class).Blockers {
				if pod := w.pod(b.Name); pod != nil && pod.DeletionTimestamp != nil && b.Kind == string(catalog.BlockedByOther) {
					t.Fatalf("a pod that terminates is called a conflict: %s", b.Message)
				}
			}
			w.terminated()
			w.others()
			w.others()
			w.Clock.SetTime(w.Clock.Now().Add(10 * time.Second))
		}
	}
	restarts = len(w.Events.About("Restarted Pod/im-node-1"))
	if restarts < 3 || restarts > 4 { // at 0 s, 10 s, 70 s and 670 s, and each takes a moment
		t.Errorf("%d restarts in %d minutes: %q", restarts, minutes, w.Events.About("Restarted Pod/im-node-1"))
	}
	conflict := func(b string) bool { return strings.Contains(b, "is as it was before Fairlead changed it (") }
	var messages []string
	for _, b := range w.status(class).Blockers {
		messages = append(messages, b.Kind+": "+b.Message)
	}
	if !slices.ContainsFunc(messages, conflict) {
		t.Errorf("it waits for %q", messages)
	}
	w.stale = nil
	for range 90 { // it may be held for an hour
		w.step()
		w.terminated()
		w.others()
		w.others()
		w.Clock.SetTime(w.Clock.Now().Add(time.Minute))
	}
	if !w.status(class).Applied {
		t.Errorf("after Longhorn has heard of the value: %+v", w.status(class))
	}
}
