package apply

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/fairlead-io/fairlead/api/v1alpha1"
	"github.com/fairlead-io/fairlead/internal/longhorn"
	"github.com/fairlead-io/fairlead/internal/settings/catalog"
	"github.com/fairlead-io/fairlead/internal/settings/planner"
	"github.com/fairlead-io/fairlead/internal/settings/rollout"
)

// clientKind is the kind that CSI plugin pods are counted as. Their DaemonSet counts as itself.
const clientKind = "CSIPlugin"

// metrics of settings, and of the network for RWX volumes.
type metrics struct {
	pending, since, blockers *prometheus.GaugeVec
	unknown                  prometheus.Gauge
	phase, volumes           *prometheus.GaugeVec
	// restarts counts work, and restarts of client pods.
	restarts *prometheus.CounterVec
}

func newMetrics(registry prometheus.Registerer, names longhorn.Names) (*metrics, error) {
	gaugeBy := func(label, name, help string) *prometheus.GaugeVec {
		return prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: name, Help: help}, []string{label})
	}
	gauge := func(name, help string) *prometheus.GaugeVec { return gaugeBy("setting", name, help) }
	m := &metrics{
		pending:  gauge("fairlead_setting_pending", "1 while the value in effect of the setting is not rolled out."),
		since:    gauge("fairlead_setting_pending_since_timestamp_seconds", "When the value in effect began to wait, in Unix time; 0 when it is applied."),
		blockers: gauge("fairlead_setting_blockers", "What the setting waits for, counted."),
		phase:    gaugeBy("phase", "fairlead_rollout_phase", "1 for the phase of the network for RWX volumes, 0 for the others."),
		volumes:  gaugeBy("state", "fairlead_rwx_volumes", "RWX volumes that have a Service, by whether their Service is on the network that is due."),
		unknown: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "fairlead_settings_unknown", Help: "Settings of the storage system that this Fairlead does not know.",
		}),
		restarts: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "fairlead_component_restarts_total",
			Help: "Components restarted, rolled or removed, by kind and setting; one that is restarted for several settings counts for each.",
		}, []string{"setting", "kind"}),
	}
	for _, c := range m.collectors() {
		if err := registry.Register(c); err != nil {
			return nil, err
		}
	}
	for _, d := range catalog.DangerZone() { // with a zero, so that the first restart is an increase
		for _, kind := range d.Kinds() {
			m.restarts.WithLabelValues(string(d.Name), string(kind))
		}
		if d.Name == catalog.StorageNetwork || d.Gate == catalog.SharedVolumesDetached || buildsClients(names, d.Name, d.Default) {
			m.restarts.WithLabelValues(string(d.Name), clientKind)
		}
	}
	return m, nil
}

func (m *metrics) collectors() []prometheus.Collector {
	return []prometheus.Collector{m.pending, m.since, m.blockers, m.phase, m.volumes, m.unknown, m.restarts}
}

func (m *metrics) worked(work planner.Work) {
	for _, name := range work.Settings {
		m.restarts.WithLabelValues(string(name), string(work.Component.Kind)).Inc()
	}
}

// network reports the roll-out of the network for RWX volumes.
func (m *metrics) network(facts rollout.Rollout, phase rollout.Phase) {
	for _, p := range rollout.Phases {
		value := 0.0
		if p == phase {
			value = 1
		}
		m.phase.WithLabelValues(string(p)).Set(value)
	}
	if m.volumes.Reset(); facts.Record.Problem != "" || facts.Record.Unknown {
		return // it is not known where Services are due
	}
	for state, count := range facts.VolumeStates() {
		m.volumes.WithLabelValues(string(state)).Set(float64(count))
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
