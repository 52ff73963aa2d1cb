package ondat

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
)

// metrics of the controller. Those of the API's client are in internal/nfs/ondat/rest.
type metrics struct {
	rounds           prometheus.Histogram
	polled           prometheus.Gauge
	volumes, ignored *prometheus.GaugeVec
}

func newMetrics(registry prometheus.Registerer) *metrics {
	factory := promauto.With(registry)
	return &metrics{
		rounds: factory.NewHistogram(prometheus.HistogramOpts{
			Name: "storageos_shared_volume_reconcile_duration_seconds", Help: "Distribution of the length of time taken to reconcile all shared volumes.",
		}),
		polled: factory.NewGauge(prometheus.GaugeOpts{
			Name: "fairlead_ondat_last_poll_timestamp_seconds", Help: "When Ondat's volumes were last listed.",
		}),
		volumes: factory.NewGaugeVec(prometheus.GaugeOpts{
			Name: "fairlead_ondat_volumes", Help: "Shared volumes of Ondat by state: pending, published, not_served (detached or failing over), ignored.",
		}, []string{"state"}),
		ignored: factory.NewGaugeVec(prometheus.GaugeOpts{
			Name: "fairlead_ondat_ignored_volumes", Help: "Shared volumes of Ondat that are not published, by reason.",
		}, []string{"reason"}),
	}
}

// count the outcomes of a round.
func (m *metrics) count(outcomes map[string]outcome, took time.Duration) {
	byPhase, byReason := map[phase]float64{}, map[string]float64{}
	for _, o := range outcomes {
		byPhase[o.phase]++
		if o.phase == ignored {
			byReason[o.Reason]++
		}
	}
	for _, p := range []phase{pending, published, notServed, ignored} {
		m.volumes.WithLabelValues(string(p)).Set(byPhase[p])
	}
	m.ignored.Reset()
	for reason, n := range byReason {
		m.ignored.WithLabelValues(reason).Set(n)
	}
	m.rounds.Observe(took.Seconds())
}
