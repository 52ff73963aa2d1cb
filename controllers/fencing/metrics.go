package fencing

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/fairlead-io/fairlead/api/v1alpha1"
	"github.com/fairlead-io/fairlead/internal/fence"
)

// metrics of all machines.
type metrics struct {
	// statuses of all records.
	statuses           func() []v1alpha1.NodeFenceStatus
	nodes, unfenced    *prometheus.Desc
	notFenceable       *prometheus.Desc
	refusals           *prometheus.CounterVec
	fencing, unfencing prometheus.Histogram

	// since when a record is in its phase, by name.
	since sync.Map
}

func newMetrics(registry prometheus.Registerer, statuses func() []v1alpha1.NodeFenceStatus) (*metrics, error) {
	buckets := []float64{.1, .25, .5, 1, 2.5, 5, 10, 30, 60, 120, 300, 600, 1800}
	m := &metrics{
		statuses:     statuses,
		nodes:        prometheus.NewDesc("fairlead_node_fences", "Nodes by the phase of their fence.", []string{"phase"}, nil),
		unfenced:     prometheus.NewDesc("fairlead_unfenced_nodes", "Lost nodes that are not fenced and whose volumes are held.", nil, nil),
		notFenceable: prometheus.NewDesc("fairlead_not_fenceable_nodes", "Healthy nodes that could not be fenced if they were lost.", nil, nil),
		refusals: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "fairlead_fence_refusals_total", Help: "Times that an operator should look at a node, by reason: the node is not fenced, or not readmitted.",
		}, []string{"reason"}),
		fencing: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name: "fairlead_fence_duration_seconds", Help: "Time from phase Fencing, which follows the out-of-service taint, until the node is fenced.", Buckets: buckets,
		}),
		unfencing: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name: "fairlead_unfence_duration_seconds", Help: "Time from the decision to readmit a node until the node is readmitted.", Buckets: buckets,
		}),
	}
	for _, c := range []prometheus.Collector{m.refusals, m.fencing, m.unfencing, m} {
		if err := registry.Register(c); err != nil {
			return nil, err
		}
	}
	for _, reason := range refusals {
		m.refusals.WithLabelValues(reason) // so that the first refusal is an increase
	}
	return m, nil
}

// refusals are the reasons that need an operator's attention.
var refusals = []string{
	fence.ReasonNotReady, fence.ReasonUnseen, fence.ReasonTaintedButReady, fence.ReasonGuardOnly, fence.ReasonFencing, fence.ReasonNotRebooted, fence.ReasonOldAttachments,
	fence.ReasonSharedAddress, fence.ReasonUnfencing, fence.ReasonOverridden, fence.ReasonReleased, fence.ReasonOldMounts, fence.ReasonNoIdentity, fence.ReasonStaleLedger, fence.ReasonBadAddress,
	fence.ReasonAddressInUse, fence.ReasonOutsideRange, fence.ReasonContradicted, fence.ReasonNoCredentials, fence.ReasonLeftoverUnfenced,
	fence.ReasonNotFenceable, fence.ReasonDriverFences, fence.ReasonDriverFailed, fence.ReasonNoCSIAddons, fence.ReasonWriteFailed, fence.ReasonUnanswered,
}

// notHeld are the reasons with which no volume is held without a fence.
var notHeld = []string{fence.ReasonNothingHeld, fence.ReasonOverridden, fence.ReasonReleased, fence.ReasonSwitchedOff, fence.ReasonTaintedButReady}

// isHeld reports whether the volumes of a lost node are held without a fence.
func isHeld(s v1alpha1.NodeFenceStatus) bool {
	return (s.Phase == v1alpha1.NodeLost || s.Phase == v1alpha1.NodeFencing) && !slices.Contains(notHeld, s.Reason)
}

// statuses of all records in the cache. Before this controller leads, there are none: else each replica would count them.
func (r *Reconciler) statuses() (all []v1alpha1.NodeFenceStatus) {
	if r.started.Load() != nil {
		r.records(context.Background(), func(n *v1alpha1.NodeFence) bool { all = append(all, n.Status); return false })
	}
	return all
}

// recorded counts a decision that was written to the record.
func (m *metrics) recorded(d decision) {
	was, is := d.was(), d.Status
	if d.Warning && (was.Reason != is.Reason || was.Phase != is.Phase) {
		m.refusals.WithLabelValues(is.Reason).Inc()
	}
	if was.Phase == is.Phase {
		return
	}
	if since, known := m.since.Swap(d.Facts.Record, d.Facts.Now); known {
		took := d.Facts.Now.Sub(since.(time.Time)).Seconds()
		switch {
		case was.Phase == v1alpha1.NodeFencing && (is.Phase == v1alpha1.NodeFenced || is.Phase == v1alpha1.NodeDrained):
			m.fencing.Observe(took)
		case was.Phase == v1alpha1.NodeUnfencing && len(d.Spec.Fences) == 0:
			m.unfencing.Observe(took)
		}
	}
}

// forgotten times the readmission that ends with a record.
func (m *metrics) forgotten(d decision) {
	if since, known := m.since.Load(d.Facts.Record); known && d.was().Phase == v1alpha1.NodeUnfencing {
		m.unfencing.Observe(d.Facts.Now.Sub(since.(time.Time)).Seconds())
	}
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

// Collect implements prometheus.Collector. Phases without nodes are included, so that alerts can compare.
func (m *metrics) Collect(values chan<- prometheus.Metric) {
	sums := map[v1alpha1.NodeFencePhase]int{}
	unfenced, notFenceable := 0, 0
	for _, s := range m.statuses() {
		sums[s.Phase]++
		if isHeld(s) {
			unfenced++
		}
		if s.Phase == v1alpha1.NodeHealthy && s.Reason == fence.ReasonNotFenceable {
			notFenceable++
		}
	}
	for _, phase := range phases {
		values <- prometheus.MustNewConstMetric(m.nodes, prometheus.GaugeValue, float64(sums[phase]), string(phase))
	}
	values <- prometheus.MustNewConstMetric(m.unfenced, prometheus.GaugeValue, float64(unfenced))
	values <- prometheus.MustNewConstMetric(m.notFenceable, prometheus.GaugeValue, float64(notFenceable))
}
