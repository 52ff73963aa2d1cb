package apply

import (
	"context"
	"fmt"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fairlead-io/fairlead/internal/settings/catalog"
	"github.com/fairlead-io/fairlead/internal/testkit/must"
)

const patchAttacher = "patch v1.Deployment/csi-attacher"

func TestValueIsRolledOutPieceByPiece(t *testing.T) {
	w := atRest(t, setting(class, ""))
	w.wantEnd("")
	if got := w.status(class).Source; got != "longhorn" || w.system(class).Annotations != nil || len(w.Events.All()) > 0 {
		t.Errorf("at first: source %s, annotations %v, events %q", got, w.system(class).Annotations, w.Events.Notes())
	}
	w.setSystem(class, "high")
	w.wantMetric(0, "fairlead_component_restarts_total", "priority-class", "InstanceManager") // so that the first restart is an increase
	w.checkEachWrite("high")
	var work []string
	for range 60 {
		before := len(w.wrote)
		w.step()
		done := w.work(before)
		work = append(work, done...)
		must.Check(t, len(done) <= 1, "at a time: %q", done)
		if !w.others() && len(w.wrote) == before {
			break
		}
	}
	want := []string{
		patchAttacher, "patch v1.DaemonSet/engine-image-ei-1", "patch v1.DaemonSet/longhorn-csi-plugin", "delete v1.Pod/im-node-1", "delete v1.Pod/im-node-2",
	}
	must.Equal(t, work, want)
	w.wantEnd("high")
	w.wantMetric(2, "fairlead_component_restarts_total", "priority-class", "InstanceManager")
	// Kubernetes keeps the rolling update of all but the client pods.
	must.Equal(t, w.daemonSet(engineImage).Spec.UpdateStrategy.Type, appsv1.RollingUpdateDaemonSetStrategyType, "the engine image's strategy")
	if got := w.daemonSet(names.ClientDaemonSet); got.Spec.UpdateStrategy.Type != "OnDelete" || !strings.Contains(got.Annotations["fairlead.io/update-strategy"], "RollingUpdate") {
		t.Errorf("the CSI plugin's strategy is %s, %v", got.Spec.UpdateStrategy.Type, got.Annotations)
	}
	must.Equal(t, len(w.Events.About("Restarted Pod/im-node-1: by Fairlead for settings priority-class; no engine or replica runs on it")), 1, "events %q", w.Events.About())
}

// Invariant 7: after a crash before or after any write, the next leader gets to the same end.
func TestCrashAtAnyWriteResumes(t *testing.T) {
	whole := changing(t)
	whole.restart()
	whole.comeToRest()
	whole.wantEnd("high")
	must.True(t, len(whole.wrote) >= 9, "only %q", whole.wrote)
	for n := range 2 * len(whole.wrote) {
		w := changing(t)
		w.checkEachWrite("high")
		w.crashAt(n/2, n%2 == 1)
		must.True(t, w.Client.Crashed(), "the controller does not get to write %d", n/2)
		w.restart()
		w.comeToRest()
		w.wantEnd("high")
		must.True(t, !t.Failed(), "after write %d, %s, done %v", n/2, whole.wrote[n/2], n%2 == 1)
	}
}

// The value is reverted while the controller is down: it is applied once all components have it again.
func TestCrashBeforeARevertedValueResumes(t *testing.T) {
	must.HaveTime(t)
	for n := range 40 {
		w := atRest(t, setting(class, "low"))
		w.setSystem(class, "high")
		w.crashAt(n/2, n%2 == 1)
		w.setSystem(class, "low")
		w.restart()
		w.checkEachWrite("low")
		w.comeToRest()
		w.Must(w.builtWith("low"))
	}
}

// A value that is removed before anything changed leaves the installed value. Later it leaves the default.
func TestValueRemovedHalfwayIsRolledBack(t *testing.T) {
	const name = catalog.EngineImageProbePeriod
	for what, test := range map[string]struct {
		begun bool
		want  int32
	}{"after a template was changed": {true, 5}, "before": {false, 7}} {
		t.Run(what, func(t *testing.T) {
			w := newWorld(t)
			change(w, engineImage, func(ds *appsv1.DaemonSet) { ds.Spec.Template.Spec.Containers[0].LivenessProbe.PeriodSeconds = 7 }) // by the installer
			w.comeToRest()
			period := func() int32 {
				return w.daemonSet(engineImage).Spec.Template.Spec.Containers[0].LivenessProbe.PeriodSeconds
			}
			twenty := "20"
			w.r.Applies = test.begun
			w.set(name, &twenty)
			w.step()
			must.Equal(t, period() == 20, test.begun, "changed")
			w.set(name, nil)
			w.restart()
			w.comeToRest()
			must.Equal(t, period(), test.want, "the period")
			if got := w.status(name); !got.Applied || got.Source != "default" || *got.AppliedValue != "5" || got.Underway {
				t.Errorf("got %+v", got)
			}
		})
	}
}

