package apply

import (
	"context"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/fairlead-io/fairlead/cluster"
	"github.com/fairlead-io/fairlead/cluster/longhorn"
)

// afterLiveLook has something happen as soon as the facts are read live, before anything is done.
func (w *world) afterLiveLook(change func()) {
	live := interceptor.NewClient(w.store, interceptor.Funcs{
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
func TestAnInstanceManagerThatJustCameToRunSomethingIsNotRestarted(t *testing.T) {
	replica := &longhorn.Replica{ObjectMeta: at("pvc-1-r-1")}
	replica.Spec.NodeID, replica.Spec.DesireState = "node-1", longhorn.InstanceRunning
	reports := func(w *world) {
		m := w.manager("im-node-1")
		m.Status.InstanceEngines = map[string]longhorn.InstanceProcess{"pvc-1-e-0": {Status: longhorn.InstanceProcessStatus{State: longhorn.InstanceRunning}}}
		w.must(w.store.Update(context.Background(), m))
	}
	for name, test := range map[string]struct {
		placed   func(*world)
		restarts bool
	}{
		"an engine is placed on it":           {placed: func(w *world) { w.must(w.store.Create(context.Background(), engineOn("node-1"))) }},
		"a replica is":                        {placed: func(w *world) { w.must(w.store.Create(context.Background(), replica.DeepCopy())) }},
		"it reports one":                      {placed: reports},
		"an engine is placed on another node": {placed: func(w *world) { w.must(w.store.Create(context.Background(), engineOn("node-2"))) }, restarts: true},
		"the instance manager is gone":        {placed: func(w *world) { w.must(w.store.Delete(context.Background(), w.manager("im-node-1"))) }, restarts: true},
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
