package apply

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fairlead-io/fairlead/internal/cluster/longhorn"
	"github.com/fairlead-io/fairlead/internal/settings/catalog"
)

const class = catalog.PriorityClass

func TestValueIsRolledOutPieceByPiece(t *testing.T) {
	w := newWorld(t, setting(class, ""))
	w.comeToRest()
	if got := w.status(class); !got.Applied || got.AppliedValue == nil || *got.AppliedValue != "" || got.Source != "longhorn" {
		t.Fatalf("at first: %+v", got)
	}
	if w.system(class).Annotations != nil || len(w.Events.About("")) > 0 {
		t.Errorf("there was nothing to tell: %v %q", w.system(class).Annotations, w.Events.About())
	}
	w.setSystem(class, "high")
	// Invariant 6: it is not called applied before it is, by anybody, at any moment.
	w.watch = func() {
		w.mustBeAsTold("high")
	}
	var work []string
	for range 60 {
		before := len(w.wrote)
		w.step()
		done := slices.DeleteFunc(slices.Clone(w.wrote[before:]), func(text string) bool { return strings.Contains(text, "Setting") })
		if len(done) > 1 {
			t.Errorf("at a time: %q", done)
		}
		work = append(work, done...)
		if !w.others() && len(w.wrote) == before {
			break
		}
	}
	want := []string{
		"patch v1.Deployment/csi-attacher", "patch v1.DaemonSet/engine-image-ei-1", "patch v1.DaemonSet/longhorn-csi-plugin",
		"delete v1.Pod/im-node-1", "delete v1.Pod/im-node-2",
	}
	if !slices.Equal(work, want) {
		t.Errorf("got  %q\nwant %q", work, want)
	}
	w.Must(w.allOf("high"))
	if !w.system(class).Status.Applied {
		t.Error("Longhorn's says that it is not applied")
	}
	if got := w.status(class); !got.Applied || *got.AppliedValue != "high" || got.PendingSince != nil {
		t.Errorf("Fairlead's says %+v", got)
	}
	if got := w.metric("fairlead_component_restarts_total", "priority-class", "InstanceManager"); got != 2 {
		t.Errorf("%v instance managers are counted", got)
	}
	// Only the client pods' own rolling update is taken from Kubernetes.
	if got := string(w.daemonSet("engine-image-ei-1").Spec.UpdateStrategy.Type); got != "RollingUpdate" {
		t.Errorf("the engine image's strategy is %s", got)
	}
	if got := w.daemonSet(profile.ClientDaemonSet); got.Spec.UpdateStrategy.Type != "OnDelete" || !strings.Contains(got.Annotations["fairlead.io/update-strategy"], "RollingUpdate") {
		t.Errorf("the CSI plugin's strategy is %s, %v", got.Spec.UpdateStrategy.Type, got.Annotations)
	}
	if got := w.Events.About("Restarted Pod/im-node-1: by Fairlead for settings priority-class; no engine or replica runs on it"); len(got) != 1 {
		t.Errorf("events: %q", w.Events.About())
	}
}

// Invariant 7: whichever write the controller dies at, before or after it, the
// next one brings it to the same end, and no setting is applied before.
func TestCrashAtAnyWriteResumes(t *testing.T) {
	begin := func(t *testing.T) *world {
		w := newWorld(t, setting(class, ""))
		w.comeToRest()
		w.setSystem(class, "high")
		w.restart()
		return w
	}
	check := func(t *testing.T, w *world, what string) {
		t.Helper()
		w.Must(w.allOf("high"))
		s := w.system(class)
		if status := w.status(class); !status.Applied || *status.AppliedValue != "high" || !s.Status.Applied {
			t.Fatalf("%s: it ends with %+v, %+v", what, status, s)
		}
	}
	whole := begin(t)
	whole.comeToRest()
	check(t, whole, "without a crash")
	if len(whole.wrote) < 9 {
		t.Fatalf("only %q", whole.wrote)
	}
	for dies := range whole.wrote {
		for _, done := range []bool{false, true} {
			w := begin(t)
			w.watch = func() { w.mustBeAsTold("high") }
			w.Client.CrashAt(dies, done)
			for range 60 {
				_, err := w.reconcile()
				if w.Client.Crashed() {
					break
				}
				w.Must(err)
				w.others()
				w.Clock.SetTime(w.Clock.Now().Add(time.Second))
			}
			if !w.Client.Crashed() {
				t.Fatalf("it does not get to write %d", dies)
			}
			w.restart()
			w.comeToRest()
			check(t, w, fmt.Sprintf("write %d, %s, done %v", dies, whole.wrote[dies], done))
		}
	}
}

// The value is taken back while the controller is dead: what had begun to change
// is applied again only when all of it is back.
func TestCrashBeforeARevertedValueResumes(t *testing.T) {
	for dies := range 20 {
		for _, done := range []bool{false, true} {
			w := newWorld(t, setting(class, "low"))
			w.comeToRest()
			w.setSystem(class, "high")
			w.restart()
			w.Client.CrashAt(dies, done)
			for range 60 {
				if _, err := w.reconcile(); w.Client.Crashed() {
					break
				} else {
					w.Must(err)
				}
				w.others()
			}
			w.setSystem(class, "low")
			w.restart()
			w.watch = func() { w.mustBeAsTold("low") }
			w.comeToRest()
			w.Must(w.allOf("low"))
		}
	}
}

