package apply

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/fairlead-io/fairlead/api/v1alpha1"
	"github.com/fairlead-io/fairlead/internal/settings/catalog"
)

// waiting is a world in which priority-class waits for a volume whose engine
// and replicas are on both nodes.
func waiting(t *testing.T, objects ...client.Object) *world {
	t.Helper()
	w := newWorld(t, append(objects, attached("pvc-1"), engineOn("node-1"), engineOn("node-2"))...)
	w.comeToRest()
	w.Events.Clear()
	return w
}

// detach lets the volume go.
func (w *world) detach() {
	w.Helper()
	for _, o := range []client.Object{attached("pvc-1"), engineOn("node-1"), engineOn("node-2")} {
		w.Must(w.API.Delete(w.Context(), o))
	}
}

func TestWaitingSettingReportsItsBlockers(t *testing.T) {
	w := waiting(t, setting(class, ""))
	w.setSystem(class, "high")
	w.Clock.SetTime(noon.Add(1500 * time.Millisecond))
	w.step()
	since := noon.Add(time.Second)
	got := w.status(class)
	if got.Applied || *got.AppliedValue != "" || got.EffectiveValue != "high" || got.Source != "longhorn" || got.PendingSince.Unix() != since.Unix() {
		t.Errorf("got %+v", got)
	}
	if len(got.Blockers) != 1 || got.Blockers[0].Kind != "Volume" || got.Blockers[0].Name != "pvc-1" || !slices.Equal(got.Blockers[0].Nodes, []string{"node-1"}) {
		t.Errorf("blockers %+v", got.Blockers)
	}
	if want := []v1alpha1.ComponentProgress{{Kind: "Deployment", Total: 3}, {Kind: "DaemonSet", Total: 4}, {Kind: "InstanceManager", Total: 2}}; !slices.Equal(got.Components, want) {
		t.Errorf("components %+v", got.Components)
	}
	condition := got.Conditions[0]
	if condition.Status != "False" || condition.Reason != "Waiting" || !strings.HasPrefix(condition.Message, "will be applied when these volumes are detached: pvc-1 (node-1). Then 1 Deployment and 2 DaemonSets roll") {
		t.Errorf("condition %+v", condition)
	}
	if got := w.wroteToLonghorn(); len(got) > 0 {
		t.Errorf("written to Longhorn's settings: %q", got)
	}
	for name, want := range map[string]float64{"fairlead_setting_pending": 1, "fairlead_setting_pending_since_seconds": float64(since.Unix()), "fairlead_setting_blockers": 1} {
		if is := w.metric(name, "priority-class"); is != want {
			t.Errorf("%s is %v, not %v", name, is, want)
		}
	}
	for range 3 {
		w.step()
	}
	if len(w.Events.About("Waiting ")) != 1 || len(w.Events.All()) != 1 {
		t.Errorf("events %q", w.Events.About())
	}

	t.Run("since when does not change with what happens on the way", func(t *testing.T) {
		w.Clock.SetTime(noon.Add(time.Hour))
		w.Must(w.API.Delete(w.Context(), engineOn("node-2")))
		w.comeToRest()
		if got := w.status(class); got.Components[2].Updated != 1 || got.PendingSince.Unix() != since.Unix() {
			t.Errorf("got %+v since %s", got.Components, got.PendingSince)
		}
		w.Must(w.API.Create(w.Context(), engineOn("node-2")))
	})
	t.Run("but with the value", func(t *testing.T) {
		w.setSystem(class, "higher")
		now := w.Clock.Now()
		w.step()
		if got := w.status(class); got.PendingSince.Unix() != now.Unix() {
			t.Errorf("since %s", got.PendingSince)
		}
		w.setSystem(class, "high")
		w.step()
	})
	t.Run("and when it is applied there is nothing left", func(t *testing.T) {
		w.Events.Clear()
		w.detach()
		w.comeToRest()
		got := w.status(class)
		if !got.Applied || got.Blockers != nil || got.PendingSince != nil || got.Conditions[0].Status != "True" {
			t.Errorf("got %+v", got)
		}
		if !w.system(class).Status.Applied {
			t.Error("Longhorn's says that it is not applied")
		}
		if w.metric("fairlead_setting_pending", "priority-class") != 0 || w.metric("fairlead_setting_pending_since_seconds", "priority-class") != 0 {
			t.Error("metrics say that it waits")
		}
		if len(w.Events.About("Normal Restarting ")) != 1 || len(w.Events.About("Normal Applied ")) != 1 {
			t.Errorf("events %q", w.Events.About())
		}
	})
}

