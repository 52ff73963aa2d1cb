package apply

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/fairlead-io/fairlead/api/v1alpha1"
	"github.com/fairlead-io/fairlead/internal/settings/catalog"
	"github.com/fairlead-io/fairlead/internal/testkit/must"
)

// waiting is a world at rest with a volume in use, on which changes wait.
func waiting(t *testing.T, objects ...client.Object) *world {
	t.Helper()
	w := atRest(t, append(objects, inUse()...)...)
	w.Events.Clear()
	return w
}

func TestWaitingSettingReportsItsBlockers(t *testing.T) {
	w := waiting(t, setting(class, ""))
	w.setSystem(class, "high")
	w.Clock.SetTime(noon.Add(1500 * time.Millisecond))
	w.step()
	since := noon.Add(time.Second)
	wantSince := func(want time.Time) {
		t.Helper()
		got := w.status(class).PendingSince
		must.Check(t, got.Unix() == want.Unix(), "pending since %s, want %s", got, want)
	}
	wantSince(since)
	got := w.status(class)
	must.Check(t, !got.Applied && *got.AppliedValue == "" && got.EffectiveValue == "high" && got.Source == "longhorn", "got %+v", got)
	must.Check(t, len(got.Blockers) == 1 && got.Blockers[0].Kind == "Volume" && got.Blockers[0].Name == "pvc-1" && slices.Equal(got.Blockers[0].Nodes, []string{"node-1"}),
		"blockers %+v", got.Blockers)
	if want := []v1alpha1.ComponentProgress{{Kind: "Deployment", Total: 3}, {Kind: "DaemonSet", Total: 4}, {Kind: "InstanceManager", Total: 2}}; !slices.Equal(got.Components, want) {
		t.Errorf("components %+v", got.Components)
	}
	if c := got.Conditions[0]; c.Status != "False" || c.Reason != "Waiting" || !strings.HasPrefix(c.Message, "will be applied when these volumes are detached: pvc-1 (node-1). Then 1 Deployment and 2 DaemonSets roll") {
		t.Errorf("condition %+v", c)
	}
	w.wantLonghornWrites()
	w.wantMetric(1, "fairlead_setting_pending", "priority-class")
	w.wantMetric(float64(since.Unix()), "fairlead_setting_pending_since_timestamp_seconds", "priority-class")
	w.wantMetric(1, "fairlead_setting_blockers", "priority-class")
	w.steps(3)
	must.Check(t, len(w.Events.About("Waiting ")) == 1 && len(w.Events.All()) == 1, "events %q", w.Events.About())

	t.Run("time stays with progress", func(t *testing.T) {
		w.Clock.SetTime(noon.Add(time.Hour))
		w.remove(engineOn("node-2"))
		w.comeToRest()
		wantSince(since)
		must.Check(t, w.status(class).Components[2].Updated == 1, "got %+v", w.status(class).Components)
		w.create(engineOn("node-2"))
	})
	t.Run("time changes with the value", func(t *testing.T) {
		w.setSystem(class, "higher")
		now := w.Clock.Now()
		w.step()
		wantSince(now)
		w.setSystem(class, "high")
		w.step()
	})
	t.Run("nothing is left when it is applied", func(t *testing.T) {
		w.Events.Clear()
		w.remove(inUse()...)
		w.comeToRest()
		w.wantEnd("high")
		got := w.status(class)
		must.Check(t, got.Blockers == nil && got.Conditions[0].Status == "True", "got %+v", got)
		w.wantMetric(0, "fairlead_setting_pending", "priority-class")
		w.wantMetric(0, "fairlead_setting_pending_since_timestamp_seconds", "priority-class")
		must.Check(t, len(w.Events.About("Normal Restarting ")) == 1 && len(w.Events.About("Normal Applied ")) == 1, "events %q", w.Events.About())
	})
}

// A value of Fairlead's from before Longhorn had the setting: neither value is applied until Fairlead's is removed.
func TestContradictingValuesApplyNothing(t *testing.T) {
	w := atRest(t, setting(class, ""))
	high := "high"
	w.set(class, &high)
	w.comeToRest()
	w.Must(w.builtWith(""))
	if got := w.status(class); got.Applied || got.Conditions[0].Reason != "Invalid" || !strings.Contains(got.Conditions[0].Message, "Clear the value in settings.fairlead.io") {
		t.Errorf("got %+v", got)
	}
	restarts := w.Events.About("Restarted")
	must.Check(t, len(restarts) == 0, "%q", restarts)
	w.set(class, nil)
	w.comeToRest()
	w.wantEnd("")
}

// A setting without a value has its default, and changes nothing.
func TestDefaultsAreReportedAndNotRolledOut(t *testing.T) {
	w := newWorld(t)
	change(w, "csi-attacher", func(d *appsv1.Deployment) { d.Spec.Template.Spec.PriorityClassName = "installed" })
	w.comeToRest()
	for _, d := range catalog.All() {
		if got := w.status(d.Name); !got.Applied || got.Source != "default" || got.EffectiveValue != d.Default || *got.AppliedValue != d.Default || got.PendingSince != nil {
			t.Errorf("%s: %+v", d.Name, got)
		}
	}
	must.Equal(t, w.deployment().Spec.Template.Spec.PriorityClassName, "installed", "class")
	must.Check(t, len(w.Events.All()) == 0, "events %q", w.Events.About())
}

