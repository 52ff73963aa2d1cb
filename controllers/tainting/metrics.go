package tainting

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/fairlead-io/fairlead/internal/fence/taint"
)

// Results of a taint.
const (
	resultTainted = "tainted"
	// resultConflict: the node has changed since it was read.
	resultConflict = "conflict"
	resultFailed   = "failed"
)

var results = []string{resultTainted, resultConflict, resultFailed}

type metrics struct {
	taints  *prometheus.CounterVec
	would   prometheus.Gauge
	refused *prometheus.GaugeVec
}

func newMetrics(registry prometheus.Registerer) (*metrics, error) {
	m := &metrics{
		taints: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "fairlead_automatic_taints_total", Help: "Out-of-service taints that Fairlead has written automatically, by result.",
		}, []string{"result"}),
		would: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "fairlead_would_taint_nodes", Help: "Lost nodes that would be tainted now if automatic tainting were not in a dry run.",
		}),
		refused: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "fairlead_not_tainted_nodes", Help: "Nodes that are not Ready and are not tainted automatically, by the reason why not.",
		}, []string{"reason"}),
	}
	for _, c := range []prometheus.Collector{m.taints, m.would, m.refused} {
		if err := registry.Register(c); err != nil {
			return nil, err
		}
	}
	for _, result := range results {
		m.taints.WithLabelValues(result) // so that the first taint is an increase
	}
	return m, nil
}

// judged replaces the counts of all nodes.
func (m *metrics) judged(verdicts []taint.Verdict) {
	m.refused.Reset()
	would := 0
	for _, v := range verdicts {
		switch v.Action {
		case taint.Would:
			would++
		case taint.None:
			m.refused.WithLabelValues(v.Reason).Inc()
		}
	}
	m.would.Set(float64(would))
}
