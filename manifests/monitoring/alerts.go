// Package monitoring describes Fairlead's alerts and its dashboard. The manifests of prometheus-operator and the JSON of
// Grafana are generated from the description (make generate), so that both use the metrics that the code has.
package monitoring

// Alert is one alerting rule of Prometheus.
type Alert struct {
	Name string
	// Expr is in PromQL. Both replicas of the controller are scraped: the one that does not lead has zeros or nothing, so
	// expressions aggregate over replicas.
	Expr string
	// For is how long the expression holds before the alert fires; empty is at once.
	For string
	// Severity is critical (data or availability is at risk now) or warning.
	Severity string
	Summary  string
	// Runbook is a page of docs/, with an anchor.
	Runbook string
}

// Severities.
const (
	critical = "critical"
	warning  = "warning"
)

// own selects Fairlead's targets, with prometheus-operator and with the scrape configuration of docs/operations.md.
const own = `job=~".*fairlead.*"`

// Alerts are for every installation.
func Alerts() []Alert {
	return []Alert{
		{"FairleadWebhookDown", `absent(fairlead_admission_duration_seconds_count)`, "5m", critical,
			"No webhook of Fairlead answers Prometheus. Changes of danger-zone settings are refused.", "install.md#if-fairlead-is-down"},
		{"FairleadControllerDown", `absent(leader_election_master_status{` + own + `} == 1)`, "5m", critical,
			"No controller of Fairlead leads: nothing is applied, published, repaired or fenced.", "install.md#if-fairlead-is-down"},
		{"FairleadWebhookErrors", `sum by (rule, reason) (increase(fairlead_admission_requests_total{outcome="error",reason!="bad review"}[15m])) > 0`, "", warning,
			"Rule {{ $labels.rule }} of the webhook could not decide ({{ $labels.reason }}); the log says why.", "reference/metrics.md#webhook"},
		{"FairleadReconcileErrors", `sum by (controller) (increase(controller_runtime_reconcile_errors_total{` + own + `}[15m])) > 10`, "15m", warning,
			"Controller {{ $labels.controller }} fails again and again; the log says why.", "reference/metrics.md#all-controllers"},
		{"FairleadSettingPending", `max by (setting) (time() - (fairlead_setting_pending_since_timestamp_seconds > 0)) > 86400`, "", warning,
			"Setting {{ $labels.setting }} waits for a day: fairlead settings {{ $labels.setting }} says for what.", "settings.md#watch-a-change"},
		{"FairleadRolloutInvalid", `max(fairlead_rollout_phase{phase="Invalid"}) > 0`, "10m", critical,
			"The network for RWX volumes is not rolled out: a value or the record must be corrected. fairlead status says which.", "settings.md#watch-a-change"},
		{"FairleadCertificateExpires", `min(fairlead_webhook_certificate_expiry_timestamp_seconds > 0) - time() < 172800`, "15m", critical,
			"The webhook's certificate expires within two days. Afterwards, changes of danger-zone settings are refused.", "install.md#if-fairlead-is-down"},
		{"FairleadVersionsDiffer", `count(count by (version) (fairlead_build_info)) > 1`, "1h", warning,
			"Fairlead's processes run different versions: an upgrade has not ended.", "upgrade.md"},
		{"FairleadSettingsUnknown", `max(fairlead_settings_unknown) > 0`, "1h", warning,
			"The storage system has {{ $value }} settings that this Fairlead does not know.", "trouble.md#unknownsettings"},
		{"FairleadDeadMounts", `sum by (reason) (fairlead_dead_mounts) > 0`, "5m", critical,
			"{{ $value }} workload pods have a dead mount and are not restarted ({{ $labels.reason }}).", "reference/data-path.md"},
		{"FairleadRestartsPaused", `max(fairlead_workload_restarts_paused) > 0`, "5m", critical,
			"Restarts of workloads with dead mounts are paused.", "reference/data-path.md#the-brake"},
		{"FairleadNodesWithoutClient", `sum by (reason) (fairlead_nodes_without_client) > 0`, "10m", warning,
			"On {{ $value }} nodes dead mounts are not detected ({{ $labels.reason }}).", "reference/metrics.md#workloads"},
	}
}

// Servers of an NFSService, and its healthy ones: a service without a healthy one has no series for them.
const (
	servers        = `count by (namespace, service) (max by (namespace, service, backend) (fairlead_nfs_backend_health))`
	healthyServers = `count by (namespace, service) (max by (namespace, service, backend) (fairlead_nfs_backend_health{health="Healthy"}))`
)

