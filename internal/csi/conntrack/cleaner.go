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

// between is the least time between two reads of the Services: many of them change together, and each read covers all.
const between = 500 * time.Millisecond

// resync is how often the Services are read without a change, so that the metric shows that this works.
const resync = time.Minute

// Table is the node's connection tracking.
type Table interface {
	// Delete deletes TCP entries to some destinations that the function chooses, and returns how many. The function
	// may be asked about others.
	Delete(to []netip.AddrPort, choose func(Entry) bool) (int, error)
}

// Cleaner deletes stale entries after each change of a frontend.
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
	known, pending := Frontends{}, Frontends{} // pending: frontends that are looked at again
	var began, read time.Time
	next := 0
	timer, due := time.NewTimer(0), time.NewTimer(0)
	timer.Stop()
	due.Stop()
	defer timer.Stop()
	defer due.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-changes:
			due.Reset(time.Until(read.Add(between)))
		case <-due.C:
			read = time.Now()
			due.Reset(resync)
			now, err := c.Frontends(ctx)
			if err != nil {
				c.Log.Error("Reading NFS services failed", "error", err)
				continue
			}
			changed := now.Changed(known)
			known = now
			if len(changed) == 0 {
				if len(pending) == 0 {
					c.Metrics.looked.SetToCurrentTime()
				}
				continue
			}
			maps.Copy(pending, changed)
			began, next = time.Now(), 0
			timer.Reset(passes[0])
		case <-timer.C:
			done := c.pass(known, pending)
			switch {
			case done && next == len(passes)-1:
				clear(pending)
				continue
			case done || next < len(passes)-1:
				next++
			default: // the last one is repeated until it works
				began = time.Now()
			}
			timer.Reset(time.Until(began.Add(passes[next])))
		}
	}
}

// pass deletes stale entries to addresses that have changed, and reports whether that was possible.
func (c *Cleaner) pass(known, pending Frontends) bool {
	deleted, err := c.Table.Delete(slices.Collect(maps.Keys(pending)), func(e Entry) bool {
		_, ok := pending[e.Destination]
		return ok && known.IsStale(e)
	})
	if err == nil {
		c.Metrics.looked.SetToCurrentTime()
	} else {
		c.Log.Error("Deleting connections to NFS servers that are no longer used failed: clients of a hung server wait until TCP gives up", "error", err)
	}
	if deleted > 0 {
		c.Log.Info("Deleted connections to NFS servers that are no longer used", "connections", deleted)
		c.Metrics.deleted.Add(float64(deleted))
	}
	return err == nil
}
