package workloads

import (
	"testing"
	"time"

	"github.com/fairlead-io/fairlead/internal/rwx"
	"github.com/fairlead-io/fairlead/internal/testkit"
	"github.com/fairlead-io/fairlead/internal/testkit/must"
)

func TestBrakeAllowsAShareInAMinute(t *testing.T) {
	for name, test := range map[string]struct{ workloads, percent, want, later, wantLater int }{
		"each workload once":          {40, 100, 40, 40, 40},
		"half of the workloads":       {80, 50, 40, 80, 40},
		"share below the fixed count": {80, 1, alwaysAllowed, 80, alwaysAllowed},
		"few workloads":               {3, 100, alwaysAllowed, 3, alwaysAllowed},
		"unknown workloads":           {0, 100, alwaysAllowed, 0, alwaysAllowed},
		"more workloads later":        {40, 100, 40, 50, 50},
		"fewer workloads later":       {50, 100, 50, 40, 40},
	} {
		t.Run(name, func(t *testing.T) {
			var b brake
			want := func(when string, now time.Time, workloads, want int) {
				t.Helper()
				got := 0
				for testkit.Value[bool](t)(b.allows(now, test.percent, func() (int, error) { return workloads, nil })) {
					b.count(now)
					got++
				}
				must.Equal(t, got, want, "%s", when)
			}
			lastMoment := testkit.Noon.Add(brakeWindow - time.Nanosecond)
			want("in the first minute", testkit.Noon, test.workloads, test.want)
			want("later in the same minute", lastMoment, test.workloads, 0)
			b.release()
			want("after the release", lastMoment, test.workloads, test.want)
			want("in another minute", testkit.Noon.Add(2*brakeWindow), test.later, test.wantLater)
		})
	}
}

// storm is a node with more dead mounts than may be restarted in a minute.
func storm(t *testing.T) *world {
	w := atRest(t, stateful(alwaysAllowed+5), using(64))
	w.reconciler.MaxPercent = 50
	w.newSandbox("node-1")
	for range 4 {
		w.reconcile()
		for _, name := range w.terminating() {
			w.vacate(w.slot(name))
		}
		w.Step(pace)
	}
	w.wantEvicted(32)
	return w
}

func (w *world) wantEvicted(want int) {
	w.Helper()
	w.reconcile()
	got := len(w.evicted)
	must.True(w, got == want, "evicted %d pods, want %d", got, want)
}

func TestTooManyRestartsPauseUntilAnOperatorResumes(t *testing.T) {
	w := storm(t)
	must.True(t, w.rollout().Annotations[rwx.RestartsAnnotation] == rwx.RestartsPaused, "the pause is not recorded")
	const paused = "RestartsPaused NetworkRollout/longhorn: restarts of workloads are paused: within a minute, 32 pods were evicted because of dead mounts, and more have one. " +
		"The limit is 50% of the 64 workloads with RWX volumes, at least 30. Find out why CSI plugin pods restart. To resume, remove annotation fairlead.io/workload-restarts from NetworkRollout longhorn"
	must.True(t, len(w.Events.About(paused)) != 0, "got %q", w.Events.Notes())
	w.wantMetric(1, "fairlead_workload_restarts_paused", "")
	w.wantMetric(3, "fairlead_dead_mounts", rwx.ReasonPaused)
	w.Step(time.Hour)
	w.restart()
	w.wantEvicted(32) // neither time nor another leader ends the pause
	w.resume()
	w.wantMetric(0, "fairlead_workload_restarts_paused", "")
}

// resume lets an operator resume restarts: evictions of the last minute count no more.
func (w *world) resume() {
	rollout := w.rollout()
	rollout.Annotations = nil
	w.put(rollout)
	w.wantEvicted(alwaysAllowed + 5)
}

func TestResumedRestartsAreCountedAgain(t *testing.T) { storm(t).resume() }

// The pods of ten controllers are restarted five times, without a wait for a turn:
// one list and one note for a node, one event for a controller.
func TestEvictionCostsFewRequests(t *testing.T) {
	w := atRest(t, stateful(10), using(50))
	before := w.requestCount()
	for range 5 {
		w.newSandbox("node-1")
		for range 6 {
			w.settle()
		}
	}
	got := float64(w.requestCount()-before) / float64(len(w.evicted))
	must.True(t, len(w.evicted) == 50 && got <= 1.5, "%d evictions at %.2f requests each", len(w.evicted), got)
}
