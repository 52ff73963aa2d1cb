package apply

import (
	"context"
	"errors"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fairlead-io/fairlead/api/v1alpha1"
	"github.com/fairlead-io/fairlead/settings"
)

func request(value string) map[string]string {
	return map[string]string{
		settings.OverrideAnnotation:   "disk dies",
		settings.OverriddenAnnotation: settings.Override{By: "jane", Reason: "disk dies", Value: value, At: noon}.Text(),
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
	// Regression: each look sent it again.
	tried := 0
	refuse := w.fail
	w.fail = func(verb string, o client.Object) error { tried++; return refuse(verb, o) }
	for range 20 {
		w.step()
	}
	if tried > 0 {
		t.Errorf("it is tried %d times more at once", tried)
	}
	w.clock.SetTime(w.clock.Now().Add(tellEvery))
	if _, err := w.reconcile(); !apierrors.IsForbidden(err) || tried != 1 {
		t.Errorf("after a while: %v, tried %d times", err, tried)
	}
}

// What keeps a value waiting may last for weeks, like a node that is down: the
// pods that come to be used meanwhile were not meant.
func TestAnOverrideExpires(t *testing.T) {
	for group, object := range groups {
		t.Run(group, func(t *testing.T) {
			w := waiting(t, there(group)...)
			w.setIn(group, "high")
			w.annotate(object(w), request("high"))
			w.must(w.store.Status().Update(t.Context(), down(w.node("node-2"))))
			w.comeToRest()
			if got := w.pod("im-node-1"); got.Spec.PriorityClassName != "high" || w.status(class).Applied {
				t.Fatalf("it is %q, of %+v", got.Spec.PriorityClassName, w.status(class))
			}
			overridden := func() *metav1.Condition {
				return meta.FindStatusCondition(w.status(class).Conditions, v1alpha1.ConditionGateOverridden)
			}
			if c := overridden(); c == nil || c.Status != "True" || c.Message != `jane overrides the gate for value "high" until 2026-01-02T12:00:00Z: disk dies` {
				t.Errorf("the condition is %+v", c)
			}
			left := noon.Add(settings.OverrideLifetime).Sub(w.clock.Now())
			if again := w.step().RequeueAfter; again == 0 || again > left {
				t.Errorf("it is looked at again after %s, not %s", again, left)
			}
			w.clock.SetTime(noon.Add(settings.OverrideLifetime))
			// A pod that falls out of line then is left while it is in use.
			pod := w.pod("im-node-1")
			pod.Spec.PriorityClassName = ""
			w.must(w.store.Update(t.Context(), pod))
			w.wrote = nil
			for range 3 {
				w.step()
			}
			if got := w.pod("im-node-1"); got == nil || got.UID != pod.UID {
				t.Errorf("it was restarted: %q", w.wrote)
			}
			if _, open := object(w).GetAnnotations()[settings.OverrideAnnotation]; open {
				t.Error("the gate is open")
			}
			if got := w.told("OverrideExpired"); len(got) != 1 || !strings.HasPrefix(got[0], "Warning") || !strings.Contains(got[0], `for value "high" by jane has ended after 24 hours`) {
				t.Errorf("events: %q", got)
			}
			if c := overridden(); c == nil || c.Status != "False" || c.Reason != "OverrideExpired" {
				t.Errorf("the condition is %+v", c)
			}
			w.must(w.store.Status().Update(t.Context(), up(w.node("node-2"))))
			w.detach()
			w.comeToRest()
			w.must(w.allOf("high"))
			if c := overridden(); c != nil {
				t.Errorf("the condition stays: %+v", c)
			}
		})
	}
}

// Longhorn's webhook may refuse that the request is taken away: it holds no longer all the same.
func TestAnExpiredOverrideThatCantBeTakenAwayHoldsNoMore(t *testing.T) {
	w := waiting(t, setting(class, ""))
	w.setSystem(class, "high")
	w.annotate(w.system(class), request("high"))
	w.clock.SetTime(noon.Add(settings.OverrideLifetime))
	w.refuse("patch", "longhorn.Setting", class)
	if err := w.goOn(); !apierrors.IsForbidden(err) {
		t.Errorf("got %v", err)
	}
	if _, open := w.system(class).Annotations[settings.OverrideAnnotation]; !open {
		t.Fatal("it is taken away")
	}
	if got := w.pod("im-node-1").Spec.PriorityClassName + w.deployment().Spec.Template.Spec.PriorityClassName; got != "" || len(w.told("GateOverridden")) > 0 || len(w.told("OverrideExpired")) != 1 {
		t.Errorf("something is %s: %q", got, w.events)
	}
}

// docs/operations.md has people alert on any increase.
func TestANewLeaderDoesNotTellAnOverrideAgain(t *testing.T) {
	for group, object := range groups {
		t.Run(group, func(t *testing.T) {
			w := waiting(t, there(group)...)
			w.setIn(group, "high")
			w.annotate(object(w), request("high"))
			w.step()
			w.restart()
			w.comeToRest()
			w.must(w.allOf("high"))
			if got := w.told("GateOverridden"); len(got) != 1 || w.metric("fairlead_gate_overrides_total", "priority-class") > 0 {
				t.Errorf("it tells again: %q, %v", got, w.metric("fairlead_gate_overrides_total", "priority-class"))
			}
			if c := meta.FindStatusCondition(w.status(class).Conditions, v1alpha1.ConditionGateOverridden); c != nil {
				t.Errorf("the condition stays: %+v", c)
			}
			w.setIn(group, "higher")
			w.must(w.store.Create(t.Context(), attached("pvc-2")))
			w.annotate(object(w), map[string]string{settings.OverrideAnnotation: "again", settings.OverriddenAnnotation: settings.Override{By: "jane", Reason: "again", Value: "higher", At: noon}.Text()})
			w.comeToRest()
			if got := w.told("GateOverridden"); len(got) != 2 || w.metric("fairlead_gate_overrides_total", "priority-class") != 1 {
				t.Errorf("another is not told: %q", got)
			}
		})
	}
}

func (w *world) node(name string) *corev1.Node {
	w.Helper()
	var n corev1.Node
	w.must(w.store.Get(context.Background(), client.ObjectKey{Name: name}, &n))
	return &n
}

func down(n *corev1.Node) *corev1.Node {
	n.Status.Conditions[0].Status = corev1.ConditionUnknown
	return n
}

func up(n *corev1.Node) *corev1.Node {
	n.Status.Conditions[0].Status = corev1.ConditionTrue
	return n
}

// Regression: no webhook judges annotations of the storage system's settings beside
// the danger zone. Anybody who may write one was told as one who overrides a gate.
func TestNoGateIsOverriddenBesideTheDangerZone(t *testing.T) {
	for _, name := range []settings.Name{"default-replica-count", settings.AutoDeletePod} {
		t.Run(string(name), func(t *testing.T) {
			s := setting(name, "true")
			s.Annotations = request("true")
			w := newWorld(t, setting(class, ""), s)
			w.setSystem(class, "high")
			w.comeToRest()
			w.must(w.allOf("high"))
			if got := w.told("GateOverridden"); len(got) > 0 || w.metric("fairlead_gate_overrides_total", string(name)) > 0 {
				t.Errorf("it is told: %q", got)
			}
		})
	}
}
