package monitoring

// Row of the dashboard. The first row is open, the others unfold.
type Row struct {
	Title  string
	Panels []Panel
}

// Panel shows queries over time, or as numbers of now.
type Panel struct {
	Title string
	// Help is what to make of the panel.
	Help    string
	Queries []Query
	// Unit is a unit of Grafana; empty is a plain number.
	Unit string
	// Now shows the last values as numbers, in another colour from 1 on.
	Now bool
	// ZeroIsBad: a number of 0 is alarming, and others are not.
	ZeroIsBad bool
}

// Query is a line of a panel.
type Query struct{ Expr, Legend string }

// Rows are the dashboard's.
func Rows() []Row {
	return []Row{
		{"At a glance", []Panel{
			now("Settings not applied", "Values in effect that are not rolled out everywhere. fairlead status says what each waits for.", `sum(max by (setting) (fairlead_setting_pending))`),
			now("Dead mounts", "Workload pods with a dead mount that are not restarted.", `sum(fairlead_dead_mounts)`),
			now("Lost nodes not fenced", "Their volumes are held.", `sum(fairlead_unfenced_nodes)`),
			now("NFS servers not healthy", "Of all NFSServices.", "sum("+servers+" - ("+healthyServers+" or 0 * "+servers+"))"),
			now("Reviews not decided", "In the last hour: the failure policy decided.", `sum(increase(fairlead_admission_requests_total{outcome="error",reason!="bad review"}[1h]))`),
			{Title: "Processes", Help: "Webhooks and controllers that Prometheus reaches.", Now: true, ZeroIsBad: true, Queries: []Query{{`sum(up{` + own + `}) or vector(0)`, ""}}},
		}},
		{"Settings", []Panel{
			{Title: "Waiting since", Help: "How long a value in effect has not been applied.", Unit: "s", Queries: []Query{{`max by (setting) (time() - (fairlead_setting_pending_since_timestamp_seconds > 0))`, "{{setting}}"}}},
			{Title: "Blockers", Help: "Number of objects that a setting waits for.", Queries: []Query{{`max by (setting) (fairlead_setting_blockers) > 0`, "{{setting}}"}}},
			{Title: "Restarts of components", Help: "By setting and kind of component; one restart for several settings counts for each.", Queries: []Query{{`sum by (setting, kind) (increase(fairlead_component_restarts_total[$__rate_interval])) > 0`, "{{setting}}: {{kind}}"}}},
		}},
		{"Network for RWX volumes", []Panel{
			{Title: "Phase", Help: "Of the roll-out: Applied, Waiting, RollingClients, SwitchingServers or Invalid.", Queries: []Query{{`max by (phase) (fairlead_rollout_phase) > 0`, "{{phase}}"}}},
			{Title: "RWX volumes", Help: "ToMove: the volume moves to its network once it is detached.", Queries: []Query{{`max by (state) (fairlead_rwx_volumes)`, "{{state}}"}}},
			{Title: "Certificate", Help: "Time until the webhook's certificate expires.", Unit: "s", Queries: []Query{{`min(fairlead_webhook_certificate_expiry_timestamp_seconds > 0) - time()`, "left"}}},
			{Title: "Versions", Help: "Processes by version.", Queries: []Query{{`count by (version) (fairlead_build_info)`, "{{version}}"}}},
		}},
		{"Workloads", []Panel{
			{Title: "Dead mounts", Help: "Workload pods with a dead mount that are not restarted, by reason.", Queries: []Query{{`sum by (reason) (fairlead_dead_mounts)`, "{{reason}}"}}},
			{Title: "Restarts of workloads", Help: "Pods evicted since their mount was dead.", Queries: []Query{{`sum by (reason) (increase(fairlead_workload_restarts_total[$__rate_interval]))`, "{{reason}}"}}},
			{Title: "Nodes without a client", Help: "Nodes where dead mounts are not detected.", Queries: []Query{{`sum by (reason) (fairlead_nodes_without_client)`, "{{reason}}"}}},
		}},
		{"Admission", []Panel{
			{Title: "Reviews", Help: "By outcome.", Unit: "reqps", Queries: []Query{{`sum by (outcome) (rate(fairlead_admission_requests_total[$__rate_interval]))`, "{{outcome}}"}}},
			{Title: "Time per review (99th percentile)", Help: "By rule. Pods and settings wait for it.", Unit: "s", Queries: []Query{{`histogram_quantile(0.99, sum by (le, rule) (rate(fairlead_admission_duration_seconds_bucket[$__rate_interval])))`, "{{rule}}"}}},
			{Title: "Skipped and refused", Help: "What was left alone, and what was denied.", Queries: []Query{{`sum by (rule, reason) (increase(fairlead_admission_requests_total{outcome=~"skipped|denied"}[$__rate_interval]))`, "{{rule}}: {{reason}}"}}},
		}},
		{"Fencing", []Panel{
			{Title: "Nodes by phase", Help: "Phases of NodeFences but Healthy.", Queries: []Query{{`sum by (phase) (fairlead_node_fences{phase!="Healthy"})`, "{{phase}}"}}},
			{Title: "Not fenced, not fenceable", Help: "Lost nodes that are not fenced, and healthy ones that could not be.", Queries: []Query{{`sum(fairlead_unfenced_nodes)`, "not fenced"}, {`sum(fairlead_not_fenceable_nodes)`, "not fenceable"}}},
			{Title: "Time to fence and to unfence (median)", Help: "From the out-of-service taint to the confirmed fence, and back.", Unit: "s", Queries: []Query{
				{`histogram_quantile(0.5, sum by (le) (increase(fairlead_fence_duration_seconds_bucket[1h])))`, "fence"},
				{`histogram_quantile(0.5, sum by (le) (increase(fairlead_unfence_duration_seconds_bucket[1h])))`, "unfence"},
			}},
		}},
		{"NFS services", []Panel{
			{Title: "Nodes on each server", Help: "The distribution that the service keeps.", Queries: []Query{{`max by (namespace, service, backend) (fairlead_nfs_backend_nodes)`, "{{namespace}}/{{service}}: {{backend}}"}}},
			{Title: "Servers by health", Help: "Failing servers are still used.", Queries: []Query{{`sum by (namespace, service, health) (fairlead_nfs_backend_health)`, "{{namespace}}/{{service}}: {{health}}"}}},
			{Title: "Moves of nodes", Help: "By reason.", Queries: []Query{{`sum by (reason) (increase(fairlead_nfs_moves_total[$__rate_interval]))`, "{{reason}}"}}},
			{Title: "Time per probe (99th percentile)", Help: "Near the timeout, servers are taken out.", Unit: "s", Queries: []Query{{`histogram_quantile(0.99, sum by (le, verdict) (rate(fairlead_nfs_probe_duration_seconds_bucket[$__rate_interval])))`, "{{verdict}}"}}},
		}},
		{"Fairlead itself", []Panel{
			{Title: "Failed steps", Help: "They are tried again.", Queries: []Query{{`sum by (controller) (increase(controller_runtime_reconcile_errors_total{` + own + `}[$__rate_interval]))`, "{{controller}}"}}},
			{Title: "CPU", Help: "Of each process.", Queries: []Query{{`sum by (instance) (rate(process_cpu_seconds_total{` + own + `}[$__rate_interval]))`, "{{instance}}"}}},
			{Title: "Memory", Help: "Resident memory, and the live heap.", Unit: "bytes", Queries: []Query{
				{`sum by (instance) (process_resident_memory_bytes{` + own + `})`, "{{instance}} resident"},
				{`sum by (instance) (go_gc_heap_live_bytes{` + own + `})`, "{{instance}} live heap"},
			}},
		}},
	}
}

