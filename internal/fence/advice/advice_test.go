package advice

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/fairlead-io/fairlead/api/v1alpha1"
	"github.com/fairlead-io/fairlead/internal/fence"
	"github.com/fairlead-io/fairlead/internal/testkit/must"
)

// everyReason is the value of each constant in reasons.go.
func everyReason(t *testing.T) []string {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), "../reasons.go", nil, 0)
	must.Do(t, err)
	var all []string
	ast.Inspect(file, func(n ast.Node) bool {
		if text, ok := n.(*ast.BasicLit); ok && text.Kind == token.STRING {
			reason, err := strconv.Unquote(text.Value)
			must.Do(t, err)
			all = append(all, reason)
		}
		return true
	})
	must.True(t, len(all) >= 30, "only these reasons were found: %q", all)
	return all
}

func TestEveryReasonHasAdvice(t *testing.T) {
	reasons := everyReason(t)
	for _, reason := range reasons {
		if _, known := advices[reason]; !known {
			t.Errorf("%s has none", reason)
		}
		a := Of("node-1-x", "node-1", v1alpha1.NodeFenceStatus{Phase: v1alpha1.NodeFencing, Reason: reason})
		must.Check(t, a.Next != "" && !regexp.MustCompile(`\b(RECORD|NODE|LABEL|TAINT)\b`).MatchString(a.Next), "%s: next is %q", reason, a.Next)
	}
	for reason := range advices {
		must.Check(t, slices.Contains(reasons, reason), "%s is no reason", reason)
	}
}

func TestAdviceNamesNodeAndRecord(t *testing.T) {
	long := strings.Repeat("n", 70)
	for _, test := range []struct {
		node   string
		status v1alpha1.NodeFenceStatus
		want   string
	}{
		{"node-1", v1alpha1.NodeFenceStatus{Phase: v1alpha1.NodeReturned, Reason: fence.ReasonTainted}, "kubectl taint nodes node-1 node.kubernetes.io/out-of-service-"},
		{"node-1", v1alpha1.NodeFenceStatus{Phase: v1alpha1.NodeDrained, Reason: fence.ReasonAddressInUse},
			"kubectl annotate nodefence node-1-x 'fairlead.io/override-gate=unfence: <why>'"},
		{long, v1alpha1.NodeFenceStatus{Phase: v1alpha1.NodeFencing, Reason: fence.ReasonUnanswered}, "kubectl get networkfences -l fairlead.io/node=" + fence.LabelValue(long) + " -o yaml"},
		{"node-1", v1alpha1.NodeFenceStatus{Phase: v1alpha1.NodeHealthy, Reason: fence.ReasonStillMounted}, "kubectl get nodefence node-1-x -w"},
		{"node-1", v1alpha1.NodeFenceStatus{Phase: v1alpha1.NodeHealthy, Reason: fence.ReasonReady}, "fairlead fences drill node-1"},
	} {
		got := Of("node-1-x", test.node, test.status)
		must.Check(t, got.Next == test.want, "%s %s: got\n%s\nwant\n%s", test.status.Phase, test.status.Reason, got.Next, test.want)
		must.Check(t, strings.Contains(got.Next, "annotate") == (got.OnlyIf != ""), "%s: only if %q", got.Next, got.OnlyIf)
	}
}

// A message links to the heading of its reason.
func TestEveryReasonHasHeading(t *testing.T) {
	for _, reason := range everyReason(t) {
		file, anchor, _ := strings.Cut(fence.PageOf(reason), "#")
		page, err := os.ReadFile("../../../" + file)
		must.Do(t, err)
		must.Check(t, anchor == strings.ToLower(reason) && regexp.MustCompile(`(?m)^#+ `+reason+`$`).Match(page), "%s has no heading %s", file, reason)
	}
}
