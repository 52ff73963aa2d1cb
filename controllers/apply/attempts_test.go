package apply

import (
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/utils/ptr"

	"github.com/fairlead-io/fairlead/settings"
)

// fight has somebody write the Deployment back after each write, and returns
// when it was written, counted from the first.
func fight(w *world, during time.Duration) (times []time.Duration) {
	w.Helper()
	for end := w.clock.Now().Add(during); w.clock.Now().Before(end); {
		before := len(w.wrote)
		result := w.step()
		if did := w.wrote[before:]; slices.Contains(did, "patch v1.Deployment/csi-attacher") {
			times = append(times, w.clock.Now().Sub(noon))
			d := w.deployment()
			d.Spec.Template.Spec.PriorityClassName = "theirs"
			w.must(w.store.Update(w.Context(), d))
			w.others()
			result.RequeueAfter = time.Millisecond
		} else if !w.others() && len(did) == 0 && result.RequeueAfter == 0 {
			w.Fatal("nobody looks again")
		}
		w.clock.SetTime(w.clock.Now().Add(min(max(result.RequeueAfter, time.Millisecond), time.Minute)))
	}
	return times
}

func TestNobodyIsFought(t *testing.T) {
	w := newWorld(t, setting(class, ""))
	w.comeToRest()
	w.clock.SetTime(noon)
	w.setSystem(class, "high")
	times := fight(w, 3*time.Hour)
	var seconds []int
	for _, at := range times {
		seconds = append(seconds, int(at.Round(time.Second).Seconds()))
	}
	if want := []int{0, 10, 70, 670, 4270, 7870}; !slices.Equal(seconds, want) {
		t.Errorf("it is written after %v s, not %v", seconds, want)
	}
	if got := w.told("StoodDown"); len(got) != 1 || !strings.Contains(got[0], "Warning StoodDown *v1alpha1.Setting/priority-class: Deployment csi-attacher is as it was before Fairlead brought it in line 3 times: somebody else writes it") {
		t.Errorf("it is said %q", got)
	}
	if got := w.metric("fairlead_components_stood_down"); got != 1 {
		t.Errorf("%v stood down", got)
	}
	// All else goes on, and what is not in line is named.
	if w.pod("im-node-1").Spec.PriorityClassName != "high" || w.daemonSet("engine-image-ei-1").Spec.Template.Spec.PriorityClassName != "high" {
		t.Error("the rest is not rolled out")
	}
	got := w.status(class)
	if got.Applied || got.Conditions[0].Reason != "Waiting" || len(got.Blockers) != 1 || got.Blockers[0].Kind != "Conflict" || !strings.Contains(got.Conditions[0].Message, "Deployment csi-attacher") {
		t.Errorf("got %+v", got)
	}
	if w.system(class).Status.Applied {
		t.Error("Longhorn's says that it is applied")
	}

	t.Run("another value is tried at once, and counted anew", func(t *testing.T) {
		w.setSystem(class, "higher")
		before := w.clock.Now()
		if times := fight(w, time.Minute/2); len(times) != 2 || times[0] > before.Sub(noon)+time.Second {
			t.Errorf("at %s it is written after %v", before.Sub(noon), times)
		}
		if got := w.metric("fairlead_components_stood_down"); got != 0 {
			t.Errorf("%v stood down", got)
		}
	})
	t.Run("what they write is what is wanted", func(t *testing.T) {
		w.setSystem(class, "theirs")
		w.comeToRest()
		w.must(w.allOf("theirs"))
		if !w.status(class).Applied {
			t.Error("it is not applied")
		}
	})
	t.Run("what is long ago is forgotten", func(t *testing.T) {
		w.clock.SetTime(w.clock.Now().Add(forgotten + time.Second))
		w.step()
		if len(w.r.attempts) > 0 {
			t.Errorf("it remembers %v", w.r.attempts)
		}
	})
}

// A manager that has not heard of the change makes the pod as it was.
func TestAPodThatComesBackAsItWasIsRestartedLater(t *testing.T) {
	w := newWorld(t, setting(class, ""))
	w.comeToRest()
	w.setSystem(class, "high")
	w.stale = ptr.To("")
	begun := w.clock.Now()
	for len(w.told("Restarted")) < 1 {
		w.step()
		w.others()
	}
	w.others()
	w.others()
	result := w.step()
	if got := w.status(class).Conditions[0].Message; result.RequeueAfter <= 0 || result.RequeueAfter > 10*time.Second {
		t.Errorf("it looks again after %s: %s", result.RequeueAfter, got)
	}
	// The other is not kept from its turn.
	if got := w.told("Restarted *v1.Pod/im-node-2"); len(got) != 1 {
		t.Errorf("events %q", w.events)
	}
	w.stale = nil
	for len(w.told("Restarted *v1.Pod/im-node-1")) < 2 {
		w.clock.SetTime(w.clock.Now().Add(time.Second))
		w.step()
		w.others()
	}
	if after := w.clock.Now().Sub(begun); after < 10*time.Second || after > 12*time.Second {
		t.Errorf("it is restarted again after %s", after)
	}
	w.comeToRest()
	if !w.status(class).Applied {
		t.Error("it is not applied")
	}
}

// A value that comes while components are still remembered does not wait for that.
func TestAHoldIsForWhatWasUndone(t *testing.T) {
	w := newWorld(t, setting(class, ""), setting(settings.TaintToleration, ""))
	w.comeToRest()
	begun := w.clock.Now()
	w.setSystem(class, "high")
	for range 20 {
		w.step()
		w.others()
	}
	w.must(w.allOf("high"))
	w.setSystem(settings.TaintToleration, "a:NoSchedule")
	w.setSystem(class, "higher")
	for range 10 {
		w.step()
		w.others()
	}
	if d := w.deployment(); d.Spec.Template.Spec.PriorityClassName != "higher" || len(d.Spec.Template.Spec.Tolerations) != 1 || w.clock.Now() != begun {
		t.Errorf("it waits: %+v", d.Spec.Template.Spec)
	}
}