// Each write to a setting makes every longhorn-manager sync it at once: while Longhorn rolled a value
// out by itself, two writes of Fairlead's had an idle instance manager restarted a second time.
func TestNothingIsWrittenWhileLonghornApplies(t *testing.T) {
	w := newWorld(t, setting(class, ""), setting(catalog.TaintToleration, ""), setting("log-level", "info"))
	w.comeToRest()
	w.setSystemOpen(class, "high")
	w.restart()
	w.comeToRest()
	w.Must(w.allOf("high"))
	if got := w.wroteToLonghorn(); len(got) > 0 {
		t.Errorf("written to Longhorn's settings: %q", got)
	}
}

func TestAppliedIsWrittenOnceLonghornGivesUp(t *testing.T) {
	w := waiting(t, setting(class, ""), setting(catalog.TaintToleration, ""))
	for _, value := range []string{"high", "higher", "high"} {
		w.setSystem(class, value)
		w.wrote = nil
		w.comeToRest()
		if got := w.wroteToLonghorn(); len(got) > 0 {
			t.Errorf("%s waits, written to Longhorn's settings: %q", value, got)
		}
		w.detach()
		w.comeToRest()
		w.Must(w.allOf(value))
		if got := w.wroteToLonghorn(); !slices.Equal(got, []string{"status longhorn.Setting/priority-class"}) || !w.system(class).Status.Applied {
			t.Errorf("%s is applied, written to Longhorn's settings: %q", value, got)
		}
		if a := w.system(class).Annotations; a != nil {
			t.Errorf("annotations %v", a)
		}
		for _, o := range []client.Object{attached("pvc-1"), engineOn("node-1"), engineOn("node-2")} {
			w.Must(w.API.Create(t.Context(), o))
		}
	}
}

// A value in Fairlead's group from before Longhorn had the setting: nothing is done
// for either value until the one in Fairlead's group is taken away.
func TestContradictingValuesApplyNothing(t *testing.T) {
	w := newWorld(t, setting(class, ""))
	w.comeToRest()
	w.set(class, "high")
	w.comeToRest()
	w.Must(w.allOf(""))
	got := w.status(class)
	if got.Applied || got.Conditions[0].Reason != "Invalid" || !strings.Contains(got.Conditions[0].Message, "Take the value in settings.fairlead.io away") {
		t.Errorf("got %+v", got)
	}
	if told := w.Events.About("Restarted"); len(told) > 0 {
		t.Errorf("%q", told)
	}
	s := w.own(class)
	s.Value = nil
	w.Must(w.API.Update(t.Context(), s))
	w.comeToRest()
	if got := w.status(class); !got.Applied {
		t.Errorf("taken away: %+v", got)
	}
}

// A setting without a value has its default, and asks for nothing.
func TestDefaultsAreReportedAndNotRolledOut(t *testing.T) {
	w := newWorld(t)
	d := w.deployment()
	d.Spec.Template.Spec.PriorityClassName = "installed"
	w.Must(w.API.Update(t.Context(), d))
	w.comeToRest()
	for _, d := range catalog.All() {
		got := w.status(d.Name)
		if !got.Applied || got.Source != "default" || got.EffectiveValue != d.Default || *got.AppliedValue != d.Default || got.PendingSince != nil {
			t.Errorf("%s: %+v", d.Name, got)
		}
	}
	if d := w.deployment(); d.Spec.Template.Spec.PriorityClassName != "installed" {
		t.Error("a default was rolled out")
	}
	if len(w.Events.All()) > 0 {
		t.Errorf("events %q", w.Events.About())
	}
}

// Regression: the metric stopped where the list in the status does.
func TestAllBlockersAreCounted(t *testing.T) {
	w := waiting(t, setting(class, ""))
	for i := range v1alpha1.MaxListed + 5 {
		w.Must(w.API.Create(t.Context(), attached(fmt.Sprintf("pvc-of-many-%d", i))))
	}
	w.setSystem(class, "high")
	w.step()
	if got := w.metric("fairlead_setting_blockers", "priority-class"); got != v1alpha1.MaxListed+6 {
		t.Errorf("%v are counted", got)
	}
}

// Longhorn may see something that is not applied where Fairlead sees none.
func TestAppliedIsNotFoughtOver(t *testing.T) {
	w := newWorld(t, setting(class, ""))
	w.comeToRest()
	answers := 0
	w.watch = func() {
		if s := w.system(class); s.Status.Applied {
			answers++
			s.Status.Applied = false
			w.Must(w.API.Status().Update(context.Background(), s))
		}
	}
	w.setSystem(class, "high")
	w.comeToRest()
	w.Clock.SetTime(w.Clock.Now().Add(time.Hour))
	w.comeToRest()
	if answers != 1 {
		t.Errorf("Longhorn wrote %d times", answers)
	}
}