// Regression: the metric counted only the blockers that the status lists.
func TestAllBlockersAreCounted(t *testing.T) {
	w := waiting(t, setting(class, ""))
	for i := range v1alpha1.MaxListed + 5 {
		w.create(attached(fmt.Sprintf("pvc-of-many-%d", i)))
	}
	w.setSystem(class, "high")
	w.step()
	w.wantMetric(v1alpha1.MaxListed+6, "fairlead_setting_blockers", "priority-class")
}

func TestConflictInAReportIsLeftToTheNextLook(t *testing.T) {
	for _, kind := range []string{"v1alpha1", "longhorn"} {
		t.Run(kind, func(t *testing.T) {
			w := changing(t)
			tries := w.once("status "+kind+".Setting/priority-class", conflict)
			w.comeToRest()
			w.wantEnd("high")
			must.Check(t, *tries >= 2, "%d tries", *tries)
		})
	}
}

func TestVersionAdvisesDutiesOnce(t *testing.T) {
	w := newWorld(t, setting("current-longhorn-version", "v1.6.2"))
	w.r.Duties = map[string]string{"settings": "apply", "pods": "off"}
	advice := func(want int) []string {
		t.Helper()
		w.steps(3)
		got := w.Events.About("DutiesForVersion")
		must.True(t, len(got) == want, "got %q, want %d", got, want)
		return got
	}
	if got := advice(1)[0]; !strings.Contains(got, "Longhorn v1.6.2 ") || !strings.Contains(got, "settings is apply, not guard") || strings.Contains(got, "pods is") {
		t.Fatalf("got %q", got)
	}
	w.setSystem("current-longhorn-version", "v1.5.1")
	advice(2)
	w.setSystem("current-longhorn-version", "v1.7.0") // asks for these duties
	w.r.Duties["pods"] = "on"
	advice(2)
}

func TestUnknownSettingsAreReportedOnce(t *testing.T) {
	w := newWorld(t, setting("current-longhorn-version", "v1.13.0"), setting("log-level", "Info"))
	steps := func(count float64, events int, names string) {
		t.Helper()
		w.steps(3)
		got := w.Events.About("UnknownSettings NetworkRollout/longhorn: ")
		must.Check(t, len(got) == events && (events == 0 || strings.Contains(got[events-1], names)), "want %d with %q, got %q", events, names, got)
		w.wantMetric(count, "fairlead_settings_unknown")
	}
	steps(0, 0, "")
	for i, name := range []catalog.Name{"a", "b", "c", "d"} {
		w.create(setting(name, "x"))
		steps(float64(i+1), i+1, "Longhorn has settings that this Fairlead does not know, perhaps of the danger zone: a")
	}
	w.remove(setting("d", ""))
	w.create(setting("e", "x")) // counted in the message, not named
	steps(4, 5, "a, b, c, and 1 more. Upgrade Fairlead")
	w.remove(setting("a", ""), setting("b", ""), setting("c", ""), setting("e", ""))
	steps(0, 5, "")
}

// beforeStatusesAreListed does something once, between the plan and the report. It reports whether that happened.
func (w *world) beforeStatusesAreListed(do func()) *bool {
	happened := false
	w.r.Client = interceptor.NewClient(w.Client, interceptor.Funcs{
		List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, opts ...client.ListOption) error {
			if _, ours := list.(*v1alpha1.SettingList); ours && !happened {
				happened = true
				do()
			}
			return c.List(ctx, list, opts...)
		},
	})
	return &happened
}

func TestStatusIsNotWrittenForAnotherValue(t *testing.T) {
	const name = catalog.EngineImageProbePeriod
	seven, nine := "7", "9"
	for what, test := range map[string]struct{ before, after *string }{
		"other value": {&seven, &nine}, "first value": {nil, &nine}, "removed value": {&seven, nil},
	} {
		t.Run(what, func(t *testing.T) {
			w := atRest(t)
			write := func(value *string, generation int64) {
				change(w, string(name), func(s *v1alpha1.Setting) { s.Value, s.Generation = value, generation })
			}
			write(test.before, 2)
			w.comeToRest()
			if got := w.status(name); !got.Applied || got.ObservedGeneration != 2 {
				t.Fatalf("at rest: %+v", got)
			}
			happened := w.beforeStatusesAreListed(func() { write(test.after, 3) })
			w.step()
			if got := w.status(name); !*happened || got.ObservedGeneration != 2 {
				t.Errorf("the plan for the earlier value is reported for generation 3: %+v", got)
			}
		})
	}
}

// A status that was written after the facts were read is newer than the plan.
func TestStatusIsNotOverwrittenByAnOlderPlan(t *testing.T) {
	const name = catalog.EngineImageProbePeriod
	seven := "7"
	w := atRest(t)
	w.set(name, &seven)
	w.comeToRest()
	w.beforeStatusesAreListed(func() {
		change(w, string(name), func(s *v1alpha1.Setting) { s.Status.Applied, s.Status.Underway = false, true })
	})
	w.Pass(statusEvery)
	w.step()
	if got := w.status(name); !got.Underway || got.Applied {
		t.Errorf("overwritten: %+v", got)
	}
	w.comeToRest()
	if got := w.status(name); got.Underway || !got.Applied {
		t.Errorf("at rest: %+v", got)
	}
}
