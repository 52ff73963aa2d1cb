package ondat

import (
	"errors"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/fairlead-io/fairlead/internal/nfs/ondat"
)

// metrics of the controller. Those of the API's client are in internal/nfs/ondat/rest.
type metrics struct {
	table *table
	// rounds is the released manager's, by its name: from the begin of a poll until
	// all volumes that it brought news of are reconciled.
	rounds                   prometheus.Histogram
	volumes, ignored, polled *prometheus.Desc
}

func newMetrics(t *table, registry prometheus.Registerer) (*metrics, error) {
	m := &metrics{
		table: t,
		rounds: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name: "storageos_shared_volume_reconcile_duration_seconds", Help: "Distribution of the length of time taken to reconcile all shared volumes.",
		}),
		volumes: prometheus.NewDesc("fairlead_ondat_volumes", "Shared volumes of Ondat by state: pending, published, not_served (detached or failing over), ignored.", []string{"state"}, nil),
		ignored: prometheus.NewDesc("fairlead_ondat_ignored_volumes", "Shared volumes of Ondat that are not published, by reason.", []string{"reason"}, nil),
		polled:  prometheus.NewDesc("fairlead_ondat_last_poll_timestamp_seconds", "When Ondat's volumes were last listed.", nil, nil),
	}
	return m, errors.Join(registry.Register(m.rounds), registry.Register(m))
}

// Describe implements prometheus.Collector.
func (m *metrics) Describe(to chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{m.volumes, m.ignored, m.polled} {
		to <- d
	}
}

// Collect implements prometheus.Collector.
func (m *metrics) Collect(to chan<- prometheus.Metric) {
	byPhase, byReason, polled := m.table.count()
	for _, p := range phases {
		to <- prometheus.MustNewConstMetric(m.volumes, prometheus.GaugeValue, float64(byPhase[p]), string(p))
	}
	for _, reason := range ondat.Reasons {
		to <- prometheus.MustNewConstMetric(m.ignored, prometheus.GaugeValue, float64(byReason[reason]), string(reason))
	}
	if !polled.IsZero() {
		to <- prometheus.MustNewConstMetric(m.polled, prometheus.GaugeValue, float64(polled.UnixMilli())/1000)
	}
}
