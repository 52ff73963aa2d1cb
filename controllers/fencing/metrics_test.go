package fencing

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/fairlead-io/fairlead/api/v1alpha1"
	"github.com/fairlead-io/fairlead/internal/fence"
)

// calm are reasons that nobody needs to look at; all others are counted.
var calm = []string{
	fence.ReasonReady, fence.ReasonStillMounted, fence.ReasonNodeDeleted, fence.ReasonReplaced, fence.ReasonNothingHeld, fence.ReasonSwitchedOff,
	fence.ReasonFenced, fence.ReasonDrained, fence.ReasonTainted, fence.ReasonSettling, fence.ReasonRenamed,
}

// reasons are the values of all constants in the file that lists them.
func reasons(t *testing.T) []string {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), "../../internal/fence/reasons.go", nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	var all []string
	ast.Inspect(file, func(n ast.Node) bool {
		if text, ok := n.(*ast.BasicLit); ok && text.Kind == token.STRING {
			reason, err := strconv.Unquote(text.Value)
			if err != nil {
				t.Fatal(err)
			}
			all = append(all, reason)
		}
		return true
	})
	return all
}

// A counter that appears with its first value has no increase: the first refusal of
// each reason would be the one that no alert sees.
func TestEveryRefusalIsCountedFromZero(t *testing.T) {
	w := newWorld(t)
	families, err := w.registry.Gather()
	w.must(err)
	var counted []string
	for _, f := range families {
		for _, m := range f.GetMetric() {
			if f.GetName() == "fairlead_fence_refusals_total" {
				counted = append(counted, m.GetLabel()[0].GetValue())
			}
		}
	}
	all := reasons(t)
	if len(all) < 30 {
		t.Fatalf("only these reasons were found: %q", all)
	}
	for _, reason := range all {
		if slices.Contains(counted, reason) == slices.Contains(calm, reason) {
			t.Errorf("%s is counted from zero: %t; it is calm: %t", reason, slices.Contains(counted, reason), slices.Contains(calm, reason))
		}
	}
}

// A node that is lost without protected volumes is no reason to wake anybody.
func TestNodesThatHoldNothingAreCountedApart(t *testing.T) {
	w := newWorld(t)
	counts := func(when string, lost, held float64) {
		t.Helper()
		if l, h := w.metric("fairlead_node_fences", string(v1alpha1.NodeLost)), w.metric("fairlead_unfenced_nodes", ""); l != lost || h != held {
			t.Errorf("%s: %v are lost, want %v; of %v the volumes are held, want %v", when, l, lost, h, held)
		}
	}
	both := func() { w.look("node-1"); w.look("node-2") }
	both()
	counts("all is well", 0, 0)
	w.step(time.Minute)
	w.lose("node-1")
	w.lose("node-2")
	both()
	w.expect("node-2", v1alpha1.NodeLost, fence.ReasonNothingHeld)
	counts("both are lost, and one holds a volume", 2, 1)
	w.restart()
	both()
	counts("a new leader sees the same", 2, 1)
	w.taint("node-1", "nodeshutdown")
	w.look("node-1")
	w.expect("node-1", v1alpha1.NodeFencing, fence.ReasonFencing)
	counts("one is being fenced", 1, 1)
	w.csi()
	w.look("node-1")
	counts("it is fenced", 1, 0)
}

// Nor is one whose protected volumes are all fenced, or that is Ready.
func TestNodesThatNobodyWaitsForAreNotUnfenced(t *testing.T) {
	for _, test := range []struct {
		phase  v1alpha1.NodeFencePhase
		reason string
		counts bool
	}{
		{v1alpha1.NodeLost, fence.ReasonNotReady, true},
		{v1alpha1.NodeLost, fence.ReasonNothingHeld, false},
		{v1alpha1.NodeFencing, fence.ReasonFencing, true},
		{v1alpha1.NodeFencing, fence.ReasonGuardOnly, true},
		{v1alpha1.NodeFencing, fence.ReasonWriteFailed, true},
		{v1alpha1.NodeFencing, fence.ReasonOverridden, false},
		{v1alpha1.NodeFencing, fence.ReasonSwitchedOff, false},
		{v1alpha1.NodeFencing, fence.ReasonTaintedButReady, false},
		{v1alpha1.NodeDrained, fence.ReasonDrained, false},
	} {
		m, err := newMetrics(prometheus.NewRegistry())
		if err != nil {
			t.Fatal(err)
		}
		m.is("node-1", v1alpha1.NodeFenceStatus{Phase: test.phase, Reason: test.reason})
		if m.holding["node-1"] != test.counts {
			t.Errorf("%s (%s): its volumes are held and not fenced: %t", test.phase, test.reason, !test.counts)
		}
	}
}

