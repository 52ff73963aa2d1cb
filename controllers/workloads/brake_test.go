package workloads

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fairlead-io/fairlead/api/v1alpha1"
	"github.com/fairlead-io/fairlead/internal/cluster"
	"github.com/fairlead-io/fairlead/internal/cluster/longhorn"
	"github.com/fairlead-io/fairlead/internal/storage"
)

func TestBrakeAllowsAShareInAMinute(t *testing.T) {
	noon := time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	for name, test := range map[string]struct{ workloads, percent, want int }{
		"each once":                       {40, 100, 40},
		"half of them":                    {80, 50, 40},
		"a share below what is allowed":   {80, 1, alwaysAllowed},
		"a cluster of few workloads":      {3, 100, alwaysAllowed},
		"workloads that are not known of": {0, 100, alwaysAllowed},
	} {
		t.Run(name, func(t *testing.T) {
			var b brake
			evict := func(now time.Time) int {
				for n := 0; ; n++ {
					allowed, err := b.allows(now, test.percent, func() (int, error) { return test.workloads, nil })
					if err != nil {
						t.Fatal(err)
					}
					if !allowed {
						return n
					}
				}
			}
			if got := evict(noon); got != test.want {
				t.Errorf("in the first minute: got %d, want %d", got, test.want)
			}
			if got := evict(noon.Add(brakeWindow - time.Nanosecond)); got != 0 {
				t.Errorf("in the same minute: got %d more", got)
			}
			b.giveBack()
			if got := evict(noon.Add(brakeWindow - time.Nanosecond)); got != 1 {
				t.Errorf("one did not take place: got %d more", got)
			}
			b.release()
			if got := evict(noon.Add(brakeWindow - time.Nanosecond)); got != test.want {
				t.Errorf("released: got %d, want %d", got, test.want)
			}
			if got := evict(noon.Add(2 * brakeWindow)); got != test.want {
				t.Errorf("in another minute: got %d, want %d", got, test.want)
			}
		})
	}
}

// using is a volume that so many workloads use, by Longhorn's own count.
func using(workloads int) func(*world) {
	return func(w *world) {
		v := &longhorn.Volume{ObjectMeta: metav1.ObjectMeta{Namespace: longhornProfile.Namespace, Name: "v-shared"}, Spec: longhorn.VolumeSpec{AccessMode: "rwx"}}
		v.Status.State, v.Status.CurrentNodeID = "attached", "node-1"
		for i := range workloads {
			v.Status.KubernetesStatus.WorkloadsStatus = append(v.Status.KubernetesStatus.WorkloadsStatus, longhorn.WorkloadStatus{PodName: fmt.Sprint(i)})
		}
		w.put(v)
	}
}

// storm is a node with more workloads than may be restarted in a minute.
func storm(t *testing.T) *world {
	w := atRest(t, stateful(alwaysAllowed+5), using(64))
	w.reconciler.MaxPercent = 50
	w.newSandbox("node-1")
	for range 4 {
		w.look()
		for _, name := range w.leavers() {
			w.vacate(w.slot(name))
		}
		w.now = w.now.Add(pace)
	}
	w.look()
	return w
}

func (w *world) rollout() *v1alpha1.NetworkRollout {
	w.Helper()
	var rollout v1alpha1.NetworkRollout
	w.must(w.reconciler.Live.Get(context.Background(), cluster.RolloutKey(longhornProfile), &rollout))
	return &rollout
}

func TestTooManyRestartsPauseUntilAnOperatorResumes(t *testing.T) {
	w := storm(t)
	if got := len(w.evicted); got != 32 {
		t.Fatalf("%d of 64 workloads were restarted, want half", got)
	}
	if w.rollout().Annotations[storage.RestartsAnnotation] != storage.RestartsPaused {
		t.Fatal("the pause is not written down")
	}
	if !slices.ContainsFunc(w.notes, func(n string) bool {
		return strings.HasPrefix(n, "RestartsPaused: more than 50% of the workloads with RWX volumes") && strings.HasSuffix(n, "until annotation fairlead.io/workload-restarts is removed from NetworkRollout longhorn")
	}) {
		t.Fatalf("got %q", w.notes)
	}
	if w.gauge("fairlead_workload_restarts_paused", "") != 1 || w.gauge("fairlead_dead_mounts", storage.ReasonPaused) != 3 {
		t.Fatal("the pause is not counted")
	}
	// Neither time nor another leader ends the pause.
	w.now = w.now.Add(time.Hour)
	w.restart()
	w.look()
	if got := len(w.evicted); got != 32 {
		t.Fatalf("%d workloads were restarted after the pause began", got)
	}
	rollout := w.rollout()
	rollout.Annotations = nil
	w.put(rollout)
	w.look()
	if got := len(w.evicted); got != alwaysAllowed+5 {
		t.Fatalf("%d workloads were restarted, want all", got)
	}
	if w.gauge("fairlead_workload_restarts_paused", "") != 0 {
		t.Fatal("the pause is still counted")
	}
}

// What is counted in the last minute does not outlive a pause that was ended.
func TestResumedRestartsAreCountedAgain(t *testing.T) {
	w := storm(t)
	rollout := w.rollout()
	rollout.Annotations = nil
	w.put(rollout)
	w.look()
	if got := len(w.evicted); got != alwaysAllowed+5 {
		t.Fatalf("%d workloads were restarted, want all", got)
	}
}

// Ten controllers, each of whose pods is restarted five times, and none waits for
// its turn: one list and one note for a node, one event for a controller.
func TestEvictionCostsFewRequests(t *testing.T) {
	w := atRest(t, stateful(10), using(50))
	before := w.requests
	for range 5 {
		w.newSandbox("node-1")
		for range 6 { // of two seconds
			w.goWell()
		}
	}
	if got := float64(w.requests-before) / float64(len(w.evicted)); len(w.evicted) != 50 || got > 1.5 {
		t.Fatalf("%d evictions at %.2f requests each", len(w.evicted), got)
	}
}
