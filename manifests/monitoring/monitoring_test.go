package monitoring

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

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

// metricName finds metrics in expressions and in the code's strings; those of a histogram have suffixes.
var metricName = regexp.MustCompile(`\bfairlead_[a-z_]+`)

// metricsOfCode are the names in string literals of the product's code.
func metricsOfCode(t *testing.T) map[string]bool {
	t.Helper()
	names := map[string]bool{}
	for _, root := range []string{"cmd", "controllers", "internal", "webhook"} {
		must.Do(t, filepath.WalkDir(filepath.Join("..", "..", root), func(path string, _ fs.DirEntry, err error) error {
			if err != nil || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
				return err
			}
			file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
			if err != nil {
				return err
			}
			ast.Inspect(file, func(n ast.Node) bool {
				if text, ok := n.(*ast.BasicLit); ok && text.Kind == token.STRING {
					if name := strings.Trim(text.Value, "\"`"); metricName.FindString(name) == name {
						names[name] = true
					}
				}
				return true
			})
			return nil
		}))
	}
	return names
}

func TestExpressionsUseMetricsOfTheCode(t *testing.T) {
	known := metricsOfCode(t)
	must.Equal(t, len(known) > 20, true, "%d metrics found", len(known))
	for _, e := range expressions() {
		for _, name := range metricName.FindAllString(e, -1) {
			histogram := strings.TrimSuffix(strings.TrimSuffix(name, "_bucket"), "_count")
			if !known[name] && !known[histogram] {
				t.Errorf("%s: the code has no metric %s", e, name)
			}
		}
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
	look(NewDashboard().Panels)
	must.Equal(t, len(ids) > 20, true)
}
