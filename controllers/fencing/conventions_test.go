package fencing

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fairlead-io/fairlead/api/v1alpha1"
	"github.com/fairlead-io/fairlead/internal/fence"
	"github.com/fairlead-io/fairlead/internal/reads/csiaddons"
	"github.com/fairlead-io/fairlead/internal/testkit/fakeapi"
	"github.com/fairlead-io/fairlead/internal/testkit/must"
)

// A request of a person is consumed by the write that records the act, which is carried out once. A request that was made of another
// state of the node is void, and consumed too.
func TestRequestIsConsumedWithItsAct(t *testing.T) {
	for name, test := range map[string]struct {
		before  func(*world) *world
		gate    string
		happens func(*world)
		event   string
		// acts on record, and what is withheld and fenced afterwards.
		acts     int
		withheld []string
		fences   []string
	}{
		"a lost node is off": {
			func(w *world) *world { return w.pass(time.Minute).lose("node-1").look().mustWithhold("pvc-a") }, fence.GateAttach, func(*world) {},
			"Normal Overridden NodeFence/" + first + ": eve overrode gate attach (1 volumes): why not", 1, nil, nil,
		},
		"a fenced machine never returns": {
			(*world).fence, fence.GateUnfence, func(*world) {},
			"Normal Overridden NodeFence/" + first + ": eve overrode gate unfence (1 volumes): why not", 1, nil, []string{"Unfenced 192.168.1.1/32"},
		},
		"a healthy node is tainted": {
			(*world).mustBeHealthy, fence.GateTaint, func(*world) {},
			"Normal Overridden NodeFence/" + first + ": eve overrode gate taint (0 volumes): why not", 1, nil, nil,
		},
		"void: the node is back": {
			func(w *world) *world { return w.pass(time.Minute).lose("node-1").look().pass(time.Minute) }, fence.GateAttach, func(w *world) { w.recover() },
			"Warning Void NodeFence/" + first + ": the node has changed since eve asked to override gate attach", 1, []string{"pvc-a"}, nil,
		},
		"void: the node was lost again": {
			func(w *world) *world { return w.pass(time.Minute).lose("node-1").look().pass(time.Minute) }, fence.GateAttach, func(w *world) { w.lose("node-1") },
			"Warning Void NodeFence/" + first + ": the node has changed", 1, []string{"pvc-a"}, nil,
		},
		"void: there is no incident": {
			(*world).mustBeHealthy, fence.GateAttach, func(*world) {}, "Warning Void NodeFence/" + first, 1, nil, nil,
		},
	} {
		t.Run(name, func(t *testing.T) {
			for _, fails := range []bool{true, false} {
				w := test.before(newWorld(t).look()).override(test.gate)
				test.happens(w)
				if fails { // nothing is consumed, and no event says so
					w.refuse(func(client.Object) error { return errAPI }, "update").fails(1)
					must.True(t, len(w.spec().Acts) == 0 && fence.ReadRequest(w.record(first).Annotations).Gate == test.gate, "got %+v", w.record(first))
					must.Equal(t, w.Events.About("eve"), nil)
					w.accept()
				}
				w.Client.After = func(fakeapi.Write) error {
					record := w.record(first)
					asked := len(record.Annotations) > 0
					must.True(t, asked != (len(w.Events.About("eve")) > 0 || len(record.Spec.Acts) == test.acts), "asked: %t, with acts %+v", asked, record.Spec.Acts)
					return nil
				}
				w.look().mustHaveEvent(test.event).mustHaveFences(test.fences...).finish()
				must.Equal(t, len(w.Events.About("eve overrode"))+len(w.Events.About("eve asked")), 1)
				must.True(t, len(w.spec().Acts) == test.acts && len(w.record(first).Annotations) == 0, "got %+v", w.record(first))
				must.Equal(t, w.spec().Withheld, test.withheld)
			}
		})
	}
}

// waits is whether kubectl wait --for=condition=... ends: a condition of an earlier spec does not count.
func waits(n *v1alpha1.NodeFence, condition string) bool {
	c := meta.FindStatusCondition(n.Status.Conditions, condition)
	return c != nil && c.ObservedGeneration >= n.Generation && c.Status == "True"
}

