package apply

import (
	"context"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/fairlead-io/fairlead/internal/longhorn"
	"github.com/fairlead-io/fairlead/internal/reads"
	"github.com/fairlead-io/fairlead/internal/settings/catalog"
	"github.com/fairlead-io/fairlead/internal/testkit/must"
	"github.com/fairlead-io/fairlead/internal/testkit/objects"
)

// afterLiveLook does something once, between the live facts and the work.
func (w *world) afterLiveLook(do func()) {
	live := interceptor.NewClient(w.API, interceptor.Funcs{
		List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, opts ...client.ListOption) error {
			err := c.List(ctx, list, opts...)
			if _, last := list.(*corev1.NodeList); last && do != nil {
				do()
				do = nil
			}
			return err
		},
	})
	w.r.Live = reads.NewReader(names, live, live)
}

// reportEngine lets an instance manager report a running engine.
func reportEngine(w *world) {
	change(w, "im-node-1", func(m *longhorn.InstanceManager) {
		m.Status.InstanceEngines = map[string]longhorn.InstanceProcess{"pvc-1-e-0": {Status: longhorn.InstanceProcessStatus{State: longhorn.InstanceRunning}}}
	})
}

// Engines, replicas and nodes are listed one after the other: an engine may be placed on an instance manager meanwhile.
func TestBusyInstanceManagerIsNotRestarted(t *testing.T) {
	replica := &longhorn.Replica{ObjectMeta: objects.Here("pvc-1-r-1")}
	replica.Spec.NodeID, replica.Spec.DesireState = "node-1", longhorn.InstanceRunning
	for name, test := range map[string]struct {
		live     func(*world)
		restarts bool
	}{
		"placed engine":            {func(w *world) { w.create(engineOn("node-1")) }, false},
		"placed replica":           {func(w *world) { w.create(replica.DeepCopy()) }, false},
		"reported engine":          {reportEngine, false},
		"engine on another node":   {func(w *world) { w.create(engineOn("node-2")) }, true},
		"deleted instance manager": {func(w *world) { w.remove(w.manager("im-node-1")) }, true},
	} {
		t.Run(name, func(t *testing.T) {
			w := changing(t)
			w.stepUntilTemplates()
			w.wrote = nil
			w.afterLiveLook(func() { test.live(w) })
			w.step()
			got := slices.Contains(w.wrote, "delete v1.Pod/im-node-1")
			must.Check(t, got == test.restarts && w.status(class).LastError == "", "restarted %v: %q, error %q", got, w.wrote, w.status(class).LastError)
		})
	}
}

// Only a precondition can detect a change right before the deletion.
func TestComponentChangedBeforeDeletionIsLeft(t *testing.T) {
	stopped := func(pod *corev1.Pod) {
		pod.Status = corev1.PodStatus{Phase: corev1.PodPending, Conditions: []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionFalse}}}
	}
	for name, test := range map[string]struct {
		set      catalog.Name
		value    string
		deletion string
		before   func(*corev1.Pod)
		change   func(*world)
		remains  func(*world) bool
	}{
		"instance manager that reports an engine": {catalog.V1DataEngine, "false", "delete longhorn.InstanceManager/im-node-1", objects.ReadyPod,
			reportEngine, func(w *world) bool { return w.manager("im-node-1") != nil }},
		"stopped pod that has started": {class, "high", "delete v1.Pod/im-node-1", stopped,
			func(w *world) { change(w, "im-node-1", func(pod *corev1.Pod) { pod.Status.Phase = corev1.PodRunning }) },
			func(w *world) bool { return w.pod("im-node-1") != nil }},
	} {
		t.Run(name, func(t *testing.T) {
			w := atRest(t, setting(class, ""), setting(catalog.V1DataEngine, "true"))
			change(w, "im-node-1", test.before)
			w.setSystem(test.set, test.value)
			deletions := w.once(test.deletion, func() error {
				test.change(w)
				return nil
			})
			for range 20 {
				if w.step(); *deletions > 0 {
					break
				}
				w.others()
			}
			must.Check(t, *deletions != 0 && test.remains(w) && w.status(test.set).LastError == "",
				"%d deletions, remains %v, error %q", *deletions, test.remains(w), w.status(test.set).LastError)
		})
	}
}
