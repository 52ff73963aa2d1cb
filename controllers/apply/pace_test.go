package apply

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fairlead-io/fairlead/api/v1alpha1"
	"github.com/fairlead-io/fairlead/internal/longhorn"
	"github.com/fairlead-io/fairlead/internal/settings/catalog"
	"github.com/fairlead-io/fairlead/internal/testkit/must"
)

// Volumes come and go while a setting waits for all of them. Not every change may wake every longhorn-manager.
func TestChangingVolumesCauseFewWrites(t *testing.T) {
	must.HaveTime(t)
	w := waiting(t, setting(class, ""), setting(catalog.TaintToleration, ""))
	w.setSystem(class, "high")
	w.setSystem(catalog.TaintToleration, "a=b:NoSchedule")
	w.comeToRest()
	w.wrote = nil
	w.Events.Clear()
	const looks, between = 600, 100 * time.Millisecond // a minute
	for i := range looks {
		if name := fmt.Sprintf("churn-%d", i%7); i/7%2 == 0 {
			w.create(attached(name))
		} else {
			w.remove(attached(name))
		}
		w.Pass(between)
		w.step()
	}
	w.wantLonghornWrites()
	minute, ours := looks*between, len(w.wrote)
	if most := 2 * (1 + int(minute/statusEvery)); ours == 0 || ours > most {
		t.Errorf("Fairlead's settings are written %d times, of at most %d", ours, most)
	}
	if most := 2 * (1 + int(minute/eventEvery)); len(w.Events.All()) == 0 || len(w.Events.All()) > most {
		t.Errorf("%d events, of at most %d: %q", len(w.Events.All()), most, w.Events.About())
	}

	// Afterwards the last state is reported without a further event.
	w.create(attached("last"))
	again := w.step().RequeueAfter
	for range 20 {
		if again == 0 {
			break
		}
		must.True(t, again <= eventEvery, "the next look is in %s", again)
		w.Pass(again)
		again = w.step().RequeueAfter
	}
	for _, name := range []catalog.Name{class, catalog.TaintToleration} {
		status := w.status(name)
		must.Check(t, slices.ContainsFunc(status.Blockers, func(b v1alpha1.Blocker) bool { return b.Name == "last" }), "%s: blockers %+v", name, status.Blockers)
		events := w.Events.About("Setting/" + string(name))
		must.Check(t, len(events) != 0 && strings.HasSuffix(events[len(events)-1], status.Conditions[0].Message), "%s: events %q", name, events)
	}

	// A new phase is reported at once.
	w.Events.Clear()
	w.Pass(time.Millisecond)
	w.Must(w.DeleteAllOf(t.Context(), &longhorn.Volume{}, client.InNamespace(names.Namespace)))
	w.remove(inUse()[1:]...)
	w.step()
	for _, name := range []catalog.Name{class, catalog.TaintToleration} {
		got := w.status(name).Conditions
		must.Check(t, got[0].Reason == "Restarting", "%s: %+v", name, got)
	}
	must.Equal(t, len(w.Events.About("Normal Restarting ")), 2, "events %q", w.Events.About())
}
