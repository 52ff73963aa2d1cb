package apply

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/fairlead-io/fairlead/api/v1alpha1"
	"github.com/fairlead-io/fairlead/controllers/kit"
	"github.com/fairlead-io/fairlead/internal/settings/catalog"
	"github.com/fairlead-io/fairlead/internal/settings/plan"
)

// metrics of one profile.
type metrics struct {
	pending, since, blockers *prometheus.GaugeVec
	unknown                  prometheus.Gauge
	work                     *prometheus.CounterVec
}

func newMetrics(registry prometheus.Registerer, profile string) (*metrics, error) {
	labels := prometheus.Labels{"profile": profile}
	gauge := func(name, help string) *prometheus.GaugeVec {
		return prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: name, Help: help, ConstLabels: labels}, []string{"setting"})
	}
	m := &metrics{
		pending:  gauge("fairlead_setting_pending", "1 while the value in effect of the setting is not rolled out."),
		since:    gauge("fairlead_setting_pending_since_seconds", "When the value in effect began to wait, in Unix time; 0 when it is applied."),
		blockers: gauge("fairlead_setting_blockers", "What the setting waits for, counted."),
		unknown: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "fairlead_settings_unknown", Help: "Settings of the storage system that this Fairlead does not know.", ConstLabels: labels,
		}),
	}
	var err error
	if m.work, err = kit.RestartCounter(registry, profile); err != nil {
		return nil, err
	}
	for _, c := range []prometheus.Collector{m.pending, m.since, m.blockers, m.unknown} {
		if err := registry.Register(c); err != nil {
			return nil, err
		}
	}
	for _, d := range catalog.DangerZone() {
		for _, kind := range d.Kinds() {
			m.work.WithLabelValues(string(d.Name), string(kind)) // so that the first restart is an increase
		}
	}
	return m, nil
}

func (m *metrics) worked(work plan.Work) {
	for _, name := range work.Settings {
		m.work.WithLabelValues(string(name), string(work.Component.Kind)).Inc()
	}
}

// reported counts all blockers; the status lists the first of them.
func (m *metrics) reported(setting *v1alpha1.Setting, blockers int) {
	pending, since := 0.0, 0.0
	if !setting.Status.Applied {
		pending = 1
		if at := setting.Status.PendingSince; at != nil {
			since = float64(at.UnixNano()) / float64(time.Second)
		}
	}
	m.pending.WithLabelValues(setting.Name).Set(pending)
	m.since.WithLabelValues(setting.Name).Set(since)
	m.blockers.WithLabelValues(setting.Name).Set(float64(blockers))
}
