package fencing

import (
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/fairlead-io/fairlead/api/v1alpha1"
)

// metrics of all nodes.
type metrics struct {
	nodes              *prometheus.Desc
	refusals           *prometheus.CounterVec
	fencing, unfencing prometheus.Histogram

	mu sync.Mutex
	// phases of nodes, and since when each was seen with the taint.
	phases  map[string]v1alpha1.NodeFencePhase
	tainted map[string]time.Time
}

func newMetrics(registry prometheus.Registerer) (*metrics, error) {
	buckets := []float64{.1, .25, .5, 1, 2.5, 5, 10, 30, 60, 120, 300, 600, 1800}
	m := &metrics{
		nodes: prometheus.NewDesc("fairlead_node_fences", "Nodes by the phase of their fence.", []string{"phase"}, nil),
		refusals: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "fairlead_fence_refusals_total", Help: "How often it came to be that something should be looked at, by reason: a node is not fenced, or not let in.",
		}, []string{"reason"}),
		fencing: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name: "fairlead_fence_duration_seconds", Help: "From when the out-of-service taint was seen until the node was fenced.", Buckets: buckets,
		}),
		unfencing: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name: "fairlead_unfence_duration_seconds", Help: "From when a node was to be let in until it was.", Buckets: buckets,
		}),
		phases: map[string]v1alpha1.NodeFencePhase{}, tainted: map[string]time.Time{},
	}
	for _, c := range []prometheus.Collector{m.refusals, m.fencing, m.unfencing, m} {
		if err := registry.Register(c); err != nil {
			return nil, err
		}
	}
	return m, nil
}

// seen remembers in which phase a node is, and since when it has the taint.
func (r *Reconciler) seen(d decision) {
	m, node := r.metrics, d.Facts.Node
	m.mu.Lock()
	defer m.mu.Unlock()
	if d.Record != nil {
		m.phases[node.Name] = d.Facts.Status.Phase
	}
	if _, known := m.tainted[node.Name]; !known && node.OutOfService && !node.Ready {
		m.tainted[node.Name] = d.Facts.Now
	} else if known && !node.OutOfService {
		delete(m.tainted, node.Name)
	}
}

// moved counts what has been recorded.
func (m *metrics) moved(d decision) {
	was, is := d.Facts.Status, d.Status
	m.mu.Lock()
	defer m.mu.Unlock()
	m.phases[d.Facts.Node.Name] = is.Phase
	if d.Warning && (was.Reason != is.Reason || was.Phase != is.Phase) {
		m.refusals.WithLabelValues(is.Reason).Inc()
	}
	stands := is.Phase == v1alpha1.NodeFenced || is.Phase == v1alpha1.NodeDrained
	if since, known := m.tainted[d.Facts.Node.Name]; known && stands && was.Phase == v1alpha1.NodeFencing {
		m.fencing.Observe(d.Facts.Now.Sub(since).Seconds())
	}
	if was.Phase == v1alpha1.NodeUnfencing && is.Phase != v1alpha1.NodeUnfencing && len(was.Fences) > 0 && len(is.Fences) == 0 {
		m.unfencing.Observe(d.Facts.Now.Sub(was.Fences[0].Since.Time).Seconds())
	}
}

func (m *metrics) forgotten(node string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.phases, node)
	delete(m.tainted, node)
}

var phases = []v1alpha1.NodeFencePhase{
	v1alpha1.NodeHealthy, v1alpha1.NodeLost, v1alpha1.NodeFencing, v1alpha1.NodeFenced,
	v1alpha1.NodeDrained, v1alpha1.NodeReturned, v1alpha1.NodeUnfencing,
}

// Describe implements prometheus.Collector.
func (m *metrics) Describe(descriptions chan<- *prometheus.Desc) { descriptions <- m.nodes }

// Collect implements prometheus.Collector. Phases that no node is in are there too,
// so that an alert has something to compare with.
func (m *metrics) Collect(values chan<- prometheus.Metric) {
	sums := map[v1alpha1.NodeFencePhase]int{}
	m.mu.Lock()
	for _, phase := range m.phases {
		sums[phase]++
	}
	m.mu.Unlock()
	for _, phase := range phases {
		values <- prometheus.MustNewConstMetric(m.nodes, prometheus.GaugeValue, float64(sums[phase]), string(phase))
	}
}