// NFSAlerts are for installations with NFS services. Without them, no metric of theirs exists, and none fires.
func NFSAlerts() []Alert {
	return []Alert{
		{"FairleadNFSServerDown", `max by (namespace, service, backend) (fairlead_nfs_backend_health{health="Down"}) == 1`, "5m", warning,
			"Server {{ $labels.backend }} of NFSService {{ $labels.namespace }}/{{ $labels.service }} is out; lastError in its status has the cause.", "nfs-operations.md#alerts"},
		{"FairleadNFSServerFailing", `max by (namespace, service, backend) (fairlead_nfs_backend_health{health="Failing"}) == 1`, "5m", critical,
			"Server {{ $labels.backend }} of NFSService {{ $labels.namespace }}/{{ $labels.service }} fails and is still used, since too many are out.", "nfs-operations.md#alerts"},
		{"FairleadNFSNoSpareServer", "(" + healthyServers + " or 0 * " + servers + ") < 2 and " + servers + " > 1", "15m", warning,
			"NFSService {{ $labels.namespace }}/{{ $labels.service }} has no healthy server left for the next failure.", "nfs-operations.md#alerts"},
		{"FairleadNFSProbesDoubted", `max by (namespace, service) (fairlead_nfs_prober_suspected) == 1`, "5m", critical,
			"So many servers of NFSService {{ $labels.namespace }}/{{ $labels.service }} fail at once that the probes are doubted: look at the controller's network.", "nfs-operations.md#alerts"},
		{"FairleadNFSProbesSlow", `histogram_quantile(0.99, sum by (le) (rate(fairlead_nfs_probe_duration_seconds_bucket{verdict="Healthy"}[5m]))) > 0.5`, "10m", warning,
			"Probes of NFS servers come near their timeout.", "nfs-operations.md#alerts"},
	}
}

// FencingAlerts are for installations with fencing. Without it, FairleadFencingIsNotThere would fire.
func FencingAlerts() []Alert {
	return []Alert{
		{"FairleadNodeNotFenced", `sum(fairlead_unfenced_nodes) > 0`, "10m", critical,
			"A lost node is not fenced, and its volumes are held: kubectl get nodefences -o wide.", "fencing.md"},
		{"FairleadFenceRefused", `sum by (reason) (increase(fairlead_fence_refusals_total{reason!="NotReady"}[15m])) > 0`, "", warning,
			"A node is not fenced or not unfenced ({{ $labels.reason }}).", "fencing.md#reasons"},
		{"FairleadNodeNotFenceable", `sum(fairlead_not_fenceable_nodes) > 0`, "15m", warning,
			"A healthy node could not be fenced if it were lost: kubectl get nodefences, and fairlead fences drill NODE.", "fencing.md#notfenceable"},
		{"FairleadNodeStaysOut", `sum(max_over_time(fairlead_node_fences{phase=~"Fenced|Drained|Returned|Unfencing"}[15m])) > 0`, "24h", warning,
			"A node is fenced for a day: mend it, or remove it for good.", "fencing.md"},
		{"FairleadTaintingFails", `sum(increase(fairlead_automatic_taints_total{result="failed"}[15m])) > 0`, "", warning,
			"A lost node is not tainted, since that failed. Is the component fencing-tainting installed? See the events of the node.", "fencing-setup.md#automatic-taints"},
		{"FairleadFencingIsNotThere", `absent(fairlead_node_fences) or sum(fairlead_node_fences) == 0`, "5m", critical,
			"The record of nodes is not kept. After fencing.maxAge (15m), a node that is lost can't be fenced by it.", "fencing.md"},
	}
}

// docsURL is where runbook links point.
const docsURL = "https://github.com/fairlead-io/fairlead/blob/main/docs/"

// Rules is the PrometheusRule of every installation: NFS alerts without NFS services never fire.
func Rules(namespace string) any {
	return ruleOf("fairlead", namespace, group("fairlead", Alerts()), group("fairlead-nfs", NFSAlerts()))
}

// FencingRules is the PrometheusRule of installations with fencing.
func FencingRules(namespace string) any {
	return ruleOf("fairlead-fencing", namespace, group("fairlead-fencing", FencingAlerts()))
}

func ruleOf(name, namespace string, groups ...object) object {
	return object{
		"apiVersion": "monitoring.coreos.com/v1", "kind": "PrometheusRule", "metadata": object{"name": name, "namespace": namespace},
		"spec": object{"groups": groups},
	}
}

func group(name string, alerts []Alert) object {
	var rules []object
	for _, a := range alerts {
		rule := object{
			"alert": a.Name, "expr": a.Expr, "labels": object{"severity": a.Severity},
			"annotations": object{"summary": a.Summary, "runbook_url": docsURL + a.Runbook},
		}
		if a.For != "" {
			rule["for"] = a.For
		}
		rules = append(rules, rule)
	}
	return object{"name": name, "rules": rules}
}
