package apply

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/utils/ptr"

	"github.com/fairlead-io/fairlead/api/v1alpha1"
	"github.com/fairlead-io/fairlead/internal/settings/catalog"
	"github.com/fairlead-io/fairlead/internal/settings/planner"
	"github.com/fairlead-io/fairlead/internal/testkit/must"
)

func TestBackoffGrowsWithEachUndoneChange(t *testing.T) {
	work := func(value string) planner.Work {
		return planner.Work{
			Component: catalog.Component{Name: "im", Version: "7"}, Action: planner.RestartComponent,
			Wants: map[catalog.Trait]planner.Want{catalog.CPURequest: {Text: value}},
		}
	}
	// made lists the values, each with "!" if the change was refused.
	for name, test := range map[string]struct {
		made    []string
		want    time.Duration
		version string
	}{
		"once":                   {[]string{"1m"}, pauses[0], "@7"},
		"twice":                  {[]string{"1m", "1m"}, pauses[1], "@7"},
		"many times":             {slices.Repeat([]string{"1m"}, 9), pauses[3], "@7"},
		"other value in between": {[]string{"1m", "1m", "2m", "1m"}, pauses[0], "@7"},
		"refused":                {[]string{"1m!"}, pauses[0], ""},
		"refused many times":     {slices.Repeat([]string{"1m!"}, 4), afterRefusal, ""},
		"refused after a change": {[]string{"1m", "1m!"}, pauses[0], ""},
		"undone after a refusal": {[]string{"1m!", "1m"}, pauses[0], "@7"},
	} {
		t.Run(name, func(t *testing.T) {
			var b backoff
			for _, made := range test.made {
				var err error
				value, refused := strings.CutSuffix(made, "!")
				if refused {
					err = errors.New("a policy says no")
				}
				b.record(work(value), planner.Facts{Now: noon}, err)
			}
			if hold := b.holds()["im"]; hold.Until.Sub(noon) != test.want || hold.Seen != test.version {
				t.Errorf("held for %s as of version %q: %s", hold.Until.Sub(noon), hold.Seen, hold.Message)
			}
		})
	}
	t.Run("forgotten after a while", func(t *testing.T) {
		var b backoff
		for range 4 {
			b.record(work("1m"), planner.Facts{Now: noon}, nil)
		}
		later := noon.Add(2*pauses[3] + time.Second)
		b.record(work("1m"), planner.Facts{Now: later}, nil)
		must.Equal(t, b.holds()["im"].Until.Sub(later), pauses[0], "hold")
	})
}

// setFinalizers changes the instance managers' pods, if they terminate or not.
func (w *world) setFinalizers(terminating bool, finalizers ...string) {
	w.Helper()
	for _, name := range instanceManagers {
		if pod := w.pod(name); pod != nil && (pod.DeletionTimestamp != nil) == terminating {
			pod.Finalizers = finalizers
			w.Must(w.Update(w.Context(), pod))
		}
	}
}

// A pod that is recreated unchanged is restarted at growing intervals. A terminating pod is not unchanged.
func TestUnchangedPodIsRestartedLessAndLessOften(t *testing.T) {
	w := changing(t)
	w.outdated = ptr.To("")
	next := func(after time.Duration) {
		w.step()
		for _, b := range w.status(class).Blockers {
			if pod := w.pod(b.Name); pod != nil && pod.DeletionTimestamp != nil && b.Kind == string(catalog.BlockedByOther) {
				t.Fatalf("a terminating pod is reported as a conflict: %s", b.Message)
			}
		}
		w.setFinalizers(true)
		w.others()
		w.others()
		w.Pass(after)
	}
	for range 90 { // 15 minutes
		w.setFinalizers(false, "kubernetes.io/kubelet")
		next(10 * time.Second)
	}
	if got := w.Events.About("Restarted Pod/im-node-1"); len(got) < 3 || len(got) > 4 { // at 0 s, 10 s, 70 s and 670 s, and each takes a moment
		t.Errorf("%d restarts in 15 minutes: %q", len(got), got)
	}
	conflict := func(b v1alpha1.Blocker) bool {
		return strings.Contains(b.Message, "is as it was before Fairlead changed it (")
	}
	blockers := w.status(class).Blockers
	must.Check(t, slices.ContainsFunc(blockers, conflict), "waits for %+v", blockers)
	w.outdated = nil
	for range 90 { // the pod may be held for an hour
		next(time.Minute)
	}
	must.Check(t, w.status(class).Applied, "after Longhorn has the value: %+v", w.status(class))
}
