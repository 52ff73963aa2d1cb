package workloads

import (
	"sync"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/fairlead-io/fairlead/internal/storage"
)

// metrics of one profile.
type metrics struct {
	restarts, verdicts *prometheus.CounterVec
	paused             prometheus.Gauge
	dead, unattended   *prometheus.Desc

	mu sync.Mutex
	// byNode are the dead mounts that stay, by node and reason.
	byNode map[string]map[string]int
	// withoutClient are the nodes that wait for a client, with the reason.
	withoutClient map[string]string
}

func newMetrics(registry prometheus.Registerer, profile string) (*metrics, error) {
	labels := prometheus.Labels{"profile": profile}
	m := &metrics{
		restarts: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "fairlead_workload_restarts_total", Help: "Workload pods evicted so that their volumes are mounted again, by reason.", ConstLabels: labels,
		}, []string{"reason"}),
		verdicts: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "fairlead_workload_verdicts_total", Help: "Verdicts on workload pods with volumes of the profile, by state of the mount and reason.", ConstLabels: labels,
		}, []string{"state", "reason"}),
		dead: prometheus.NewDesc("fairlead_dead_mounts",
			"Workload pods with a dead mount that are not restarted, by the reason why not.", []string{"reason"}, labels),
		paused: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "fairlead_workload_restarts_paused", Help: "1 while restarts of workload pods are paused, until an operator continues them.", ConstLabels: labels,
		}),
		unattended: prometheus.NewDesc("fairlead_nodes_without_client",
			"Nodes where dead mounts are not detected, since no client pod, or several, could mount there, by reason.", []string{"reason"}, labels),
		byNode: map[string]map[string]int{}, withoutClient: map[string]string{},
	}
	for _, c := range []prometheus.Collector{m.restarts, m.verdicts, m.paused, m} {
		if err := registry.Register(c); err != nil {
			return nil, err
		}
	}
	for _, reason := range []string{storage.ReasonDeadMount, storage.ReasonRemountRequested} {
		m.restarts.WithLabelValues(reason) // so that the first restart is an increase
	}
	return m, nil
}

func (m *metrics) restarted(reason string) { m.restarts.WithLabelValues(reason).Inc() }

func (m *metrics) judged(v storage.Verdict) {
	m.verdicts.WithLabelValues(string(v.State), v.Reason).Inc()
}

func (m *metrics) pausedNow(paused bool) {
	m.paused.Set(0)
	if paused {
		m.paused.Set(1)
	}
}

// waiting keeps why a node waits for a client; "" is no wait.
func (m *metrics) waiting(node, reason string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.withoutClient[node] = reason; reason == "" {
		delete(m.withoutClient, node)
	}
}

// left replaces the dead mounts of a node.
func (m *metrics) left(node string, reasons map[string]int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if len(reasons) == 0 {
		delete(m.byNode, node)
		return
	}
	m.byNode[node] = reasons
}

// Describe implements prometheus.Collector.
func (m *metrics) Describe(descriptions chan<- *prometheus.Desc) {
	descriptions <- m.dead
	descriptions <- m.unattended
}

// Collect implements prometheus.Collector. Reasons are listed at zero too, so that alerts can compare.
func (m *metrics) Collect(values chan<- prometheus.Metric) {
	sums := map[string]int{
		storage.ReasonNoController: 0, storage.ReasonOff: 0, storage.ReasonBlacklisted: 0, storage.ReasonLeftAlone: 0, storage.ReasonPaused: 0, reasonRefused: 0,
	}
	nodes := map[string]int{storage.ReasonNoClient: 0, storage.ReasonSeveralClients: 0}
	m.mu.Lock()
	for _, reasons := range m.byNode {
		for reason, n := range reasons {
			sums[reason] += n
		}
	}
	for _, reason := range m.withoutClient {
		nodes[reason]++
	}
	m.mu.Unlock()
	for reason, n := range nodes {
		values <- prometheus.MustNewConstMetric(m.unattended, prometheus.GaugeValue, float64(n), reason)
	}
	for reason, n := range sums {
		values <- prometheus.MustNewConstMetric(m.dead, prometheus.GaugeValue, float64(n), reason)
	}
}
