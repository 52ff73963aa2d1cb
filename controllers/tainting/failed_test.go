package tainting

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/fairlead-io/fairlead/internal/fence"
	"github.com/fairlead-io/fairlead/internal/fence/taint"
)

func (f *fixture) fails() {
	f.Helper()
	if _, err := f.r.Reconcile(f.Context(), ctrl.Request{}); err == nil {
		f.Error("it is not tried again")
	}
}

// Without its component the controller may read neither leases nor the switch, and
// taints nobody. Whoever looks at the node or at its record is told so, once.
func TestWhatCanNotBeReadIsSaidOnce(t *testing.T) {
	for _, mode := range []taint.Mode{taint.On, taint.DryRun} {
		f := newFixture(t)
		f.r.Tainting.Mode, f.r.Tainting.MaxNodes = mode, 2
		f.lose("node-1", 10*time.Minute)
		f.lose("node-2", 9*time.Minute)
		f.lose("node-3", time.Minute) // not yet
		f.failing, f.fault = "LeaseList", apierrors.NewForbidden(schema.GroupResource{Group: "coordination.k8s.io", Resource: "leases"}, "", nil)
		for range 3 {
			f.fails()
			f.pass(pace)
		}
		f.mustTaint()
		for _, about := range []string{"Node/node-1", "NodeFence/node-1", "Node/node-2", "NodeFence/node-2"} {
			f.mustSay("NotTainted", about, "("+taint.ReasonCheckFailed+"): listing the leases of nodes: leases.coordination.k8s.io is forbidden")
			f.mustSay("NotTainted", about, "component fencing-tainting")
		}
		if len(f.notes) != 4 {
			t.Errorf("said %q", f.notes)
		}
		if n, failed := f.metric("fairlead_not_tainted_nodes", taint.ReasonCheckFailed), f.count(resultFailed); n != 2 || failed != 3 {
			t.Errorf("%v nodes are not tainted for it, after %v failures", n, failed)
		}
		f.failing = ""
		f.beat("node-0", f.clock.Now())
		f.reconcile()
		if tainted := slices.Equal(f.tainted(), []string{"node-1"}); tainted != (mode == taint.On) {
			t.Errorf("%s: %q are tainted; said %q", mode, f.tainted(), f.notes)
		}
		if n := f.metric("fairlead_would_taint_nodes"); mode == taint.DryRun && n != 2 {
			t.Errorf("%v would be tainted", n)
		}
	}
}

// A taint that is not taken is said, too, and of no other node.
func TestATaintThatIsNotTakenIsSaidOnce(t *testing.T) {
	f := newFixture(t)
	f.r.Tainting.MaxNodes = 2
	f.lose("node-1", 20*time.Minute)
	f.lose("node-2", 10*time.Minute)
	f.patchFails = apierrors.NewForbidden(schema.GroupResource{Resource: "nodes"}, "node-1", nil)
	for range 3 {
		f.fails()
		f.pass(pace)
		f.beat("node-0", f.clock.Now())
	}
	f.mustSay("NotTainted", "Node/node-1", "("+fence.ReasonWriteFailed+"): tainting node node-1: nodes \"node-1\" is forbidden")
	if len(f.notes) != 2 || slices.ContainsFunc(f.notes, func(n string) bool { return strings.Contains(n, "node-2") }) {
		t.Errorf("said %q", f.notes)
	}
	if n, failed := f.metric("fairlead_not_tainted_nodes", fence.ReasonWriteFailed), f.count(resultFailed); n != 1 || failed != 3 {
		t.Errorf("%v nodes are not tainted for it, after %v failures", n, failed)
	}
	f.patchFails = nil
	f.reconcile()
	f.mustTaint("node-1")
}

// A controller that ends while it looks has nothing to say of nodes.
func TestAnEndIsNoFailure(t *testing.T) {
	f := newFixture(t)
	f.lose("node-1", 10*time.Minute)
	f.failing, f.fault = "LeaseList", context.Canceled
	f.fails()
	if len(f.notes) != 0 || f.count(resultFailed) != 0 {
		t.Errorf("said %q, counted %v", f.notes, f.count(resultFailed))
	}
}
