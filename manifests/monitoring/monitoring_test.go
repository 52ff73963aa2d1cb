package monitoring

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/fairlead-io/fairlead/internal/testkit/metricnames"
	"github.com/fairlead-io/fairlead/internal/testkit/must"
)

func allAlerts() []Alert {
	return append(append(Alerts(), NFSAlerts()...), FencingAlerts()...)
}

func expressions() []string {
	var all []string
	for _, a := range allAlerts() {
		all = append(all, a.Expr)
	}
	for _, r := range Rows() {
		for _, p := range r.Panels {
			for _, q := range p.Queries {
				all = append(all, q.Expr)
			}
		}
	}
	return all
}

func TestExpressionsUseMetricsOfTheCode(t *testing.T) {
	served := metricnames.Read(t, "../..")
	for _, e := range expressions() {
		served.Check(t, e, e)
	}
}

func TestAlertsAreCompleteAndTheirRunbooksExist(t *testing.T) {
	seen := map[string]bool{}
	for _, a := range allAlerts() {
		if seen[a.Name] || !strings.HasPrefix(a.Name, "Fairlead") || a.Severity != critical && a.Severity != warning || !strings.HasSuffix(a.Summary, ".") {
			t.Errorf("%+v", a)
		}
		seen[a.Name] = true
		page, anchor, _ := strings.Cut(a.Runbook, "#")
		text, err := os.ReadFile(filepath.Join("..", "..", "docs", page))
		must.Do(t, err)
		if anchor != "" && !hasHeading(string(text), anchor) {
			t.Errorf("%s: %s has no heading for #%s", a.Name, page, anchor)
		}
	}
}

var notInAnchor = regexp.MustCompile(`[^a-z0-9 -]`)

func hasHeading(page, anchor string) bool {
	for _, line := range strings.Split(page, "\n") {
		if title, ok := strings.CutPrefix(line, "#"); ok {
			title = notInAnchor.ReplaceAllString(strings.ToLower(strings.TrimLeft(title, "# ")), "")
			if strings.ReplaceAll(title, " ", "-") == anchor {
				return true
			}
		}
	}
	return false
}

// Panels do not overlap, and each has its own number.
func TestDashboardIsLaidOut(t *testing.T) {
	ids, taken := map[int]bool{}, map[position]bool{}
	var look func(panels []panel)
	look = func(panels []panel) {
		for _, p := range panels {
			if ids[p.ID] || taken[p.GridPos] || p.GridPos.X+p.GridPos.W > gridWidth || p.Type != "row" && len(p.Targets) == 0 {
				t.Errorf("%+v", p)
			}
			ids[p.ID], taken[p.GridPos] = true, true
			look(p.Panels)
			if p.Collapsed { // its panels take no room until it is unfolded
				for _, inner := range p.Panels {
					delete(taken, inner.GridPos)
				}
			}
		}
	}
	look(panels())
	must.Equal(t, len(ids) > 20, true)
}