func now(title, help, expr string) Panel {
	return Panel{Title: title, Help: help, Now: true, Queries: []Query{{expr, ""}}}
}

// The parts of Grafana's dashboard model that are used, schema 39 (Grafana 10.4 and later).
type (
	object map[string]any
	panel  struct {
		ID          int      `json:"id"`
		Type        string   `json:"type"`
		Title       string   `json:"title"`
		Description string   `json:"description,omitempty"`
		GridPos     position `json:"gridPos"`
		Datasource  object   `json:"datasource,omitempty"`
		Targets     []object `json:"targets,omitempty"`
		FieldConfig object   `json:"fieldConfig,omitempty"`
		Options     object   `json:"options,omitempty"`
		Collapsed   bool     `json:"collapsed,omitempty"`
		Panels      []panel  `json:"panels,omitempty"`
	}
	position struct {
		H int `json:"h"`
		W int `json:"w"`
		X int `json:"x"`
		Y int `json:"y"`
	}
)

// Sizes in Grafana's grid, which is 24 wide.
const (
	gridWidth   = 24
	graphHeight = 8
	statHeight  = 4
)

// NewDashboard is what Grafana imports.
func NewDashboard() any {
	return object{
		"uid": "fairlead", "title": "Fairlead", "description": "Storage networks, settings, fencing and NFS services. Generated by make generate.",
		"tags": []string{"fairlead", "storage"}, "schemaVersion": 39, "editable": true, "refresh": "30s", "time": object{"from": "now-6h", "to": "now"},
		"templating": object{"list": []object{{"name": "datasource", "label": "Data source", "type": "datasource", "query": "prometheus"}}},
		"panels":     panels(),
	}
}

// panels lays the rows out.
func panels() []panel {
	var all []panel
	id, y := 0, 0
	next := func() int {
		id++
		return id
	}
	for i, r := range Rows() {
		head := panel{ID: next(), Type: "row", Title: r.Title, GridPos: position{1, gridWidth, 0, y}, Collapsed: i > 0}
		y++
		width, height := gridWidth/len(r.Panels), graphHeight
		if r.Panels[0].Now {
			height = statHeight
		}
		var shown []panel
		for j, p := range r.Panels {
			shown = append(shown, panelOf(p, next(), position{height, width, j * width, y}))
		}
		if head.Collapsed {
			head.Panels = shown
			all = append(all, head)
			continue
		}
		all = append(append(all, head), shown...)
		y += height
	}
	return all
}

func panelOf(p Panel, id int, at position) panel {
	defaults := object{"min": 0}
	if p.Unit != "" {
		defaults["unit"] = p.Unit
	}
	shown := panel{
		ID: id, Type: "timeseries", Title: p.Title, Description: p.Help, GridPos: at, Datasource: object{"type": "prometheus", "uid": "${datasource}"},
		FieldConfig: object{"defaults": defaults, "overrides": []any{}},
	}
	if p.Now {
		shown.Type = "stat"
		shown.Options = object{"reduceOptions": object{"calcs": []string{"lastNotNull"}}, "colorMode": "value", "graphMode": "area"}
		from0, from1 := "green", "orange"
		if p.ZeroIsBad {
			from0, from1 = "red", "green"
		}
		defaults["thresholds"] = object{"mode": "absolute", "steps": []object{{"color": from0, "value": nil}, {"color": from1, "value": 1}}}
	}
	for i, q := range p.Queries {
		t := object{"refId": string(rune('A' + i)), "expr": q.Expr}
		if q.Legend != "" {
			t["legendFormat"] = q.Legend
		}
		if p.Now {
			t["instant"] = true
		}
		shown.Targets = append(shown.Targets, t)
	}
	return shown
}
