package apply

import (
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fairlead-io/fairlead/cluster/longhorn"
	"github.com/fairlead-io/fairlead/settings"
)

// linger has instance manager pods take their time to terminate.
func (w *world) linger() {
	w.Helper()
	for _, name := range []string{"im-node-1", "im-node-2"} {
		if pod := w.pod(name); pod != nil && pod.DeletionTimestamp == nil && len(pod.Finalizers) == 0 {
			pod.Finalizers = []string{"kubernetes.io/kubelet"}
			w.must(w.store.Update(w.Context(), pod))
		}
	}
}

// terminated are those that were told to, and are gone now.
func (w *world) terminated() {
	w.Helper()
	for _, name := range []string{"im-node-1", "im-node-2"} {
		if pod := w.pod(name); pod != nil && pod.DeletionTimestamp != nil {
			pod.Finalizers = nil
			w.must(w.store.Update(w.Context(), pod))
		}
	}
}

// restartPods has pods come back as they were until one was restarted so often;
// mended, that one and those after it come back as they should.
func restartPods(w *world, times int, mended bool) {
	w.Helper()
	for done := 0; done < times; {
		w.linger()
		w.step()
		w.step() // while it terminates
		done = len(w.told("Restarted *v1.Pod/im-node-1"))
		if done == times && mended {
			w.stale = nil
		}
		w.terminated()
		w.others()
		w.others()
		w.linger()
		result := w.step()
		w.clock.SetTime(w.clock.Now().Add(min(max(result.RequeueAfter, time.Second), time.Minute)))
	}
}

// Regression: while the third restart was under way, it was said that Fairlead
// stands down since the pod is being restarted; what is to be said was not said after.
func TestAPodThatIsBeingRestartedIsNoFight(t *testing.T) {
	for name, mended := range map[string]bool{"the third restart helps": true, "it does not": false} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, setting(class, ""))
			w.comeToRest()
			w.setSystem(class, "high")
			w.stale = ptr.To("")
			restartPods(w, standsDownAt, mended)
			for range 5 {
				w.step()
				w.terminated()
				w.others()
			}
			got := w.told("StoodDown")
			if said := slices.ContainsFunc(got, func(e string) bool {
				return strings.Contains(e, "instance manager im-node-1 is as it was before Fairlead brought it in line 3 times: somebody else writes it")
			}); said == mended || mended && len(got) > 0 || slices.ContainsFunc(got, func(e string) bool { return strings.Contains(e, "being") }) {
				t.Errorf("it is said %q", got)
			}
			if down := w.metric("fairlead_components_stood_down"); down > 0 == mended {
				t.Errorf("%v are counted", down)
			}
			if applied := w.status(class).Applied; applied != mended {
				t.Errorf("applied %t: %+v", applied, w.status(class))
			}
		})
	}
}

// turnOff switches the data engine off, and returns what is waited for while its
// pods terminate; then it has them be gone.
func turnOff(w *world) (blockers []string) {
	w.Helper()
	w.linger()
	w.setSystem(settings.V1DataEngine, "false")
	for range 8 {
		w.step()
		for _, b := range w.status(settings.V1DataEngine).Blockers {
			blockers = append(blockers, b.Kind+": "+b.Message)
		}
		w.clock.SetTime(w.clock.Now().Add(statusEvery))
	}
	for _, name := range []string{"im-node-1", "im-node-2"} {
		if pod := w.pod(name); pod != nil && w.manager(name) == nil {
			pod.Finalizers = nil
			w.must(w.store.Update(w.Context(), pod))
			w.must(w.store.Delete(w.Context(), pod, client.Preconditions{UID: &pod.UID}))
		}
	}
	w.step()
	return blockers
}

// Regression: the pod of an instance manager that is removed is still there for
// a while, as it was: that was called somebody else's writing.
func TestAPodThatIsBeingRemovedIsNoFight(t *testing.T) {
	w := newWorld(t, setting(settings.V1DataEngine, "true"))
	w.comeToRest()
	blockers := turnOff(w)
	if !slices.Contains(blockers, "Component: instance manager im-node-1 is being removed") || slices.ContainsFunc(blockers, func(b string) bool { return strings.HasPrefix(b, "Conflict") }) {
		t.Errorf("it waits for %q", blockers)
	}
	if !w.status(settings.V1DataEngine).Applied {
		t.Errorf("got %+v", w.status(settings.V1DataEngine))
	}
}

// Regression: names of instance managers come again, and what was done to those
// before, for a value that nobody wanted in between, was counted on.
func TestWhatNobodyWantedInBetweenIsCountedAnew(t *testing.T) {
	w := newWorld(t, setting(settings.V1DataEngine, "true"))
	w.comeToRest()
	for range standsDownAt {
		turnOff(w)
		w.setSystem(settings.V1DataEngine, "true")
		for _, node := range []string{"node-1", "node-2"} {
			w.must(w.store.Create(t.Context(), &longhorn.InstanceManager{ObjectMeta: at("im-" + node), Spec: longhorn.InstanceManagerSpec{NodeID: node, DataEngine: "v1"}}))
		}
		w.comeToRest()
	}
	w.linger()
	w.setSystem(settings.V1DataEngine, "false")
	for w.manager("im-node-1") != nil || w.manager("im-node-2") != nil {
		w.step()
		w.clock.SetTime(w.clock.Now().Add(time.Second))
	}
	for name, last := range w.r.attempts {
		if last.count != 1 || last.pause() != pauses[0] {
			t.Errorf("%s is counted %d times", name, last.count)
		}
	}
	if got := w.told("StoodDown"); len(got) > 0 {
		t.Errorf("it is said %q", got)
	}
}
