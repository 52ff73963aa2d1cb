package apply

import (
	"errors"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fairlead-io/fairlead/settings"
)

func request(value string) map[string]string {
	return map[string]string{
		settings.OverrideAnnotation:   "disk dies",
		settings.OverriddenAnnotation: settings.Override{By: "jane", Reason: "disk dies", Value: value}.Text(),
	}
}

// groups are the settings of either, as an override finds them.
var groups = map[string]func(*world) client.Object{
	"Fairlead's": func(w *world) client.Object { return w.own(class) },
	"Longhorn's": func(w *world) client.Object { return w.system(class) },
}

func (w *world) setIn(group, value string) {
	w.Helper()
	if group == "Longhorn's" {
		w.setSystem(class, value)
	} else {
		w.set(class, value)
	}
}

// there is Longhorn's setting where the group is its own: where both are and
// differ, Fairlead's comes to nothing.
func there(group string) []client.Object {
	if group == "Longhorn's" {
		return []client.Object{setting(class, "")}
	}
	return nil
}

func TestAnOverriddenGateIsToldOnceAndClosedWhenItIsApplied(t *testing.T) {
	for group, object := range groups {
		t.Run(group, func(t *testing.T) {
			w := waiting(t, there(group)...)
			w.setIn(group, "high")
			w.comeToRest()
			w.annotate(object(w), request("high"))
			w.watch = func() {
				if _, open := object(w).GetAnnotations()[settings.OverrideAnnotation]; !open {
					if err := w.allOf("high"); err != nil {
						t.Errorf("the gate is closed, but %v", err)
					}
				}
			}
			w.comeToRest()
			w.must(w.allOf("high"))
			annotations := object(w).GetAnnotations()
			if _, open := annotations[settings.OverrideAnnotation]; open || annotations[settings.OverriddenAnnotation] != request("high")[settings.OverriddenAnnotation] {
				t.Errorf("in the end: %v", annotations)
			}
			if got := w.told("GateOverridden"); len(got) != 1 || !strings.HasPrefix(got[0], "Warning") || !strings.HasSuffix(got[0], `jane overrides the gate for value "high": disk dies`) {
				t.Errorf("events: %q", got)
			}
			if got := w.metric("fairlead_gate_overrides_total", "priority-class"); got != 1 {
				t.Errorf("%v are counted", got)
			}
			if got := w.told("for settings priority-class; the gate of priority-class is overridden"); len(got) != 5 {
				t.Errorf("what was done says why: %q", w.events)
			}
		})
	}
}

// The value was applied already, or became so just before the controller died.
func TestAnOverrideThatIsLeftOverIsClosed(t *testing.T) {
	for group, object := range groups {
		t.Run(group, func(t *testing.T) {
			w := newWorld(t, there(group)...)
			w.comeToRest()
			w.setIn(group, "high")
			w.comeToRest()
			w.annotate(object(w), request("high"))
			w.restart()
			w.comeToRest()
			if _, open := object(w).GetAnnotations()[settings.OverrideAnnotation]; open {
				t.Error("it is open")
			}
		})
	}
}

func TestWhatOverridesNothingIsTakenAway(t *testing.T) {
	w := waiting(t, setting(class, ""))
	w.setSystem(class, "high")
	w.annotate(w.system(class), request("another"))
	w.comeToRest()
	if _, there := w.system(class).Annotations[settings.OverrideAnnotation]; there || len(w.told("GateOverridden")) > 0 || w.status(class).Applied {
		t.Errorf("got %v, %q", w.system(class).Annotations, w.events)
	}
}

// The patch names the revision that was judged: a request of just now is not taken away with it.
func TestClosingMindsTheRevision(t *testing.T) {
	for group, object := range groups {
		t.Run(group, func(t *testing.T) {
			w := waiting(t, there(group)...)
			w.setIn(group, "high")
			w.annotate(object(w), request("high"))
			changed := false
			w.fail = func(verb string, o client.Object) error {
				if _, asks := o.GetAnnotations()[settings.OverrideAnnotation]; verb == "patch" && asks && !changed && w.allOf("high") == nil && w.status(class).Applied {
					if o.GetResourceVersion() != object(w).GetResourceVersion() {
						t.Errorf("it goes by revision %s, and %s is there", o.GetResourceVersion(), object(w).GetResourceVersion())
					}
					changed = true
					w.annotate(object(w), map[string]string{"theirs": "x"})
				}
				return nil
			}
			w.comeToRest()
			if _, open := object(w).GetAnnotations()[settings.OverrideAnnotation]; !changed || open {
				t.Errorf("changed %v, open %v", changed, open)
			}
		})
	}
}

func TestARefusalToCloseIsAnError(t *testing.T) {
	w := newWorld(t, setting(class, ""))
	w.comeToRest()
	w.annotate(w.system(class), request(""))
	w.fail = func(verb string, o client.Object) error {
		if verb == "patch" {
			return apierrors.NewForbidden(schema.GroupResource{Resource: "settings"}, o.GetName(), errors.New("no"))
		}
		return nil
	}
	if _, err := w.reconcile(); !apierrors.IsForbidden(err) {
		t.Errorf("got %v", err)
	}
}
