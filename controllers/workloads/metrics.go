package workloads

import (
	"sync"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/types"

	"github.com/fairlead-io/fairlead/api/v1alpha1"
	"github.com/fairlead-io/fairlead/internal/rwx"
)

// metrics of restarts of workloads.
type metrics struct {
	restarts, verdicts *prometheus.CounterVec
	paused             prometheus.Gauge
	dead, unattended   *prometheus.GaugeVec

	mu sync.Mutex
	// byNode are the dead mounts that stay, by node and reason.
	byNode map[string]map[string]int
	// withoutClient are the nodes that wait for a client, with the reason.
	withoutClient map[string]string
}

func newMetrics(registry prometheus.Registerer) (*metrics, error) {
	m := &metrics{
		restarts: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "fairlead_workload_restarts_total", Help: "Workload pods evicted so that their volumes are mounted again, by reason.",
		}, []string{"reason"}),
		verdicts: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "fairlead_workload_verdicts_total", Help: "Verdicts on workload pods with volumes of Longhorn, by state of the mount and reason.",
		}, []string{"state", "reason"}),
		dead: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "fairlead_dead_mounts", Help: "Workload pods with a dead mount that are not restarted, by the reason why not.",
		}, []string{"reason"}),
		paused: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "fairlead_workload_restarts_paused", Help: "1 while restarts of workload pods are paused, until an operator continues them.",
		}),
		unattended: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "fairlead_nodes_without_client", Help: "Nodes where dead mounts are not detected, since no client pod, or several, could mount there, by reason.",
		}, []string{"reason"}),
		byNode: map[string]map[string]int{}, withoutClient: map[string]string{},
	}
	for _, c := range []prometheus.Collector{m.restarts, m.verdicts, m.paused, m.dead, m.unattended} {
		if err := registry.Register(c); err != nil {
			return nil, err
		}
	}
	// Reasons are listed at zero too, so that alerts can compare, and the first restart is an increase.
	for _, reason := range []string{rwx.ReasonDeadMount, rwx.ReasonServerMoved, rwx.ReasonRemountRequested} {
		m.restarts.WithLabelValues(reason)
	}
	for _, reason := range []string{rwx.ReasonNoController, rwx.ReasonOff, rwx.ReasonBlacklisted, rwx.ReasonLeftAlone, rwx.ReasonPaused, rwx.ReasonRefused, rwx.ReasonBudget} {
		m.dead.WithLabelValues(reason)
	}
	for _, reason := range []string{rwx.ReasonNoClient, rwx.ReasonSeveralClients} {
		m.unattended.WithLabelValues(reason)
	}
	return m, nil
}

func (m *metrics) restarted(reason string) { m.restarts.WithLabelValues(reason).Inc() }

func (m *metrics) judged(v rwx.Verdict) {
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
	if before := m.withoutClient[node]; before != "" {
		m.unattended.WithLabelValues(before).Dec()
	}
	if m.withoutClient[node] = reason; reason == "" {
		delete(m.withoutClient, node)
		return
	}
	m.unattended.WithLabelValues(reason).Inc()
}

// left replaces the dead mounts of a node.
func (m *metrics) left(node string, pods map[types.UID]v1alpha1.DeadMount) {
	reasons := map[string]int{}
	for _, d := range pods {
		reasons[d.Reason]++
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	for reason, n := range m.byNode[node] {
		m.dead.WithLabelValues(reason).Sub(float64(n))
	}
	for reason, n := range reasons {
		m.dead.WithLabelValues(reason).Add(float64(n))
	}
	if m.byNode[node] = reasons; len(reasons) == 0 {
		delete(m.byNode, node)
	}
}