func TestConflictInAReportIsLeftToTheNextLook(t *testing.T) {
	for _, kind := range []string{"v1alpha1.Setting", "longhorn.Setting"} {
		t.Run(kind, func(t *testing.T) {
			w := newWorld(t, setting(class, ""))
			w.comeToRest()
			w.setSystem(class, "high")
			conflicts := 0
			w.fail = func(verb string, o client.Object) error {
				if fmt.Sprintf("*%s", kind) == fmt.Sprintf("%T", o) && verb == "status" && conflicts == 0 {
					conflicts++
					return apierrors.NewConflict(schema.GroupResource{Resource: "settings"}, o.GetName(), errDied)
				}
				return nil
			}
			w.comeToRest()
			if got := w.status(class); conflicts != 1 || !got.Applied || !w.system(class).Status.Applied {
				t.Errorf("after %d conflicts: %+v", conflicts, got)
			}
		})
	}
}

func TestVersionAdvisesDutiesOnce(t *testing.T) {
	version := setting("current-longhorn-version", "v1.6.2")
	w := newWorld(t, version)
	w.r.Duties = map[string]string{"settings": "apply", "pods": "off"}
	for range 3 {
		w.step()
	}
	if got := w.Events.About("DutiesForVersion"); len(got) != 1 || !strings.Contains(got[0], "longhorn v1.6.2 ") || !strings.Contains(got[0], "settings is apply, not guard") || strings.Contains(got[0], "pods is") {
		t.Fatalf("got %q", got)
	}
	w.setSystem("current-longhorn-version", "v1.5.1")
	w.step()
	w.step()
	if got := w.Events.About("DutiesForVersion"); len(got) != 2 {
		t.Errorf("of another version: %q", got)
	}
	w.setSystem("current-longhorn-version", "v1.7.0")
	w.r.Duties["pods"] = "on"
	w.step()
	if got := w.Events.About("DutiesForVersion"); len(got) != 2 {
		t.Errorf("where all is as it should be: %q", got)
	}
}

// beforeStatusesAreListed has something happen once, after the plan was made and
// before its statuses are written; it reports whether it happened.
func (w *world) beforeStatusesAreListed(change func()) *bool {
	happened := false
	w.r.Client = interceptor.NewClient(w.r.Client.(client.WithWatch), interceptor.Funcs{
		List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, opts ...client.ListOption) error {
			if _, ours := list.(*v1alpha1.SettingList); ours && !happened {
				happened = true
				change()
			}
			return c.List(ctx, list, opts...)
		},
	})
	return &happened
}

// A value may be set after the plan was made, and before its status is written.
func TestStatusIsNotWrittenForAnotherValue(t *testing.T) {
	const name = catalog.EngineImageProbePeriod
	seven, nine := "7", "9"
	for what, test := range map[string]struct{ before, after *string }{
		"another value":           {&seven, &nine},
		"one where there is none": {nil, &nine},
		"none where there is one": {&seven, nil},
	} {
		t.Run(what, func(t *testing.T) {
			w := newWorld(t)
			w.comeToRest()
			change := func(value *string, generation int64) {
				s := w.own(name)
				s.Value, s.Generation = value, generation
				w.Must(w.API.Update(t.Context(), s))
			}
			change(test.before, 2)
			w.comeToRest()
			if got := w.status(name); !got.Applied || got.ObservedGeneration != 2 {
				t.Fatalf("at rest: %+v", got)
			}
			happened := w.beforeStatusesAreListed(func() { change(test.after, 3) })
			w.step()
			if got := w.status(name); !*happened || got.ObservedGeneration != 2 {
				t.Errorf("the plan for the value before is reported for generation 3: %+v", got)
			}
		})
	}
}

// A status that was written since the facts were read says more than they do.
func TestStatusIsNotOverwrittenByAnOlderPlan(t *testing.T) {
	const name = catalog.EngineImageProbePeriod
	w := newWorld(t)
	w.comeToRest()
	w.set(name, "7")
	w.comeToRest()
	w.beforeStatusesAreListed(func() {
		s := w.own(name)
		s.Status.Applied, s.Status.Underway = false, true
		w.Must(w.API.Status().Update(t.Context(), s))
	})
	w.Clock.SetTime(w.Clock.Now().Add(statusEvery))
	w.step()
	if got := w.status(name); !got.Underway || got.Applied {
		t.Errorf("overwritten: %+v", got)
	}
	w.comeToRest()
	if got := w.status(name); got.Underway || !got.Applied {
		t.Errorf("at rest: %+v", got)
	}
}
