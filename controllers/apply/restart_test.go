package apply

import (
	"context"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/fairlead-io/fairlead/internal/cluster"
	"github.com/fairlead-io/fairlead/internal/cluster/longhorn"
	"github.com/fairlead-io/fairlead/internal/settings/catalog"
)

// afterLiveLook has something happen as soon as the facts are read live, before anything is done.
func (w *world) afterLiveLook(change func()) {
	live := interceptor.NewClient(w.API, interceptor.Funcs{
		List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, opts ...client.ListOption) error {
			err := c.List(ctx, list, opts...)
			if _, last := list.(*corev1.NodeList); last && change != nil {
				change()
				change = nil
			}
			return err
		},
	})
	w.r.Live = cluster.NewReader(profile, live, live)
}

// Engines, replicas and nodes are listed one after the other: what is placed on
// an instance manager meanwhile must not die with its pod.
func TestBusyInstanceManagerIsNotRestarted(t *testing.T) {
	replica := &longhorn.Replica{ObjectMeta: at("pvc-1-r-1")}
	replica.Spec.NodeID, replica.Spec.DesireState = "node-1", longhorn.InstanceRunning
	reports := func(w *world) {
		m := w.manager("im-node-1")
		m.Status.InstanceEngines = map[string]longhorn.InstanceProcess{"pvc-1-e-0": {Status: longhorn.InstanceProcessStatus{State: longhorn.InstanceRunning}}}
		w.Must(w.API.Update(context.Background(), m))
	}
	for name, test := range map[string]struct {
		placed   func(*world)
		restarts bool
	}{
		"an engine is placed on it":           {placed: func(w *world) { w.Must(w.API.Create(context.Background(), engineOn("node-1"))) }},
		"a replica is":                        {placed: func(w *world) { w.Must(w.API.Create(context.Background(), replica.DeepCopy())) }},
		"it reports one":                      {placed: reports},
		"an engine is placed on another node": {placed: func(w *world) { w.Must(w.API.Create(context.Background(), engineOn("node-2"))) }, restarts: true},
		"the instance manager is gone":        {placed: func(w *world) { w.Must(w.API.Delete(context.Background(), w.manager("im-node-1"))) }, restarts: true},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, setting(class, ""))
			w.comeToRest()
			w.setSystem(class, "high")
			for w.daemonSet(profile.ClientDaemonSet).Spec.Template.Spec.PriorityClassName != "high" {
				w.step()
			}
			w.others()
			w.wrote = nil
			w.afterLiveLook(func() { test.placed(w) })
			w.step()
			if got := slices.Contains(w.wrote, "delete v1.Pod/im-node-1"); got != test.restarts {
				t.Errorf("restarted %v: %q", got, w.wrote)
			}
			if got := w.status(class).LastError; got != "" {
				t.Errorf("it is no error: %s", got)
			}
		})
	}
}

// What changes right before the deletion is seen by nothing but its precondition.
func TestComponentChangedBeforeDeletionIsLeft(t *testing.T) {
	const engine = catalog.V1DataEngine
	for name, test := range map[string]struct {
		set     catalog.Name
		value   string
		stopped bool
		change  func(*world)
		left    func(*world) bool
	}{
		"an instance manager that reports an engine is not removed": {
			set: engine, value: "false",
			change: func(w *world) {
				m := w.manager("im-node-1")
				m.Status.InstanceEngines = map[string]longhorn.InstanceProcess{"pvc-1-e-0": {Status: longhorn.InstanceProcessStatus{State: longhorn.InstanceRunning}}}
				w.Must(w.API.Update(context.Background(), m))
			},
			left: func(w *world) bool { return w.manager("im-node-1") != nil },
		},
		"a pod that has started is not restarted as one that does not run": {
			set: class, value: "high", stopped: true,
			change: func(w *world) {
				pod := w.pod("im-node-1")
				pod.Status.Phase = corev1.PodRunning
				w.Must(w.API.Status().Update(context.Background(), pod))
			},
			left: func(w *world) bool { return w.pod("im-node-1") != nil },
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, setting(class, ""), setting(engine, "true"))
			w.comeToRest()
			if pod := w.pod("im-node-1"); test.stopped {
				pod.Status = corev1.PodStatus{Phase: corev1.PodPending, Conditions: []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionFalse}}}
				w.Must(w.API.Status().Update(t.Context(), pod))
			}
			w.setSystem(test.set, test.value)
			deleted := false
			w.fail = func(verb string, o client.Object) error {
				if verb == "delete" && o.GetName() == "im-node-1" {
					test.change(w)
					deleted = true
				}
				return nil
			}
			for range 20 {
				if w.step(); deleted {
					break
				}
				w.others()
			}
			if !deleted || !test.left(w) {
				t.Errorf("came to its deletion %v, it is left %v", deleted, test.left(w))
			}
			if got := w.status(test.set).LastError; got != "" {
				t.Errorf("it is no error: %s", got)
			}
		})
	}
}
