package apply

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fairlead-io/fairlead/api/v1alpha1"
	"github.com/fairlead-io/fairlead/internal/settings/catalog"
)

// Volumes come and go all the time while a setting waits for all of them: that
// is no reason to wake every longhorn-manager each time.
func TestChangingVolumesCauseFewWrites(t *testing.T) {
	w := waiting(t, setting(class, ""), setting(catalog.TaintToleration, ""))
	w.setSystem(class, "high")
	w.setSystem(catalog.TaintToleration, "a=b:NoSchedule")
	w.comeToRest()
	w.wrote = nil
	w.Events.Clear()
	const looks, between = 600, 100 * time.Millisecond // a minute
	for i := range looks {
		if name := fmt.Sprintf("churn-%d", i%7); i/7%2 == 0 {
			w.Must(w.API.Create(t.Context(), attached(name)))
		} else {
			w.Must(w.API.Delete(t.Context(), attached(name)))
		}
		w.Clock.SetTime(w.Clock.Now().Add(between))
		w.step()
	}
	if got := w.wroteToLonghorn(); len(got) > 0 {
		t.Errorf("written to Longhorn's settings: %q", got)
	}
	minute, ours := looks*between, len(w.wrote)
	if most := 2 * (1 + int(minute/statusEvery)); ours == 0 || ours > most {
		t.Errorf("Fairlead's settings are written %d times, of at most %d", ours, most)
	}
	if most := 2 * (1 + int(minute/eventEvery)); len(w.Events.All()) == 0 || len(w.Events.All()) > most {
		t.Errorf("%d events, of at most %d: %q", len(w.Events.All()), most, w.Events.About())
	}

	// Afterwards the last state is reported without a further event.
	w.Must(w.API.Create(t.Context(), attached("last")))
	again := w.step().RequeueAfter
	for range 20 {
		if again == 0 {
			break
		}
		if again > eventEvery {
			t.Fatalf("it is looked at again after %s", again)
		}
		w.Clock.SetTime(w.Clock.Now().Add(again))
		again = w.step().RequeueAfter
	}
	for _, name := range []catalog.Name{class, catalog.TaintToleration} {
		status := w.status(name)
		if !slices.ContainsFunc(status.Blockers, func(b v1alpha1.Blocker) bool { return b.Name == "last" }) {
			t.Errorf("%s: blockers %+v", name, status.Blockers)
		}
		told := w.Events.About("Setting/" + string(name))
		if len(told) == 0 || !strings.HasSuffix(told[len(told)-1], status.Conditions[0].Message) {
			t.Errorf("%s: events %q", name, told)
		}
	}

	// A new phase is reported at once.
	w.Events.Clear()
	w.Clock.SetTime(w.Clock.Now().Add(time.Millisecond))
	for i := range 7 {
		w.Must(client.IgnoreNotFound(w.API.Delete(t.Context(), attached(fmt.Sprintf("churn-%d", i)))))
	}
	w.Must(w.API.Delete(t.Context(), attached("last")))
	w.detach()
	w.step()
	for _, name := range []catalog.Name{class, catalog.TaintToleration} {
		if got := w.status(name).Conditions; got[0].Reason != "Restarting" {
			t.Errorf("%s: %+v", name, got)
		}
	}
	if got := w.Events.About("Normal Restarting "); len(got) != 2 {
		t.Errorf("events %q", w.Events.About())
	}
}