func TestWorkIsDecidedOnALiveRead(t *testing.T) {
	enginesStart := func(w *world) { w.create(engineOn("node-1"), engineOn("node-2")) }
	for name, test := range map[string]struct {
		pods bool // the next work is a restart of pods, not a write of a template
		live func(*world)
		want string
	}{
		"attached volume":       {false, func(w *world) { w.create(inUse()...) }, ""},
		"starting engines":      {true, enginesStart, ""},
		"engine on one node":    {true, func(w *world) { w.create(engineOn("node-1")) }, "delete v1.Pod/im-node-2"},
		"pod that is recreated": {true, func(w *world) { w.remove(w.pod("im-node-2")) }, ""},
		"reverted value":        {true, func(w *world) { w.setSystem(class, "") }, patchAttacher},
		"other value":           {true, func(w *world) { w.setSystem(class, "higher") }, patchAttacher},
	} {
		t.Run(name, func(t *testing.T) {
			w := changing(t)
			if test.pods {
				w.stepUntilTemplates()
			}
			w.freeze()
			w.meanwhile, w.wrote = func() { test.live(w) }, nil
			w.step()
			must.True(t, w.meanwhile == nil, "nothing was read live")
			must.Equal(t, strings.Join(w.work(0), ", "), test.want)
		})
	}
}

// The cache may show the reverted setting, but not the components that were written since.
func TestAppliedIsReportedOnALiveRead(t *testing.T) {
	w := atRest(t, setting(class, "low"))
	w.freeze()
	stale := w.Client.Reader
	w.Client.Reader = nil
	w.setSystem(class, "high")
	w.step()
	must.True(t, w.deployment().Spec.Template.Spec.PriorityClassName == "high", "nothing has begun")
	w.setSystem(class, "low")
	w.Client.Reader = freshSettings{w.API, stale}
	w.step()
	must.Check(t, !w.status(class).Applied && !w.system(class).Status.Applied, "the value is reported as applied, but the Deployment does not have it")
	w.Client.Reader = nil
	w.comeToRest()
	w.wantEnd("low")
}

// freshSettings is a cache that is stale, except for settings.
type freshSettings struct {
	client.Reader
	stale client.Reader
}

func (r freshSettings) List(ctx context.Context, list client.ObjectList, options ...client.ListOption) error {
	if strings.Contains(fmt.Sprintf("%T", list), "SettingList") {
		return r.Reader.List(ctx, list, options...)
	}
	return r.stale.List(ctx, list, options...)
}

// The pod is replaced between the decision and the deletion.
func TestReplacedPodIsNotDeleted(t *testing.T) {
	w := changing(t)
	recreated := ""
	w.once("delete v1.Pod/im-node-1", func() error {
		w.remove(w.pod("im-node-1"))
		w.others()
		recreated = string(w.pod("im-node-1").UID)
		return nil
	})
	w.comeToRest()
	got := string(w.pod("im-node-1").UID)
	must.Check(t, got == recreated, "the pod is %s, not the recreated pod %s", got, recreated)
	w.wantEnd("high")
}

func TestConflictIsLeftToTheNextLook(t *testing.T) {
	w := changing(t)
	tries := w.once(patchAttacher, func() error {
		change(w, "csi-attacher", func(d *appsv1.Deployment) { d.Labels["theirs"] = "x" })
		return nil
	})
	w.step()
	got := w.deployment().Spec.Template.Spec.PriorityClassName
	must.True(t, *tries == 1 && got == "" && w.status(class).LastError == "", "after %d tries the class is %q, the error %s", *tries, got, w.status(class).LastError)
	w.comeToRest()
	w.wantEnd("high")
	must.Equal(t, w.deployment().Labels["theirs"], "x", "label of the other writer")
}

func TestErrorIsReportedUntilSuccess(t *testing.T) {
	w := changing(t)
	w.refuse(patchAttacher)
	_, err := w.reconcile()
	must.True(t, apierrors.IsForbidden(err), "got %v", err)
	w.step() // the report remains while others have their turn
	if got := w.status(class); got.Applied || !strings.Contains(got.LastError, "update Deployment csi-attacher: ") || !strings.Contains(got.LastError, "a policy says no") {
		t.Errorf("got %+v", got)
	}
	t.Run("until another writer succeeds", func(t *testing.T) {
		change(w, "csi-attacher", func(d *appsv1.Deployment) { d.Spec.Template.Spec.PriorityClassName = "high" })
		w.comeToRest()
		w.wantEnd("high")
		w.create(attached("pvc-1"))
		w.setSystem(class, "higher")
		w.step()
		got := w.status(class)
		must.Check(t, !got.Applied && got.LastError == "", "an old error comes back: %+v", got)
	})
	t.Run("until the controller succeeds", func(t *testing.T) {
		w.remove(attached("pvc-1"))
		for w.status(class).LastError == "" {
			_, _ = w.reconcile()
		}
		clear(w.before)
		w.Pass(afterRefusal)
		w.step()
		w.step()
		got := w.status(class)
		must.Check(t, !got.Applied && got.LastError == "", "got %+v", got)
	})
}

func TestGuardModeChangesNothing(t *testing.T) {
	w := newWorld(t, setting(class, ""))
	w.r.Applies = false
	w.comeToRest()
	w.setSystem(class, "high")
	w.wrote = nil
	w.comeToRest()
	must.Equal(t, w.wrote, []string{"status v1alpha1.Setting/priority-class"})
	got := w.status(class)
	must.Check(t, !got.Applied && strings.HasPrefix(got.Conditions[0].Message, "waiting for the storage system to apply it; "), "got %+v", got)
}
