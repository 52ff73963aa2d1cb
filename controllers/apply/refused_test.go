package apply

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/fairlead-io/fairlead/api/v1alpha1"
	"github.com/fairlead-io/fairlead/internal/settings/catalog"
	"github.com/fairlead-io/fairlead/internal/settings/planner"
	"github.com/fairlead-io/fairlead/internal/testkit/must"
	"github.com/fairlead-io/fairlead/internal/testkit/objects"
)

const tolerations = catalog.TaintToleration

// changingTwo is a world whose priority-class and taint-toleration have just changed, with a write that is refused.
func changingTwo(t *testing.T, refused string) *world {
	t.Helper()
	w := atRest(t, setting(class, ""), setting(tolerations, ""))
	w.refuse(refused)
	w.setSystem(class, "high")
	w.setSystem(tolerations, "a=b:NoSchedule")
	return w
}

// conflict is the error of a stale write.
func conflict() error {
	return apierrors.NewConflict(schema.GroupResource{Resource: "settings"}, "a setting", errDown)
}

// Longhorn's webhook checks the value again at every write of status: its PriorityClass may be gone.
func TestOneRefusedConfirmationStopsNoOther(t *testing.T) {
	w := changingTwo(t, "status longhorn.Setting/priority-class")
	err := w.goOn()
	must.Check(t, apierrors.IsForbidden(err) && strings.Contains(err.Error(), "of setting priority-class: "), "got error %v", err)
	w.Must(w.builtWith("high"))
	must.Check(t, w.status(class).Applied && w.status(tolerations).Applied && w.system(tolerations).Status.Applied,
		"got %+v, %+v, Longhorn's %+v", w.status(class), w.status(tolerations), w.system(tolerations).Status)
}

func TestOneRefusedStatusStopsNoOtherReport(t *testing.T) {
	w := changingTwo(t, "status v1alpha1.Setting/priority-class")
	_, err := w.reconcile()
	must.True(t, apierrors.IsForbidden(err), "got %v", err)
	got := w.status(tolerations)
	must.Check(t, !got.Applied && got.Conditions[0].Reason == "Restarting", "the other setting is not reported: %+v", got)
	must.Equal(t, w.deployment().Spec.Template.Spec.PriorityClassName, "", "work is done that is not reported")
}

// Of two errors, the conflict is retried and the other reported.
func TestConflictBesideARefusalIsRetried(t *testing.T) {
	w := changingTwo(t, "status v1alpha1.Setting/priority-class")
	w.once("status v1alpha1.Setting/taint-toleration", conflict)
	_, err := w.reconcile()
	must.Check(t, apierrors.IsForbidden(err) && !strings.Contains(err.Error(), "taint-toleration"), "got %v", err)
	must.Equal(t, w.deployment().Spec.Template.Spec.PriorityClassName, "", "work is done that is not reported")
	clear(w.before)
	_ = w.goOn()
	w.wantEnd("high")
}

// Longhorn's webhook refuses other writers.
func TestReadOnlySettingsAreNotWritten(t *testing.T) {
	limit := setting(catalog.V2HugepageLimit, "4096")
	limit.Status.Applied = false
	atRest(t, limit).wantLonghornWrites()
}

// Regression: a policy that denies one template blocked all work of all settings.
func TestOneRefusedWriteStopsNoOtherWork(t *testing.T) {
	w := changingTwo(t, patchAttacher)
	err := w.goOn()
	must.Check(t, apierrors.IsForbidden(err), "got error %v", err)
	for _, name := range []string{engineImage, names.ClientDaemonSet} {
		d := w.daemonSet(name)
		must.Check(t, d.Spec.Template.Spec.PriorityClassName == "high", "%s is not updated", name)
	}
	for _, name := range instanceManagers {
		must.Equal(t, w.pod(name).Spec.PriorityClassName, "high", "%s is not restarted", name)
	}
	for _, name := range []catalog.Name{class, tolerations} {
		got := w.status(name)
		must.Check(t, !got.Applied && strings.Contains(got.LastError, "a policy says no") && strings.Contains(got.Conditions[0].Message, "Deployment csi-attacher can't be changed: update Deployment csi-attacher: "),
			"%s: %+v", name, got)
	}
	clear(w.before)
	_ = w.goOn()
	w.wantEnd("high")
}

// Regression: a policy that denies one of Fairlead's own Settings stopped all settings.
func TestRefusedSettingStopsNoOther(t *testing.T) {
	w := changing(t)
	w.remove(&v1alpha1.Setting{ObjectMeta: objects.Here(string(tolerations))})
	w.refuse("create v1alpha1.Setting/" + string(tolerations))
	err := w.goOn()
	must.Check(t, apierrors.IsForbidden(err), "got error %v", err)
	must.Equal(t, w.deployment().Spec.Template.Spec.PriorityClassName, "high")
	clear(w.before)
	_ = w.goOn()
	w.wantEnd("high")
}

// Regression: the last error of a value was reported for the next value while that waited.
func TestLastErrorBelongsToTheValueInEffect(t *testing.T) {
	w := changing(t)
	w.refuse(patchAttacher)
	_ = w.goOn()
	if got := w.status(class); !strings.Contains(got.LastError, "a policy says no") {
		t.Fatalf("got %+v", got)
	}
	w.create(attached("pvc-1"))
	w.setSystem(class, "higher")
	w.step()
	if got := w.status(class); got.Applied || got.EffectiveValue != "higher" || got.LastError != "" {
		t.Errorf("got %+v", got)
	}
}

func TestLastErrorStaysWhileAnotherSettingChanges(t *testing.T) {
	b, now := backoff(nil), time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	facts := planner.Facts{Now: now, Values: catalog.Values{class: {Text: "high"}, tolerations: {Text: "a=b:NoSchedule"}}}
	change := func(setting catalog.Name, trait catalog.Trait, err error) {
		b.record(planner.Work{Component: catalog.Component{Name: "csi-attacher"}, Wants: map[catalog.Trait]planner.Want{trait: {Setting: setting, Text: facts.Values[setting].Text}}}, facts, err)
	}
	change(class, catalog.PriorityClassName, errors.New("a policy says no"))
	change(tolerations, catalog.Tolerations, nil)
	must.Equal(t, b.lastError(class), "a policy says no", "after a change for the other setting")
	must.Equal(t, b.lastError(tolerations), "", "of the other setting")
	facts.Values[class] = catalog.Value{Text: "higher"}
	b.forget(facts.Values)
	must.Equal(t, b.lastError(class), "", "of another value")
}

// Regression: a failed list of networks stopped all settings, and left them reported as applied.
func TestFailingListOfNetworksStopsNoOtherSetting(t *testing.T) {
	w := atRest(t, setting(catalog.StorageNetwork, ""), setting(tolerations, ""))
	w.networksFail = errDown
	w.setSystem(catalog.StorageNetwork, "kube-system/one")
	w.setSystem(tolerations, "a=b:NoSchedule")
	_ = w.goOn()
	s := w.status(catalog.StorageNetwork)
	must.Check(t, !s.Applied && s.EffectiveValue == "kube-system/one", "got %+v", s)
	if d := w.deployment(); !slices.ContainsFunc(d.Spec.Template.Spec.Tolerations, func(t corev1.Toleration) bool { return t.Key == "a" }) {
		t.Error("the other setting is not applied to templates")
	}
}
