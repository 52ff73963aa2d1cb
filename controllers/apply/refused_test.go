package apply

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fairlead-io/fairlead/internal/settings/catalog"
)

// refuse has writes of a kind to one setting refused, as the storage system's
// own webhook does while it finds the value wrong.
func (w *world) refuse(verb, kind string, name catalog.Name) {
	w.fail = func(did string, o client.Object) error {
		if did == verb && fmt.Sprintf("*%s", kind) == fmt.Sprintf("%T", o) && o.GetName() == string(name) {
			return apierrors.NewForbidden(schema.GroupResource{Resource: "settings"}, o.GetName(), errors.New("value is invalid"))
		}
		return nil
	}
}

// goOn has all do their part, whatever the controller's errors; it returns the first.
func (w *world) goOn() (first error) {
	w.Helper()
	for range 40 {
		if _, err := w.reconcile(); first == nil {
			first = err
		}
		w.others()
		w.Clock.SetTime(w.Clock.Now().Add(pauses[0]))
	}
	return first
}

// Longhorn judges the value again at every write, of status too: its PriorityClass may be gone since.
// The other settings are applied and confirmed all the same.
func TestOneRefusedConfirmationStopsNoOther(t *testing.T) {
	w := newWorld(t, setting(class, ""), setting(catalog.TaintToleration, ""))
	w.comeToRest()
	w.refuse("status", "longhorn.Setting", class)
	w.setSystem(class, "high")
	w.setSystem(catalog.TaintToleration, "a=b:NoSchedule")
	err := w.goOn()
	w.Must(w.allOf("high"))
	if !w.status(class).Applied || !w.status(catalog.TaintToleration).Applied {
		t.Errorf("Fairlead's own: %+v, %+v", w.status(class), w.status(catalog.TaintToleration))
	}
	if !w.system(catalog.TaintToleration).Status.Applied {
		t.Error("the other is not confirmed")
	}
	if !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), "of setting priority-class: ") {
		t.Errorf("it is no error: %v", err)
	}
}

// Nor does Fairlead's own: what is for others is still done.
func TestOneRefusedStatusStopsNoOtherReport(t *testing.T) {
	w := newWorld(t, setting(class, ""), setting(catalog.TaintToleration, ""))
	w.comeToRest()
	w.refuse("status", "v1alpha1.Setting", class)
	w.setSystem(class, "high")
	w.setSystem(catalog.TaintToleration, "a=b:NoSchedule")
	if _, err := w.reconcile(); !apierrors.IsForbidden(err) {
		t.Fatalf("got %v", err)
	}
	if got := w.status(catalog.TaintToleration); got.Applied || got.Conditions[0].Reason != "Restarting" || w.deployment().Spec.Template.Spec.PriorityClassName != "" {
		t.Error("what is not told is done, or what could be told is not")
	}
}

// Of two errors, the conflict is retried and the other reported.
func TestConflictBesideARefusalIsRetried(t *testing.T) {
	w := newWorld(t, setting(class, ""), setting(catalog.TaintToleration, ""))
	w.comeToRest()
	w.refuse("status", "v1alpha1.Setting", class)
	refused, conflicts := w.fail, 0
	w.fail = func(verb string, o client.Object) error {
		if verb == "status" && o.GetName() == string(catalog.TaintToleration) && conflicts == 0 {
			conflicts++
			return apierrors.NewConflict(schema.GroupResource{Resource: "settings"}, o.GetName(), errDied)
		}
		return refused(verb, o)
	}
	w.setSystem(class, "high")
	w.setSystem(catalog.TaintToleration, "a=b:NoSchedule")
	if _, err := w.reconcile(); !apierrors.IsForbidden(err) || strings.Contains(err.Error(), "taint-toleration") {
		t.Errorf("got %v", err)
	}
	if w.deployment().Spec.Template.Spec.PriorityClassName != "" {
		t.Error("something is done before it is reported")
	}
	w.fail = nil
	_ = w.goOn()
	w.Must(w.allOf("high"))
}

// Longhorn's webhook refuses other writers.
func TestReadOnlySettingsAreNotWritten(t *testing.T) {
	limit := setting(catalog.V2HugepageLimit, "4096")
	limit.Status.Applied = false
	w := newWorld(t, limit)
	w.comeToRest()
	for _, text := range w.wrote {
		if strings.Contains(text, "longhorn.Setting/"+string(catalog.V2HugepageLimit)) {
			t.Errorf("it wrote %s", text)
		}
	}
}

// refuseAttacher is a policy that denies one template.
func refuseAttacher(verb string, o client.Object) error {
	if verb == "patch" && o.GetName() == "csi-attacher" {
		return apierrors.NewForbidden(schema.GroupResource{Resource: "deployments"}, o.GetName(), errors.New("a policy says no"))
	}
	return nil
}

// Regression: a policy that denies one template was in the way of every other
// piece of work of every setting.
func TestOneRefusedWriteStopsNoOtherWork(t *testing.T) {
	w := newWorld(t, setting(class, ""), setting(catalog.TaintToleration, ""))
	w.comeToRest()
	w.fail = refuseAttacher
	w.setSystem(class, "high")
	w.setSystem(catalog.TaintToleration, "a=b:NoSchedule")
	if err := w.goOn(); !apierrors.IsForbidden(err) {
		t.Errorf("it is no error: %v", err)
	}
	for _, name := range []string{"engine-image-ei-1", profile.ClientDaemonSet} {
		if d := w.daemonSet(name); d.Spec.Template.Spec.PriorityClassName != "high" {
			t.Errorf("%s is not updated", name)
		}
	}
	for _, name := range []string{"im-node-1", "im-node-2"} {
		if w.pod(name).Spec.PriorityClassName != "high" {
			t.Errorf("%s is not restarted", name)
		}
	}
	for _, name := range []catalog.Name{class, catalog.TaintToleration} {
		got := w.status(name)
		if got.Applied || !strings.Contains(got.LastError, "a policy says no") || !strings.Contains(got.Conditions[0].Message, "Deployment csi-attacher can't be changed: update Deployment csi-attacher: ") {
			t.Errorf("%s: %+v", name, got)
		}
	}
	w.fail = nil
	_ = w.goOn()
	w.Must(w.allOf("high"))
	if got := w.status(class); !got.Applied || got.LastError != "" {
		t.Errorf("after the policy is mended: %+v", got)
	}
}

// Regression: the last error of a value was told of the next one, for as long as
// that had to wait.
func TestLastErrorBelongsToTheValueInEffect(t *testing.T) {
	w := newWorld(t, setting(class, ""))
	w.comeToRest()
	w.fail = refuseAttacher
	w.setSystem(class, "high")
	_ = w.goOn()
	if got := w.status(class); !strings.Contains(got.LastError, "a policy says no") {
		t.Fatalf("got %+v", got)
	}
	w.Must(w.API.Create(t.Context(), attached("pvc-1")))
	w.setSystem(class, "higher")
	w.step()
	if got := w.status(class); got.Applied || got.EffectiveValue != "higher" || got.LastError != "" {
		t.Errorf("got %+v", got)
	}
}
