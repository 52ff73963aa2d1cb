package monitoring

import (
	"context"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/common/model"
	"github.com/prometheus/common/promslog"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/promql/parser"
	"github.com/prometheus/prometheus/promql/promqltest"
	"github.com/prometheus/prometheus/rules"

	"github.com/fairlead-io/fairlead/manifests/monitoring"
)

// The series are in the notation of Prometheus' rule tests (v0.313.0): 1x5 is 1 six times, 0+2x5 adds 2 five times.

// healthy is a cluster without trouble, with two controllers of which one leads.
const healthy = `
	fairlead_admission_duration_seconds_count{rule="longhorn/settings"} 0+5x2000
	leader_election_master_status{job="fairlead-system/fairlead",pod="controller-0"} 1x2000
	leader_election_master_status{job="fairlead-system/fairlead",pod="controller-1"} 0x2000
	fairlead_admission_requests_total{rule="longhorn/settings",outcome="error",reason="facts unavailable"} 0x2000
	fairlead_admission_requests_total{rule="longhorn/settings",outcome="error",reason="bad review"} 0+1x2000
	fairlead_admission_requests_total{rule="longhorn/settings",outcome="allowed",reason="accepted"} 0+5x2000
	controller_runtime_reconcile_errors_total{job="fairlead-system/fairlead",controller="apply-longhorn"} 0x2000
	fairlead_setting_pending_since_timestamp_seconds{setting="priority-class",pod="controller-0"} 0x2000
	fairlead_settings_unknown 0x2000
	fairlead_rollout_phase{phase="Applied",pod="controller-0"} 1x2000
	fairlead_rollout_phase{phase="Invalid",pod="controller-0"} 0x2000
	fairlead_webhook_certificate_expiry_timestamp_seconds{pod="webhook-0"} 7776000x2000
	fairlead_build_info{version="v1.0.0",pod="webhook-0"} 1x2000
	fairlead_build_info{version="v1.0.0",pod="controller-0"} 1x2000
	fairlead_dead_mounts{reason="OptedOut"} 0x2000
	fairlead_workload_restarts_paused 0x2000
	fairlead_nodes_without_client{reason="Missing"} 0x2000
	fairlead_nfs_backend_health{namespace="storage",service="pool",backend="10.0.0.1",health="Healthy",pod="controller-0"} 1x2000
	fairlead_nfs_backend_health{namespace="storage",service="pool",backend="10.0.0.2",health="Healthy",pod="controller-0"} 1x2000
	fairlead_nfs_backend_health{namespace="storage",service="single",backend="10.0.0.9",health="Healthy",pod="controller-0"} 1x2000
	fairlead_nfs_prober_suspected{namespace="storage",service="pool"} 0x2000
	fairlead_nfs_probe_duration_seconds_bucket{verdict="Healthy",le="0.1"} 0+60x2000
	fairlead_nfs_probe_duration_seconds_bucket{verdict="Healthy",le="1"} 0+60x2000
	fairlead_nfs_probe_duration_seconds_bucket{verdict="Healthy",le="+Inf"} 0+60x2000
	fairlead_unfenced_nodes 0x2000
	fairlead_fence_refusals_total{reason="AddressInUse"} 0x2000
	fairlead_fence_refusals_total{reason="NotReady"} 0+1x2000
	fairlead_not_fenceable_nodes 0x2000
	fairlead_node_fences{phase="Healthy",pod="controller-0"} 3x2000
	fairlead_node_fences{phase="Fenced",pod="controller-0"} 0x2000
	fairlead_node_fences{phase="Healthy",pod="controller-1"} 0x2000
	fairlead_automatic_taints_total{result="failed"} 0x2000
`

