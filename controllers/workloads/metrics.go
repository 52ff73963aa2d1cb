package workloads

import (
	"sync"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/fairlead-io/fairlead/storage"
)

// metrics of one profile.
type metrics struct {
	restarts, verdicts *prometheus.CounterVec
	dead               *prometheus.Desc

	mu sync.Mutex
	// byNode are the dead mounts that stay, by node and reason.
	byNode map[string]map[string]int
}

func newMetrics(registry prometheus.Registerer, profile string) (*metrics, error) {
	labels := prometheus.Labels{"profile": profile}
	m := &metrics{
		restarts: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "fairlead_workload_restarts_total", Help: "Workload pods evicted so that their volumes are mounted anew, by reason.", ConstLabels: labels,
		}, []string{"reason"}),
		verdicts: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "fairlead_workload_verdicts_total", Help: "Verdicts on workload pods with volumes of the profile, by state of the mount and reason.", ConstLabels: labels,
		}, []string{"state", "reason"}),
		dead: prometheus.NewDesc("fairlead_dead_mounts",
			"Workload pods with a dead mount that are not restarted, by the reason why not.", []string{"reason"}, labels),
		byNode: map[string]map[string]int{},
	}
	for _, c := range []prometheus.Collector{m.restarts, m.verdicts, m} {
		if err := registry.Register(c); err != nil {
			return nil, err
		}
	}
	return m, nil
}

func (m *metrics) restarted(reason string) { m.restarts.WithLabelValues(reason).Inc() }

func (m *metrics) judged(v storage.Verdict) {
	m.verdicts.WithLabelValues(string(v.State), v.Reason).Inc()
}

// left replaces what is known of a node.
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
func (m *metrics) Describe(descriptions chan<- *prometheus.Desc) { descriptions <- m.dead }

// Collect implements prometheus.Collector. What may keep a dead mount is listed
// at zero too, so that an alert has something to compare with.
func (m *metrics) Collect(values chan<- prometheus.Metric) {
	sums := map[string]int{
		storage.ReasonNoController: 0, storage.ReasonOff: 0, storage.ReasonBlacklisted: 0, storage.ReasonLeftAlone: 0,
	}
	m.mu.Lock()
	for _, reasons := range m.byNode {
		for reason, n := range reasons {
			sums[reason] += n
		}
	}
	m.mu.Unlock()
	for reason, n := range sums {
		values <- prometheus.MustNewConstMetric(m.dead, prometheus.GaugeValue, float64(n), reason)
	}
}
