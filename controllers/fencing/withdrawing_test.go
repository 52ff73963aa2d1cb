package fencing

import (
	"context"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fairlead-io/fairlead/api/v1alpha1"
	"github.com/fairlead-io/fairlead/internal/cluster/csiaddons"
	"github.com/fairlead-io/fairlead/internal/config"
	"github.com/fairlead-io/fairlead/internal/fence"
)

// nothingShutsOut while all is taken back.
func (w *world) nothingShutsOut() {
	w.Helper()
	for range 4 {
		for _, n := range w.fences() {
			if n.Spec.FenceState != csiaddons.Unfenced && n.DeletionTimestamp == nil {
				w.Fatalf("%s shuts the node out", n.Name)
			}
		}
		w.csi()
		w.look("node-1")
	}
	if left := w.fences(); len(left) > 0 {
		w.Fatalf("left over: %+v", left)
	}
}

// The API server did not take the fence before the node was well again.
func TestANodeThatIsReadyAgainIsNotFencedByWhatWasRecorded(t *testing.T) {
	for name, tainted := range map[string]bool{"tainted": true, "untainted": false} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.gone("node-1")
			w.funcs.Create = func(context.Context, client.WithWatch, client.Object, ...client.CreateOption) error { return errAPI }
			if err := w.fails("node-1"); err == nil {
				t.Fatal("no error")
			}
			w.funcs.Create = nil
			w.restart()
			w.change("node-1", w.ready(corev1.ConditionTrue))
			if !tainted {
				w.untaint("node-1")
			}
			w.look("node-1")
			w.nothingShutsOut()
			reason := fence.ReasonReady
			if tainted {
				reason = fence.ReasonTaintedButReady
			}
			w.expect("node-1", v1alpha1.NodeHealthy, reason)
		})
	}
}

func TestModeOffTakesBackWhatWasAskedFor(t *testing.T) {
	w := newWorld(t)
	w.gone("node-1")
	w.look("node-1")
	w.expect("node-1", v1alpha1.NodeFencing, fence.ReasonFencing)
	w.config = fencingOf(config.Off)
	w.restart()
	w.look("node-1")
	w.expect("node-1", v1alpha1.NodeFencing, fence.ReasonSwitchedOff)
	w.nothingShutsOut()
	w.expect("node-1", v1alpha1.NodeLost, fence.ReasonNothingHeld)
}
