package admission

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// Metrics of admission, by rule and result.
type Metrics struct {
	requests *prometheus.CounterVec
	duration *prometheus.HistogramVec
}

// NewMetrics registers the metrics.
func NewMetrics(registry prometheus.Registerer) *Metrics {
	m := &Metrics{
		requests: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "fairlead_admission_requests_total",
			Help: "Admission reviews by rule, outcome (mutated, unchanged, skipped, allowed, denied, error) and reason.",
		}, []string{"rule", "outcome", "reason"}),
		duration: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name:    "fairlead_admission_duration_seconds",
			Help:    "Time from the first byte of a review read to its answer written, in seconds.",
			Buckets: []float64{.0001, .0005, .001, .005, .01, .05, .1, .5, 1, 5},
		}, []string{"rule"}),
	}
	registry.MustRegister(m.requests, m.duration)
	return m
}

type ruleMetrics struct {
	requests *prometheus.CounterVec
	duration prometheus.Observer
}

func (m *Metrics) forRule(rule string) ruleMetrics {
	requests := m.requests.MustCurryWith(prometheus.Labels{"rule": rule})
	// Prometheus does not see the increase from no series to 1.
	for _, reason := range []string{reasonNoFacts, reasonBadResponse, reasonTooMany} {
		requests.WithLabelValues(outcomeError, reason)
	}
	return ruleMetrics{requests, m.duration.WithLabelValues(rule)}
}

// Reasons of reviews that are not decided.
const (
	reasonNoFacts     = "facts unavailable"
	reasonBadResponse = "bad response"
	reasonTooMany     = "too many reviews"
)

func (m ruleMetrics) done(outcome, reason string, started time.Time) {
	m.requests.WithLabelValues(outcome, reason).Inc()
	m.duration.Observe(time.Since(started).Seconds())
}
