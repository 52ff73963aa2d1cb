package conntrack

import (
	"context"
	"log/slog"
	"maps"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// passes are how long after a change stale entries are deleted. kube-proxy may repoint
// the address later than this process sees the change, and until then a packet of the
// client recreates the old entry.
var passes = []time.Duration{0, time.Second, 3 * time.Second, 10 * time.Second, 30 * time.Second}

// between is the least time between two reads of the Services: many of them change together, and each read covers all.
const between = 500 * time.Millisecond

// Table is the node's connection tracking.
type Table interface {
	// Delete deletes the TCP entries that the function chooses, and returns how many.
	Delete(choose func(Entry) bool) (int, error)
}

// Cleaner deletes stale entries after each change of a frontend.
type Cleaner struct {
	// Frontends returns what is published now.
	Frontends func(context.Context) (Frontends, error)
	Table     Table
	Log       *slog.Logger
	// Deleted counts entries; nil counts nothing.
	Deleted prometheus.Counter
}

// NewCounter registers fairlead_csi_conntrack_deleted_total.
func NewCounter(r prometheus.Registerer) (prometheus.Counter, error) {
	c := prometheus.NewCounter(prometheus.CounterOpts{
		Name: "fairlead_csi_conntrack_deleted_total", Help: "Connections to NFS servers that an address has left, deleted from connection tracking.",
	})
	return c, r.Register(c)
}

// Run works until the context ends. The channel says that Services or slices have
// changed; its first message says that all are known.
func (c *Cleaner) Run(ctx context.Context, changes <-chan struct{}) {
	known, pending := Frontends{}, Frontends{}
	var began, read time.Time
	next := len(passes)
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
			now, err := c.Frontends(ctx)
			if err != nil {
				c.Log.Error("Reading NFS services failed", "error", err)
				continue
			}
			changed := now.Changed(known)
			known = now
			if len(changed) == 0 {
				continue
			}
			maps.Copy(pending, changed)
			began, next = time.Now(), 0
			timer.Reset(passes[0])
		case <-timer.C:
			c.pass(known, pending)
			if next++; next == len(passes) {
				clear(pending)
				continue
			}
			timer.Reset(time.Until(began.Add(passes[next])))
		}
	}
}

func (c *Cleaner) pass(known, pending Frontends) {
	deleted, err := c.Table.Delete(func(e Entry) bool {
		_, ok := pending[e.Destination]
		return ok && known.IsStale(e)
	})
	if err != nil {
		c.Log.Error("Deleting connections to NFS servers that are no longer used failed: clients of a hung server wait until TCP gives up", "error", err)
	}
	if deleted > 0 {
		c.Log.Info("Deleted connections to NFS servers that are no longer used", "connections", deleted)
		if c.Deleted != nil {
			c.Deleted.Add(float64(deleted))
		}
	}
}
