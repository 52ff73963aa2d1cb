package fencing

import (
	"go/ast"
	"go/parser"
	"go/token"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	dto "github.com/prometheus/client_model/go"

	"github.com/fairlead-io/fairlead/api/v1alpha1"
	"github.com/fairlead-io/fairlead/internal/fence"
	"github.com/fairlead-io/fairlead/internal/testkit"
	"github.com/fairlead-io/fairlead/internal/testkit/must"
	"github.com/fairlead-io/fairlead/manifests/monitoring"
)

// calm are reasons that need no attention; all others are counted.
var calm = []string{
	fence.ReasonReady, fence.ReasonStillMounted, fence.ReasonNodeDeleted, fence.ReasonReplaced, fence.ReasonNothingHeld, fence.ReasonSwitchedOff,
	fence.ReasonFenced, fence.ReasonDrained, fence.ReasonTainted, fence.ReasonSettling,
}

// reasons are all constants of the file that lists them.
func reasons(t *testing.T) []string {
	t.Helper()
	file := testkit.Value[*ast.File](t)(parser.ParseFile(token.NewFileSet(), "../../internal/fence/reasons.go", nil, 0))
	var all []string
	ast.Inspect(file, func(n ast.Node) bool {
		if text, ok := n.(*ast.BasicLit); ok && text.Kind == token.STRING {
			all = append(all, testkit.Value[string](t)(strconv.Unquote(text.Value)))
		}
		return true
	})
	return all
}

// A counter that appears with its first value has no increase: no alert sees the first refusal.
func TestEveryRefusalIsCountedFromZero(t *testing.T) {
	w := newWorld(t)
	all := reasons(t)
	must.True(t, len(all) >= 30, "only these reasons were found: %q", all)
	for _, reason := range all {
		_, counted := testkit.Metric(t, w.Registry, "fairlead_fence_refusals_total", reason)
		must.True(t, counted != slices.Contains(calm, reason), "%s is counted from zero: %t", reason, counted)
	}
}

func TestOnlyNodesWithHeldVolumesCountAsUnfenced(t *testing.T) {
	for _, test := range []struct {
		phase  v1alpha1.NodeFencePhase
		reason string
		counts bool
	}{
		{v1alpha1.NodeLost, fence.ReasonNotReady, true},
		{v1alpha1.NodeLost, fence.ReasonNothingHeld, false},
		{v1alpha1.NodeLost, fence.ReasonReleased, false},
		{v1alpha1.NodeFencing, fence.ReasonFencing, true},
		{v1alpha1.NodeFencing, fence.ReasonGuardOnly, true},
		{v1alpha1.NodeFencing, fence.ReasonWriteFailed, true},
		{v1alpha1.NodeFencing, fence.ReasonOverridden, false},
		{v1alpha1.NodeFencing, fence.ReasonSwitchedOff, false},
		{v1alpha1.NodeFencing, fence.ReasonTaintedButReady, false},
		{v1alpha1.NodeDrained, fence.ReasonDrained, false},
	} {
		held := isHeld(v1alpha1.NodeFenceStatus{Phase: test.phase, Reason: test.reason})
		must.True(t, held == test.counts, "%s (%s): its volumes are held and not fenced: %t", test.phase, test.reason, !test.counts)
	}
}

func TestAlertsUseLabelsThatExist(t *testing.T) {
	var alerts []string
	for _, alert := range monitoring.FencingAlerts() {
		alerts = append(alerts, alert.Expr)
		for _, label := range regexp.MustCompile(`(\w+)[!=]=?~?"([^"]*)"`).FindAllStringSubmatch(alert.Expr, -1) {
			for _, value := range strings.Split(label[2], "|") {
				known := label[1] == "phase" && slices.Contains(phases, v1alpha1.NodeFencePhase(value)) || label[1] == "reason" && slices.Contains(reasons(t), value) ||
					label[1] == "result" // the test of package tainting knows the results
				must.True(t, known, "no metric has %s=%q: %s", label[1], value, alert.Expr)
			}
		}
	}
	for _, metric := range []string{"fairlead_unfenced_nodes", "fairlead_not_fenceable_nodes", "fairlead_fence_refusals_total", "fairlead_automatic_taints_total"} {
		if !strings.Contains(strings.Join(alerts, " "), metric) {
			t.Errorf("no alert is on %s", metric)
		}
	}
}

func TestIncidentIsCountedAndTimed(t *testing.T) {
	w := newWorld(t)
	mustCount := func(when string, healthy, fencing, fenced, fenceTimes float64) {
		t.Helper()
		for phase, want := range map[v1alpha1.NodeFencePhase]float64{v1alpha1.NodeHealthy: healthy, v1alpha1.NodeFencing: fencing, v1alpha1.NodeFenced: fenced, v1alpha1.NodeUnfencing: 0} {
			got := w.Metric("fairlead_node_fences", string(phase))
			must.True(t, got == want, "%s: %v nodes are %s, want %v", when, got, phase, want)
		}
		held := w.Metric("fairlead_unfenced_nodes")
		must.True(t, held == fencing, "%s: %v nodes hold volumes and are not fenced, want %v", when, held, fencing)
		got := w.Metric("fairlead_fence_duration_seconds")
		must.True(t, got == fenceTimes, "%s: %v fences were timed, want %v", when, got, fenceTimes)
	}
	w.look("node-2").loseForGood().look()
	mustCount("lost", 1, 1, 0, 0)
	w.lookAfterCSI()
	mustCount("fenced", 1, 0, 1, 1)
	w.detach("pvc-a", "node-1").returnRebooted().look().mustBe(v1alpha1.NodeUnfencing, fence.ReasonUnfencing).pass(40 * time.Second)
	w.lookAfterCSI() // Unfenced
	w.pass(20 * time.Second)
	w.lookAfterCSI() // deleted
	mustCount("readmitted", 2, 0, 0, 1)
	must.Check(t, len(w.Events.About("Normal Ready Node/node-1")) == 1, "no event says that the node is readmitted: %q", w.Events.About())
	for _, f := range testkit.Value[[]*dto.MetricFamily](t)(w.Registry.Gather()) {
		if f.GetName() != "fairlead_unfence_duration_seconds" {
			continue
		}
		h := f.GetMetric()[0].GetHistogram()
		must.True(t, h.GetSampleCount() == 1 && h.GetSampleSum() == 60, "%d took %v s, want one of 60", h.GetSampleCount(), h.GetSampleSum())
	}
}
