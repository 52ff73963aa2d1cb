package conntrack

import (
	"context"
	"errors"
	"log/slog"
	"maps"
	"net/netip"
	"slices"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// passes are how long after a change stale entries are deleted. kube-proxy may repoint
// the address later than this process sees the change, and until then a packet of the
// client recreates the old entry.
var passes = []time.Duration{0, time.Second, 5 * time.Second, 30 * time.Second}

// between is the least time between two changes that are acted on: many Services change together, and each look covers all.
const between = 500 * time.Millisecond

// resync is how often stale entries are looked for without a change: the metric then shows that this works.
const resync = time.Minute

// Table is the node's connection tracking.
type Table interface {
	// Delete deletes TCP entries to some destinations that the function chooses, and returns how many. The function
	// may be asked about others.
	Delete(to []netip.AddrPort, choose func(Entry) bool) (int, error)
}

// Cleaner deletes stale entries after each change of Services or slices.
type Cleaner struct {
	// Frontends returns what is published now.
	Frontends func(context.Context) (Frontends, error)
	Table     Table
	Log       *slog.Logger
	Metrics   *Metrics
}

// Metrics of the cleaner.
type Metrics struct {
	deleted prometheus.Counter
	looked  prometheus.Gauge
}

// NewMetrics registers the metrics.
func NewMetrics(r prometheus.Registerer) (*Metrics, error) {
	m := &Metrics{
		deleted: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "fairlead_csi_conntrack_deleted_total", Help: "Connections to NFS servers that an address has left, deleted from connection tracking.",
		}),
		looked: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "fairlead_csi_conntrack_last_look_timestamp_seconds",
			Help: "When the node plugin last deleted the connections that the addresses of NFS services have left, by what it last read of them; 0: never.",
		}),
	}
	return m, errors.Join(r.Register(m.deleted), r.Register(m.looked))
}

// Run works until the context ends. The channel says that Services or slices have
// changed; its first message says that all are known.
func (c *Cleaner) Run(ctx context.Context, changes <-chan struct{}) {
	var began time.Time // the first look after a change
	next := 0           // of passes
	timer := time.NewTimer(resync)
	timer.Stop()
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-changes:
			timer.Reset(time.Until(began.Add(between)))
			next = 0
		case <-timer.C:
			if next == 0 {
				began = time.Now()
			}
			c.look(ctx)
			if next++; next < len(passes) {
				timer.Reset(time.Until(began.Add(passes[next])))
			} else {
				timer.Reset(resync)
			}
		}
	}
}

// look deletes the entries that are stale now.
func (c *Cleaner) look(ctx context.Context) {
	frontends, err := c.Frontends(ctx)
	if err != nil {
		c.Log.Error("Reading NFS services failed", "error", err)
		return
	}
	deleted, err := c.Table.Delete(slices.Collect(maps.Keys(frontends)), frontends.IsStale)
	if err == nil {
		c.Metrics.looked.SetToCurrentTime()
	} else {
		c.Log.Error("Deleting connections to NFS servers that are no longer used failed: clients of a hung server wait until TCP gives up", "error", err)
	}
	if deleted > 0 {
		c.Log.Info("Deleted connections to NFS servers that are no longer used", "connections", deleted)
		c.Metrics.deleted.Add(float64(deleted))
	}
}
