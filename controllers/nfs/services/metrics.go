package services

import (
	"context"
	"maps"
	"slices"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/types"

	"github.com/fairlead-io/fairlead/api/v1alpha1"
	"github.com/fairlead-io/fairlead/internal/nfs/assign"
	"github.com/fairlead-io/fairlead/internal/nfs/rpc"
)

// metrics of NFS services. What status says is read when it is scraped.
type metrics struct {
	reconciler *Reconciler
	moves      *prometheus.CounterVec
	probes     *prometheus.HistogramVec
}

var (
	service      = []string{"namespace", "service"}
	healthMetric = prometheus.NewDesc("fairlead_nfs_backend_health", "1 for the health that an NFS server has: Unknown, Healthy, Failing or Down.",
		append(service, "backend", "health"), nil)
	nodesMetric = prometheus.NewDesc("fairlead_nfs_backend_nodes", "Nodes that use an NFS server.", append(service, "backend"), nil)
	suspected   = prometheus.NewDesc("fairlead_nfs_prober_suspected", "1 while so many NFS servers of a service fail at once that the probes are doubted, else 0.", service, nil)
)

func newMetrics(r *Reconciler, registry prometheus.Registerer) (*metrics, error) {
	m := &metrics{
		reconciler: r,
		moves: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "fairlead_nfs_moves_total", Help: "Addresses of NFS services that were pointed to another server, by the reason why they left the first.",
		}, append(service, "reason")),
		probes: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "fairlead_nfs_probe_duration_seconds", Help: "How long probes of NFS servers took, by what they say of the server's health.",
			Buckets: []float64{.001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5},
		}, []string{"verdict"}),
	}
	for _, c := range []prometheus.Collector{m, m.moves, m.probes} {
		if err := registry.Register(c); err != nil {
			return nil, err
		}
	}
	for _, v := range []rpc.Verdict{rpc.Unknown, rpc.Healthy, rpc.Unhealthy} {
		m.probes.WithLabelValues(string(v)) // so that the first one is an increase
	}
	return m, nil
}

func (m *metrics) probed(result rpc.Result) {
	m.probes.WithLabelValues(string(result.Verdict)).Observe(result.Took.Seconds())
}

// expect shows the moves of a service from zero, so that the first move is an increase.
func (m *metrics) expect(key types.NamespacedName) {
	for _, reason := range []assign.Reason{assign.Gone, assign.Down, assign.Draining, assign.Excess, assign.Unused} {
		m.moves.WithLabelValues(key.Namespace, key.Name, string(reason))
	}
}

func (m *metrics) forget(key types.NamespacedName) {
	m.moves.DeletePartialMatch(prometheus.Labels{"namespace": key.Namespace, "service": key.Name})
}

// Describe implements prometheus.Collector.
func (m *metrics) Describe(descriptions chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{healthMetric, nodesMetric, suspected} {
		descriptions <- d
	}
}

// Collect implements prometheus.Collector.
func (m *metrics) Collect(to chan<- prometheus.Metric) {
	m.reconciler.mu.Lock()
	kept := slices.Collect(maps.Keys(m.reconciler.states)) // none in a replica that does not lead
	m.reconciler.mu.Unlock()
	for _, key := range kept {
		var service v1alpha1.NFSService
		if m.reconciler.Client.Get(context.Background(), key, &service) != nil {
			continue // it is gone
		}
		status := &service.Status
		for _, b := range status.Backends {
			to <- prometheus.MustNewConstMetric(healthMetric, prometheus.GaugeValue, 1, key.Namespace, key.Name, b.Address, b.Health)
			to <- prometheus.MustNewConstMetric(nodesMetric, prometheus.GaugeValue, float64(b.Nodes), key.Namespace, key.Name, b.Address)
		}
		value := 0.0
		if meta.IsStatusConditionTrue(status.Conditions, v1alpha1.NFSProberSuspected) {
			value = 1
		}
		to <- prometheus.MustNewConstMetric(suspected, prometheus.GaugeValue, value, key.Namespace, key.Name)
	}
}