// A value in Fairlead's group that is taken away half-way leaves the default behind,
// and one that is taken away before anything was changed leaves what was installed.
func TestValueRemovedHalfwayIsRolledBack(t *testing.T) {
	const period = catalog.EngineImageProbePeriod
	for name, begins := range map[string]bool{"after a template was changed": true, "before": false} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			ds := w.daemonSet("engine-image-ei-1")
			ds.Spec.Template.Spec.Containers[0].LivenessProbe.PeriodSeconds = 7 // by the installer
			w.Must(w.API.Update(t.Context(), ds))
			w.comeToRest()
			if !begins {
				w.r.Applies = false
			}
			w.set(period, "20")
			w.step()
			if got := w.daemonSet("engine-image-ei-1").Spec.Template.Spec.Containers[0].LivenessProbe.PeriodSeconds == 20; got != begins {
				t.Fatalf("changed: %v", got)
			}
			s := w.own(period)
			s.Value = nil
			w.Must(w.API.Update(t.Context(), s))
			w.restart()
			w.r.Applies = true
			w.comeToRest()
			want := map[bool]int32{true: 5, false: 7}[begins]
			if got := w.daemonSet("engine-image-ei-1").Spec.Template.Spec.Containers[0].LivenessProbe.PeriodSeconds; got != want {
				t.Errorf("the period is %d, want %d", got, want)
			}
			if got := w.status(period); !got.Applied || got.Source != "default" || *got.AppliedValue != "5" || got.Underway {
				t.Errorf("got %+v", got)
			}
		})
	}
}

func TestWorkIsDecidedOnALiveRead(t *testing.T) {
	for name, test := range map[string]struct {
		pods   bool // comes to restart those, else to write templates
		change func(*world)
		want   string // what it does instead
	}{
		"a volume is attached": {false, func(w *world) {
			w.Must(w.API.Create(w.Context(), attached("pvc-1")))
			w.Must(w.API.Create(w.Context(), engineOn("node-1")))
			w.Must(w.API.Create(w.Context(), engineOn("node-2")))
		}, ""},
		"engines are about to start": {true, func(w *world) {
			w.Must(w.API.Create(w.Context(), engineOn("node-1")))
			w.Must(w.API.Create(w.Context(), engineOn("node-2")))
		}, ""},
		"an engine is about to start on one": {true, func(w *world) { w.Must(w.API.Create(w.Context(), engineOn("node-1"))) }, "delete v1.Pod/im-node-2"},
		"a pod is being recreated": {true, func(w *world) {
			pod := w.pod("im-node-2")
			w.Must(w.API.Delete(w.Context(), pod, client.Preconditions{UID: &pod.UID}))
		}, ""},
		"the value is taken back": {true, func(w *world) { w.setSystem(class, "") }, "patch v1.Deployment/csi-attacher"},
		"the value is another":    {true, func(w *world) { w.setSystem(class, "higher") }, "patch v1.Deployment/csi-attacher"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, setting(class, ""))
			w.comeToRest()
			w.setSystem(class, "high")
			for test.pods && w.daemonSet(profile.ClientDaemonSet).Spec.Template.Spec.PriorityClassName != "high" {
				w.step()
			}
			w.others()
			w.freeze()
			w.meanwhile, w.wrote = func() { test.change(w) }, nil
			w.step()
			if w.meanwhile != nil {
				t.Fatal("it did not look again")
			}
			did := slices.DeleteFunc(w.wrote, func(text string) bool { return strings.Contains(text, "Setting") })
			if got := strings.Join(did, ", "); got != test.want {
				t.Errorf("it wrote %s", got)
			}
		})
	}
}

// The cache may have seen the setting go back, and not yet what was written since.
func TestAppliedIsReportedOnALiveRead(t *testing.T) {
	w := newWorld(t, setting(class, "low"))
	w.comeToRest()
	w.freeze()
	behind := w.Client.Reader
	w.Client.Reader = nil
	w.setSystem(class, "high")
	w.step()
	if w.deployment().Spec.Template.Spec.PriorityClassName != "high" {
		t.Fatal("nothing has begun")
	}
	w.setSystem(class, "low")
	w.Client.Reader = mixed{w.API, behind}
	w.step()
	if w.status(class).Applied || w.system(class).Status.Applied {
		t.Error("it is called applied, and the Deployment is not in line")
	}
	w.Client.Reader = nil
	w.comeToRest()
	w.Must(w.allOf("low"))
}

// mixed is a cache that has heard of settings and not of components.
type mixed struct{ now, behind client.Reader }

func (m mixed) Get(ctx context.Context, key client.ObjectKey, o client.Object, opts ...client.GetOption) error {
	return m.now.Get(ctx, key, o, opts...)
}

