package apply

import (
	"strings"
	"testing"

	"github.com/fairlead-io/fairlead/internal/settings/catalog"
)

func TestUnknownSettingsAreReportedOnce(t *testing.T) {
	w := newWorld(t, setting("current-longhorn-version", "v1.13.0"), setting("log-level", "Info"))
	steps := func(count float64, events int, names string) {
		t.Helper()
		for range 3 {
			w.step()
		}
		got := w.Events.About("UnknownSettings NetworkRollout/longhorn: ")
		if len(got) != events || events > 0 && !strings.Contains(got[events-1], names) {
			t.Errorf("want %d with %q, got %q", events, names, got)
		}
		if is := w.metric("fairlead_settings_unknown", "longhorn"); is != count {
			t.Errorf("the metric says %g, want %g", is, count)
		}
	}
	steps(0, 0, "")
	for i, name := range []catalog.Name{"a", "b", "c", "d"} {
		w.Must(w.API.Create(t.Context(), setting(name, "x")))
		steps(float64(i+1), i+1, "longhorn has settings that this Fairlead does not know, perhaps of the danger zone: a")
	}
	w.Must(w.API.Delete(t.Context(), setting("d", "")))
	w.Must(w.API.Create(t.Context(), setting("e", "x"))) // counted in the message, not named
	steps(4, 5, "a, b, c, and 1 more. Upgrade Fairlead")
	for _, name := range []catalog.Name{"a", "b", "c", "e"} {
		w.Must(w.API.Delete(t.Context(), setting(name, "")))
	}
	steps(0, 5, "")
}