// kubectl wait --for=condition=Fenced nodefence/... ends when the node is fenced, and at no write before.
func TestConditionsAreOfThePresentSpec(t *testing.T) {
	w := newWorld(t, secondCluster()...)
	mustBe := func(when string, fenced, held bool) {
		t.Helper()
		n := w.record(first)
		f, h := waits(n, v1alpha1.ConditionFenced), waits(n, v1alpha1.ConditionHeld)
		must.True(t, f == fenced && h == held, "%s: fenced: %t, held: %t, want %t and %t", when, f, h, fenced, held)
	}
	w.Client.After = func(fakeapi.Write) error {
		n := w.record(first)
		open := slices.ContainsFunc(n.Spec.Fences, func(f v1alpha1.Fence) bool { return f.State != v1alpha1.FenceFenced })
		must.True(t, !waits(n, v1alpha1.ConditionFenced) || len(n.Spec.Fences) == 2 && !open, "fenced with %+v", n.Spec.Fences)
		must.True(t, !waits(n, v1alpha1.ConditionHeld) || len(n.Spec.Withheld) > 0, "held without volumes")
		return nil
	}
	w.loseForGood()
	mustBe("healthy", false, false)
	w.look()
	mustBe("lost", false, true)
	w.driver = onlyFirst(w)
	w.lookAfterCSI()
	mustBe("half fenced", false, true)
	w.driver = nil
	for range 3 {
		w.pass(10 * time.Second).lookAfterCSI()
	}
	mustBe("fenced", true, false)
	w.detach("pvc-a", "node-1").detach("pvc-b", "node-1").look()
	mustBe("drained", true, false)
	w.returnRebooted().look()
	mustBe("unfencing", false, false)
}

// onlyFirst fails all NetworkFences but the first.
func onlyFirst(w *world) func(*csiaddons.NetworkFence) error {
	name := w.fences()[0].Name
	return func(n *csiaddons.NetworkFence) error {
		if n.Name != name {
			return errors.New("no quorum")
		}
		return nil
	}
}

// The spec is the memory. Without a status, as after a restore, the same is decided, and nothing is done to a NetworkFence.
func TestRestoredRecordWithoutStatusChangesNoDecision(t *testing.T) {
	for name, prepare := range map[string]func(*world) *world{
		"healthy":        (*world).mustBeHealthy,
		"lost":           func(w *world) *world { return w.lose("node-1").look() },
		"a person acted": func(w *world) *world { return w.lose("node-1").look().override(fence.GateAttach).look() },
		"fencing":        func(w *world) *world { return w.loseForGood().look() },
		"fenced":         (*world).fence,
		"drained":        (*world).drain,
		"not rebooted":   func(w *world) *world { return w.fence().untaint("node-1").recover().look() },
		"node deleted":   func(w *world) *world { return w.drain().delete(node("node-1", "")).look() },
		"rebooted":       func(w *world) *world { return w.drain().boot("node-1").look() },
		"unfencing":      func(w *world) *world { return w.drain().returnRebooted().look() },
		"came back":      func(w *world) *world { return w.lose("node-1").look().recover().look() },
	} {
		t.Run(name, func(t *testing.T) {
			w := prepare(newWorld(t).look())
			was, fences := w.record(first), w.fences()
			bare := was.DeepCopy()
			bare.Finalizers = nil
			w.Must(w.Update(t.Context(), bare))
			w.delete(bare)
			restored := &v1alpha1.NodeFence{Spec: was.Spec}
			restored.Name, restored.Labels, restored.Finalizers = was.Name, was.Labels, was.Finalizers
			w.create(restored).restart().look()
			is := w.recordMustBe(first, was.Status.Phase, was.Status.Reason, strings.TrimSuffix(was.Status.Message, fence.Link(was.Status.Reason))).record(first)
			must.Equal(t, is.Spec, was.Spec)
			wrote := slices.DeleteFunc(w.Client.Wrote(), func(write string) bool { return write == "update/status NodeFence/"+second }) // of the next boot
			must.Equal(t, wrote, []string{"update/status NodeFence/" + first})
			must.Equal(t, w.fences(), fences)
			for _, c := range was.Status.Conditions {
				must.Equal(t, meta.FindStatusCondition(is.Status.Conditions, c.Type).Status, c.Status, c.Type)
			}
		})
	}
}