func (m mixed) List(ctx context.Context, list client.ObjectList, opts ...client.ListOption) error {
	if strings.Contains(fmt.Sprintf("%T", list), "SettingList") {
		return m.now.List(ctx, list, opts...)
	}
	return m.behind.List(ctx, list, opts...)
}

// Between decision and deletion the pod is replaced.
func TestReplacedPodIsNotDeleted(t *testing.T) {
	w := newWorld(t, setting(class, ""))
	w.comeToRest()
	w.setSystem(class, "high")
	recreated := ""
	w.fail = func(verb string, o client.Object) error {
		if pod, ok := o.(*corev1.Pod); ok && recreated == "" {
			have := w.pod(pod.Name)
			w.Must(w.API.Delete(context.Background(), have, client.Preconditions{UID: &have.UID}))
			w.others()
			recreated = string(w.pod(pod.Name).UID)
		}
		return nil
	}
	w.comeToRest()
	if got := string(w.pod("im-node-1").UID); got != recreated {
		t.Errorf("the pod is %s, not the new one, %s", got, recreated)
	}
	if got := w.status(class); !got.Applied || got.LastError != "" {
		t.Errorf("got %+v", got)
	}
	w.Must(w.allOf("high"))
}

func TestConflictIsLeftToTheNextLook(t *testing.T) {
	w := newWorld(t, setting(class, ""))
	w.comeToRest()
	w.setSystem(class, "high")
	conflicts := 0
	w.fail = func(verb string, o client.Object) error {
		if o.GetName() == "csi-attacher" && conflicts == 0 {
			conflicts++
			d := w.deployment()
			d.Labels["theirs"] = "x"
			w.Must(w.API.Update(context.Background(), d))
		}
		return nil
	}
	w.step()
	if d := w.deployment(); conflicts != 1 || d.Spec.Template.Spec.PriorityClassName != "" {
		t.Fatalf("after %d conflicts it is %q", conflicts, d.Spec.Template.Spec.PriorityClassName)
	}
	if got := w.status(class).LastError; got != "" {
		t.Errorf("a conflict is no error: %s", got)
	}
	w.comeToRest()
	w.Must(w.allOf("high"))
	if w.deployment().Labels["theirs"] != "x" {
		t.Error("the other writer's change is lost")
	}
}

func TestErrorIsReportedUntilSuccess(t *testing.T) {
	w := newWorld(t, setting(class, ""))
	w.comeToRest()
	w.setSystem(class, "high")
	refused := apierrors.NewForbidden(corev1.Resource("deployments"), "csi-attacher", errors.New("a policy says no"))
	w.fail = func(verb string, o client.Object) error {
		if o.GetName() == "csi-attacher" {
			return refused
		}
		return nil
	}
	if _, err := w.reconcile(); !apierrors.IsForbidden(err) {
		t.Fatalf("got %v", err)
	}
	w.step() // other settings have their turn, and the report remains
	if got := w.status(class); got.Applied || !strings.Contains(got.LastError, "update Deployment csi-attacher: ") || !strings.Contains(got.LastError, "a policy says no") {
		t.Errorf("got %+v", got)
	}
	t.Run("until another writer has done it", func(t *testing.T) {
		d := w.deployment()
		d.Spec.Template.Spec.PriorityClassName = "high"
		w.Must(w.API.Update(t.Context(), d))
		w.comeToRest()
		if got := w.status(class); !got.Applied || got.LastError != "" {
			t.Errorf("got %+v", got)
		}
		w.Must(w.API.Create(t.Context(), attached("pvc-1")))
		w.setSystem(class, "higher")
		w.step()
		if got := w.status(class); got.Applied || got.LastError != "" {
			t.Errorf("an old error comes back: %+v", got)
		}
	})
	t.Run("until it goes well", func(t *testing.T) {
		w.Must(w.API.Delete(t.Context(), attached("pvc-1")))
		for w.status(class).LastError == "" {
			_, _ = w.reconcile()
		}
		w.fail = nil
		w.Clock.SetTime(w.Clock.Now().Add(afterRefusal))
		w.step()
		w.step()
		if got := w.status(class); got.Applied || got.LastError != "" {
			t.Errorf("got %+v", got)
		}
	})
}

func TestGuardModeChangesNothing(t *testing.T) {
	w := newWorld(t, setting(class, ""))
	w.r.Applies = false
	w.comeToRest()
	w.setSystem(class, "high")
	w.wrote = nil
	w.comeToRest()
	if !slices.Equal(w.wrote, []string{"status v1alpha1.Setting/priority-class"}) {
		t.Errorf("it wrote %q", w.wrote)
	}
	if got := w.status(class); got.Applied || !strings.HasPrefix(got.Conditions[0].Message, "waiting for the storage system to apply it; ") {
		t.Errorf("got %+v", got)
	}
}

// engineOn is an engine that is about to run on a node.
func engineOn(node string) *longhorn.Engine {
	e := &longhorn.Engine{ObjectMeta: at("pvc-1-e-" + node)}
	e.Spec.NodeID, e.Spec.DesireState = node, longhorn.InstanceRunning
	return e
}
