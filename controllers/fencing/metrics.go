package fencing

import (
	"slices"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/fairlead-io/fairlead/api/v1alpha1"
	"github.com/fairlead-io/fairlead/internal/fence"
)

// metrics of all machines, by record.
type metrics struct {
	nodes, unfenced    *prometheus.Desc
	notFenceable       *prometheus.Desc
	refusals           *prometheus.CounterVec
	fencing, unfencing prometheus.Histogram

	mu sync.Mutex
	// phases of nodes, which of them hold volumes unfenced, which could not be fenced, and since
	// when each was seen with the taint, or is unfenced: what a fence was last asked for is later.
	phases  map[string]v1alpha1.NodeFencePhase
	holding map[string]bool
	exposed map[string]bool
	tainted map[string]time.Time
	let     map[string]time.Time
}

func newMetrics(registry prometheus.Registerer) (*metrics, error) {
	buckets := []float64{.1, .25, .5, 1, 2.5, 5, 10, 30, 60, 120, 300, 600, 1800}
	m := &metrics{
		nodes:        prometheus.NewDesc("fairlead_node_fences", "Nodes by the phase of their fence.", []string{"phase"}, nil),
		unfenced:     prometheus.NewDesc("fairlead_unfenced_nodes", "Nodes that are lost and not fenced, and whose volumes are held.", nil, nil),
		notFenceable: prometheus.NewDesc("fairlead_not_fenceable_nodes", "Healthy nodes that could not be fenced if they were lost.", nil, nil),
		refusals: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "fairlead_fence_refusals_total", Help: "How often it came to be that something should be looked at, by reason: a node is not fenced, or not let in.",
		}, []string{"reason"}),
		fencing: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name: "fairlead_fence_duration_seconds", Help: "From when the out-of-service taint was seen until the node was fenced.", Buckets: buckets,
		}),
		unfencing: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name: "fairlead_unfence_duration_seconds", Help: "From when a node was to be let in until it was.", Buckets: buckets,
		}),
		phases: map[string]v1alpha1.NodeFencePhase{}, holding: map[string]bool{}, exposed: map[string]bool{}, tainted: map[string]time.Time{}, let: map[string]time.Time{},
	}
	for _, c := range []prometheus.Collector{m.refusals, m.fencing, m.unfencing, m} {
		if err := registry.Register(c); err != nil {
			return nil, err
		}
	}
	for _, reason := range refusals {
		m.refusals.WithLabelValues(reason) // so that the first one is an increase
	}
	return m, nil
}

// refusals are the reasons of which it is said that somebody should look.
var refusals = []string{
	fence.ReasonNotReady, fence.ReasonTaintedButReady, fence.ReasonGuardOnly, fence.ReasonFencing, fence.ReasonNotRebooted, fence.ReasonOldAttachments,
	fence.ReasonSharedAddress, fence.ReasonUnfencing, fence.ReasonOverridden, fence.ReasonNoIdentity, fence.ReasonStaleLedger, fence.ReasonBadAddress,
	fence.ReasonAddressInUse, fence.ReasonOutsideRange, fence.ReasonContradicted, fence.ReasonNoCredentials, fence.ReasonLeftoverUnfenced,
	fence.ReasonNotFenceable, fence.ReasonDriverFences, fence.ReasonDriverFailed, fence.ReasonNoCSIAddons, fence.ReasonWriteFailed, fence.ReasonUnanswered,
}

// notHeld are the reasons of nodes that are lost and whose volumes are free or fenced, or that are not lost.
var notHeld = []string{fence.ReasonNothingHeld, fence.ReasonOverridden, fence.ReasonSwitchedOff, fence.ReasonTaintedButReady, fence.ReasonRenamed}

// is remembers how a record is.
func (m *metrics) set(record string, s v1alpha1.NodeFenceStatus) {
	m.phases[record] = s.Phase
	m.holding[record] = (s.Phase == v1alpha1.NodeLost || s.Phase == v1alpha1.NodeFencing) && !slices.Contains(notHeld, s.Reason)
	m.exposed[record] = s.Phase == v1alpha1.NodeHealthy && s.Reason == fence.ReasonNotFenceable
}

// seen remembers in which phase a node is, and since when it has the taint.
func (r *Reconciler) seen(d decision) {
	m, node, name := r.metrics, d.Facts.Node, d.Facts.Record
	m.mu.Lock()
	defer m.mu.Unlock()
	if d.Record != nil {
		m.set(name, d.Facts.Status)
	}
	if _, known := m.tainted[name]; !known && node.OutOfService && !node.Ready {
		m.tainted[name] = d.Facts.Now
	} else if known && !node.OutOfService {
		delete(m.tainted, name)
	}
}

// moved counts what has been recorded.
func (m *metrics) moved(d decision) {
	was, is := d.Facts.Status, d.Status
	m.mu.Lock()
	defer m.mu.Unlock()
	m.set(d.Facts.Record, is)
	if d.Warning && (was.Reason != is.Reason || was.Phase != is.Phase) {
		m.refusals.WithLabelValues(is.Reason).Inc()
	}
	stands := is.Phase == v1alpha1.NodeFenced || is.Phase == v1alpha1.NodeDrained
	if since, known := m.tainted[d.Facts.Record]; known && stands && was.Phase == v1alpha1.NodeFencing {
		m.fencing.Observe(d.Facts.Now.Sub(since).Seconds())
	}
	since, known := m.let[d.Facts.Record]
	switch {
	case is.Phase == v1alpha1.NodeUnfencing && !known && was.Phase != is.Phase:
		m.let[d.Facts.Record] = d.Facts.Now
	case is.Phase != v1alpha1.NodeUnfencing && known:
		delete(m.let, d.Facts.Record)
		if len(is.Fences) == 0 {
			m.unfencing.Observe(d.Facts.Now.Sub(since).Seconds())
		}
	}
}

func (m *metrics) forgotten(record string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.phases, record)
	delete(m.holding, record)
	delete(m.exposed, record)
	delete(m.tainted, record)
	delete(m.let, record)
}

var phases = []v1alpha1.NodeFencePhase{
	v1alpha1.NodeHealthy, v1alpha1.NodeLost, v1alpha1.NodeFencing, v1alpha1.NodeFenced,
	v1alpha1.NodeDrained, v1alpha1.NodeReturned, v1alpha1.NodeUnfencing,
}

// Describe implements prometheus.Collector.
func (m *metrics) Describe(descriptions chan<- *prometheus.Desc) {
	descriptions <- m.nodes
	descriptions <- m.unfenced
	descriptions <- m.notFenceable
}

// Collect implements prometheus.Collector. Phases that no node is in are there too,
// so that an alert has something to compare with.
func (m *metrics) Collect(values chan<- prometheus.Metric) {
	sums := map[v1alpha1.NodeFencePhase]int{}
	m.mu.Lock()
	for _, phase := range m.phases {
		sums[phase]++
	}
	unfenced, notFenceable := count(m.holding), count(m.exposed)
	m.mu.Unlock()
	for _, phase := range phases {
		values <- prometheus.MustNewConstMetric(m.nodes, prometheus.GaugeValue, float64(sums[phase]), string(phase))
	}
	values <- prometheus.MustNewConstMetric(m.unfenced, prometheus.GaugeValue, unfenced)
	values <- prometheus.MustNewConstMetric(m.notFenceable, prometheus.GaugeValue, notFenceable)
}

func count(nodes map[string]bool) (n float64) {
	for _, is := range nodes {
		if is {
			n++
		}
	}
	return n
}
