package monitoring

import (
	"context"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/prometheus/promql/parser"
	"github.com/prometheus/prometheus/promql/promqltest"

	"github.com/fairlead-io/fairlead/manifests/monitoring"
)

// TestPanelsParse: Grafana replaces $__rate_interval.
func TestPanelsParse(t *testing.T) {
	for _, r := range monitoring.Rows() {
		for _, p := range r.Panels {
			for _, q := range p.Queries {
				if _, err := parser.NewParser(parser.Options{}).ParseExpr(inPrometheus(q.Expr)); err != nil {
					t.Errorf("%s: %s: %v", p.Title, q.Expr, err)
				}
			}
		}
	}
}

func inPrometheus(expr string) string { return strings.ReplaceAll(expr, "$__rate_interval", "5m") }

// optional rows have no data in the cluster that is scraped: it has no dead mounts, no lost nodes and no NFS service.
var optional = map[string]bool{"Workloads": true, "Fencing": true, "NFS services": true}

// Panels with no data in a cluster where nothing waits.
var empty = map[string]bool{"Dead mounts": true, "Lost nodes not fenced": true, "NFS servers not healthy": true, "Waiting since": true, "Blockers": true, "Restarts of components": true, "Skipped and refused": true}

// TestPanelsShowScrapedMetrics evaluates all panels on what TestSelfSignedInstallation has scraped from the processes of
// Fairlead (make test-e2e writes it).
func TestPanelsShowScrapedMetrics(t *testing.T) {
	files, err := filepath.Glob(filepath.Join(os.Getenv("FAIRLEAD_SCRAPES"), "*.metrics"))
	if err != nil || len(files) == 0 {
		t.Skip("no scraped metrics: make test-e2e writes them, and make -C e2e test-monitoring names their folder by FAIRLEAD_SCRAPES")
	}
	var load strings.Builder
	load.WriteString("load 1m\n")
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		pod := strings.TrimSuffix(filepath.Base(file), ".metrics")
		fmt.Fprintf(&load, "\tup{%s} 1x60\n", target(pod))
		for line := range strings.Lines(string(text)) {
			load.WriteString(series(strings.TrimSpace(line), pod))
		}
	}
	storage := promqltest.LoadedStorage(t, load.String())
	defer storage.Close()
	engine := promqltest.NewTestEngine(t, false, 5*time.Minute, promqltest.DefaultMaxSamplesPerQuery)
	results := func(expr string) int {
		query, err := engine.NewInstantQuery(context.Background(), storage, nil, inPrometheus(expr), time.Unix(0, 0).Add(30*time.Minute))
		if err != nil {
			t.Fatal(err)
		}
		vector, err := query.Exec(context.Background()).Vector()
		if err != nil {
			t.Fatalf("%s: %v", expr, err)
		}
		return len(vector)
	}
	for _, r := range monitoring.Rows() {
		for _, p := range r.Panels {
			for _, q := range p.Queries {
				if results(q.Expr) == 0 && !optional[r.Title] && !empty[p.Title] {
					t.Errorf("panel %q has no data: %s", p.Title, q.Expr)
				}
			}
		}
	}
	// absent() holds for a metric that Fairlead does not have.
	for _, a := range append(monitoring.Alerts(), monitoring.NFSAlerts()...) {
		if results(a.Expr) > 0 {
			t.Errorf("alert %s holds on a healthy cluster: %s", a.Name, a.Expr)
		}
	}
}

func target(pod string) string { return fmt.Sprintf(`job="fairlead-system/fairlead",pod=%q`, pod) }

// series turns a line of the exposition format into a series that keeps its value for an hour.
func series(line, pod string) string {
	if line == "" || strings.HasPrefix(line, "#") {
		return ""
	}
	at := strings.LastIndex(line, " ")
	name, text := line[:at], line[at+1:]
	value, err := strconv.ParseFloat(text, 64)
	if err != nil || math.IsNaN(value) || math.IsInf(value, 0) {
		return ""
	}
	if before, found := strings.CutSuffix(name, "}"); found {
		name = before + "," + target(pod) + "}"
	} else {
		name += "{" + target(pod) + "}"
	}
	return fmt.Sprintf("\t%s %sx60\n", name, strconv.FormatFloat(value, 'f', -1, 64))
}
