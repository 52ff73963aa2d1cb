package tainting

import (
	"context"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/fairlead-io/fairlead/internal/fence"
	"github.com/fairlead-io/fairlead/internal/fence/taint"
	"github.com/fairlead-io/fairlead/internal/testkit/fakeapi"
	"github.com/fairlead-io/fairlead/internal/testkit/must"
	"github.com/fairlead-io/fairlead/manifests/monitoring"
)

func TestAlertsUseResultsThatExist(t *testing.T) {
	used := 0
	for _, alert := range monitoring.FencingAlerts() {
		for _, label := range regexp.MustCompile(`result[!=]=?~?"([^"]*)"`).FindAllStringSubmatch(alert.Expr, -1) {
			used++
			for _, value := range strings.Split(label[1], "|") {
				must.True(t, slices.Contains(results, value), "no metric has result=%q: %s", value, alert.Expr)
			}
		}
	}
	must.True(t, used > 0, "no alert is on a result of tainting")
}

// Without the component fencing-tainting the controller may read neither leases nor the switch.
func TestMissingRightIsReportedOnce(t *testing.T) {
	for _, mode := range []taint.Mode{taint.On, taint.DryRun} {
		f := newFixture(t)
		f.r.Tainting.Mode, f.r.Tainting.MaxNodes = mode, 2
		f.lostLongAgo("node-1").lose("node-2", 9*time.Minute)
		f.lose("node-3", time.Minute) // too short
		f.failing, f.fault = "LeaseList", apierrors.NewForbidden(schema.GroupResource{Group: "coordination.k8s.io", Resource: "leases"}, "", nil)
		for range 3 {
			f.fails().pass(pace)
		}
		f.mustTaint()
		for _, about := range []string{"Node/node-1", "NodeFence/node-1", "Node/node-2", "NodeFence/node-2"} {
			f.mustReport("NotTainted", about, "("+taint.ReasonCheckFailed+"): listing the leases of nodes: leases.coordination.k8s.io is forbidden")
			f.mustReport("NotTainted", about, "component fencing-tainting")
		}
		f.mustHaveEvents(4).mustCount(2, "fairlead_not_tainted_nodes", taint.ReasonCheckFailed).mustCount(3, taintsTotal, resultFailed)
		f.failing = ""
		f.beat("node-0", f.Clock.Now()).reconcile()
		tainted := slices.Equal(f.tainted(), []string{"node-1"})
		must.True(t, tainted == (mode == taint.On), "%s: %q are tainted; events %q", mode, f.tainted(), f.Events.Notes())
		if mode == taint.DryRun {
			f.mustCount(2, "fairlead_would_taint_nodes")
		}
	}
}

func TestRefusedTaintIsReportedOnceForItsNode(t *testing.T) {
	f := newFixture(t)
	f.r.Tainting.MaxNodes = 2
	f.lose("node-1", 20*time.Minute).lostLongAgo("node-2")
	f.Client.Before = func(fakeapi.Write) error {
		return apierrors.NewForbidden(schema.GroupResource{Resource: "nodes"}, "node-1", nil)
	}
	for range 3 {
		f.pass(pace).beat("node-0", f.Clock.Now()).fails()
	}
	f.mustReport("NotTainted", "Node/node-1", "("+fence.ReasonWriteFailed+"): tainting node node-1: nodes \"node-1\" is forbidden")
	f.mustHaveEvents(2)
	must.True(t, len(f.Events.About("node-2")) == 0, "got events %q", f.Events.About())
	f.mustCount(1, "fairlead_not_tainted_nodes", fence.ReasonWriteFailed).mustCount(3, taintsTotal, resultFailed)
	f.Client.Before = nil
	f.reconcile().mustWait(pace).mustTaint().pass(pace).reconcile().mustTaint("node-1")
}

func TestEndOfTheControllerIsNoFailure(t *testing.T) {
	f := newFixture(t).lostLongAgo("node-1")
	f.failing, f.fault = "LeaseList", context.Canceled
	f.fails().mustHaveEvents(0).mustCount(0, taintsTotal, resultFailed)
}