// An alert on a metric that is not there never fires.
func TestAlertsAreOnMetricsThatAreThere(t *testing.T) {
	var docs []byte
	for _, page := range []string{"operations.md", "reference/metrics.md"} {
		text, err := os.ReadFile("../../docs/" + page)
		if err != nil {
			t.Fatal(err)
		}
		docs = append(docs, text...)
	}
	var code strings.Builder
	for _, folder := range []string{"../../controllers", "../../webhook", "../../cmd"} {
		err := filepath.WalkDir(folder, func(path string, _ fs.DirEntry, err error) error {
			if err != nil || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
				return err
			}
			text, err := os.ReadFile(path)
			code.Write(text)
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	names := regexp.MustCompile(`fairlead_[a-z_]*[a-z]`).FindAllString(string(docs), -1)
	if len(names) < 15 {
		t.Fatalf("only these metrics were found: %q", names)
	}
	for _, name := range names {
		if !strings.Contains(code.String(), `"`+name+`"`) {
			t.Errorf("the docs have %s, and no code writes it", name)
		}
	}
	for _, alert := range regexp.MustCompile(`expr: (.*)`).FindAllStringSubmatch(string(docs), -1) {
		for _, label := range regexp.MustCompile(`(\w+)[!=]=?~?"([^"]*)"`).FindAllStringSubmatch(alert[1], -1) {
			for _, value := range strings.Split(label[2], "|") {
				known := label[1] == "phase" && slices.Contains(phases, v1alpha1.NodeFencePhase(value)) || label[1] == "reason" && slices.Contains(reasons(t), value) ||
					label[1] == "result" && strings.Contains(code.String(), `= "`+value+`"`)
				if !known {
					t.Errorf("no metric has %s=%q: %s", label[1], value, alert[1])
				}
			}
		}
	}
	for _, metric := range []string{"fairlead_unfenced_nodes", "fairlead_not_fenceable_nodes", "fairlead_fence_refusals_total", "fairlead_automatic_taints_total"} {
		if !slices.ContainsFunc(strings.Split(string(docs), "\n"), func(l string) bool { return strings.Contains(l, "expr: ") && strings.Contains(l, metric) }) {
			t.Errorf("no alert is on %s", metric)
		}
	}
}

// What csi-addons takes to let it in counts, not only what comes after that.
func TestHowLongItTakesToLetANodeInIsMeasured(t *testing.T) {
	w := newWorld(t)
	w.look("node-1")
	w.step(time.Minute)
	w.lose("node-1")
	w.taint("node-1", "nodeshutdown")
	w.look("node-1")
	w.csi()
	w.detach("pvc-a", "node-1")
	w.look("node-1")
	w.boot("node-1")
	w.untaint("node-1")
	w.look("node-1")
	w.step(2 * time.Minute)
	w.look("node-1")
	w.expect("node-1", v1alpha1.NodeUnfencing, fence.ReasonUnfencing)
	w.step(40 * time.Second)
	w.csi() // it is Unfenced
	w.look("node-1")
	w.step(20 * time.Second)
	w.csi() // its object is gone
	w.look("node-1")
	w.expect("node-1", v1alpha1.NodeHealthy, fence.ReasonReady)
	families, err := w.registry.Gather()
	w.must(err)
	for _, f := range families {
		if f.GetName() != "fairlead_unfence_duration_seconds" {
			continue
		}
		if h := f.GetMetric()[0].GetHistogram(); h.GetSampleCount() != 1 || h.GetSampleSum() != 60 {
			t.Errorf("%d took %v s, want one of 60", h.GetSampleCount(), h.GetSampleSum())
		}
	}
}