// trouble has, for each alert, a series that replaces the ones of the same metric and labels, and when the alert has to
// fire at the latest. Steps are one minute.
var trouble = map[string]struct {
	series string
	by     time.Duration
}{
	"FairleadWebhookDown":        {`fairlead_admission_duration_seconds_count{rule="longhorn/settings"} 1x10`, 30 * time.Minute},
	"FairleadControllerDown":     {`leader_election_master_status{job="fairlead-system/fairlead",pod="controller-0"} 1x10 0x1990`, 30 * time.Minute},
	"FairleadWebhookErrors":      {`fairlead_admission_requests_total{rule="longhorn/settings",outcome="error",reason="facts unavailable"} 0x5 1x1990`, 10 * time.Minute},
	"FairleadReconcileErrors":    {`controller_runtime_reconcile_errors_total{job="fairlead-system/fairlead",controller="apply-longhorn"} 0+2x2000`, 40 * time.Minute},
	"FairleadSettingPending":     {`fairlead_setting_pending_since_timestamp_seconds{setting="priority-class",pod="controller-0"} 60x2000`, 24*time.Hour + 3*time.Minute},
	"FairleadRolloutInvalid":     {`fairlead_rollout_phase{phase="Invalid",pod="controller-0"} 1x2000`, 15 * time.Minute},
	"FairleadCertificateExpires": {`fairlead_webhook_certificate_expiry_timestamp_seconds{pod="webhook-0"} 100000x2000`, 20 * time.Minute},
	"FairleadVersionsDiffer":     {`fairlead_build_info{version="v1.1.0",pod="controller-0"} 1x2000`, 70 * time.Minute},
	"FairleadSettingsUnknown":    {`fairlead_settings_unknown 2x2000`, 70 * time.Minute},
	"FairleadDeadMounts":         {`fairlead_dead_mounts{reason="OptedOut"} 1x2000`, 10 * time.Minute},
	"FairleadRestartsPaused":     {`fairlead_workload_restarts_paused 1x2000`, 10 * time.Minute},
	"FairleadNodesWithoutClient": {`fairlead_nodes_without_client{reason="Missing"} 1x2000`, 15 * time.Minute},
	"FairleadNFSServerDown":      {`fairlead_nfs_backend_health{namespace="storage",service="pool",backend="10.0.0.2",health="Down",pod="controller-0"} 1x2000`, 10 * time.Minute},
	"FairleadNFSServerFailing":   {`fairlead_nfs_backend_health{namespace="storage",service="pool",backend="10.0.0.2",health="Failing",pod="controller-0"} 1x2000`, 10 * time.Minute},
	"FairleadNFSNoSpareServer":   {`fairlead_nfs_backend_health{namespace="storage",service="pool",backend="10.0.0.2",health="Down",pod="controller-0"} 1x2000`, 20 * time.Minute},
	"FairleadNFSProbesDoubted":   {`fairlead_nfs_prober_suspected{namespace="storage",service="pool"} 1x2000`, 10 * time.Minute},
	"FairleadNFSProbesSlow":      {`fairlead_nfs_probe_duration_seconds_bucket{verdict="Healthy",le="0.1"} 0x2000`, 20 * time.Minute},
	"FairleadNodeNotFenced":      {`fairlead_unfenced_nodes 1x2000`, 15 * time.Minute},
	"FairleadFenceRefused":       {`fairlead_fence_refusals_total{reason="AddressInUse"} 0x5 1x1990`, 10 * time.Minute},
	"FairleadNodeNotFenceable":   {`fairlead_not_fenceable_nodes 1x2000`, 20 * time.Minute},
	// The leader changes every eight hours, and has zeros for a moment.
	"FairleadNodeStaysOut":      {`fairlead_node_fences{phase="Fenced",pod="controller-0"} 1x480 0x1 1x480 0x1 1x480 0x1 1x500`, 24*time.Hour + 5*time.Minute},
	"FairleadTaintingFails":     {`fairlead_automatic_taints_total{result="failed"} 0x5 1x1990`, 10 * time.Minute},
	"FairleadFencingIsNotThere": {`fairlead_node_fences{phase="Healthy",pod="controller-0"} 0x2000`, 10 * time.Minute},
}

func alerts() []monitoring.Alert {
	return slices.Concat(monitoring.Alerts(), monitoring.NFSAlerts(), monitoring.FencingAlerts())
}

func TestAlertsFireInTroubleOnly(t *testing.T) {
	for _, a := range alerts() {
		t.Run(a.Name, func(t *testing.T) {
			bad, ok := trouble[a.Name]
			if !ok {
				t.Fatal("no trouble is described for this alert")
			}
			if at, fires := fires(t, a, healthy, bad.by+time.Hour); fires {
				t.Errorf("fires after %s on a healthy cluster", at)
			}
			if _, fires := fires(t, a, with(bad.series), bad.by); !fires {
				t.Errorf("does not fire within %s", bad.by)
			}
		})
	}
}

// with replaces a series of the healthy cluster, or adds one.
func with(series string) string {
	name, _, _ := strings.Cut(series, "} ")
	if !strings.Contains(series, "{") {
		name, _, _ = strings.Cut(series, " ")
	}
	healthyBackend := strings.NewReplacer(`health="Down"`, `health="Healthy"`, `health="Failing"`, `health="Healthy"`).Replace(name)
	var lines []string
	for line := range strings.Lines(healthy) {
		// A server has one health at a time.
		if line := strings.TrimSpace(line); !strings.HasPrefix(line, name) && !strings.HasPrefix(line, healthyBackend) {
			lines = append(lines, line+"\n")
		}
	}
	return strings.Join(append(lines, "\t"+series+"\n"), "")
}

// fires tells when the alert fires first, evaluated every minute.
func fires(t *testing.T, a monitoring.Alert, series string, until time.Duration) (time.Duration, bool) {
	t.Helper()
	storage := promqltest.LoadedStorage(t, "load 1m\n"+strings.TrimPrefix(series, "\n"))
	defer storage.Close()
	engine := promqltest.NewTestEngine(t, false, 5*time.Minute, promqltest.DefaultMaxSamplesPerQuery)
	expr, err := parser.NewParser(parser.Options{}).ParseExpr(a.Expr)
	if err != nil {
		t.Fatalf("%s: %v", a.Expr, err)
	}
	var hold model.Duration
	if a.For != "" {
		if hold, err = model.ParseDuration(a.For); err != nil {
			t.Fatal(err)
		}
	}
	rule := rules.NewAlertingRule(a.Name, expr, time.Duration(hold), 0, labels.FromStrings("severity", a.Severity),
		labels.FromStrings("summary", a.Summary), labels.EmptyLabels(), "", true, promslog.NewNopLogger())
	query := rules.EngineQueryFunc(engine, storage)
	for at := time.Duration(0); at <= until; at += time.Minute {
		if _, err := rule.Eval(context.Background(), 0, time.Unix(0, 0).Add(at), query, &url.URL{}, 0); err != nil {
			t.Fatal(err)
		}
		if slices.ContainsFunc(rule.ActiveAlerts(), func(active *rules.Alert) bool { return active.State == rules.StateFiring }) {
			return at, true
		}
	}
	return 0, false
}
