package conntrack

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"

	"github.com/fairlead-io/fairlead/internal/testkit/must"
)

var (
	address = netip.MustParseAddrPort("10.96.0.1:2049")
	second  = netip.MustParseAddrPort("10.96.0.2:2049")
	first   = netip.MustParseAddrPort("10.0.0.1:2049")
	next    = netip.MustParseAddrPort("10.0.0.2:2049")
)

// table notes when it was asked, and what was chosen of its entries.
type table struct {
	mu      sync.Mutex
	began   time.Time
	entries []Entry
	log     []string
	err     error
}

// change lets a test write while the cleaner may read.
func (t *table) change(f func()) {
	t.mu.Lock()
	defer t.mu.Unlock()
	f()
}

func (t *table) Delete(_ []netip.AddrPort, choose func(Entry) bool) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	before := len(t.entries)
	t.entries = slices.DeleteFunc(t.entries, choose)
	t.log = append(t.log, fmt.Sprintf("%s %d", time.Since(t.began), before-len(t.entries)))
	return before - len(t.entries), t.err
}

// inBubble runs a Cleaner in fake time. change tells it that the frontends may have changed.
func inBubble(t *testing.T, c *Cleaner, f func(change func())) {
	synctest.Test(t, func(t *testing.T) {
		ctx, stop := context.WithCancel(context.Background())
		c.Log = slog.New(slog.DiscardHandler)
		metrics, err := NewMetrics(prometheus.NewRegistry())
		must.Do(t, err)
		c.Metrics = metrics
		changes, ended := make(chan struct{}), make(chan struct{})
		go func() { c.Run(ctx, changes); close(ended) }()
		f(func() { changes <- struct{}{} })
		stop()
		<-ended
	})
}

func pass(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

func TestStaleEntriesAreDeletedUntilKubeProxyFollows(t *testing.T) {
	var now Frontends
	entries := &table{entries: []Entry{{address, first}, {second, first}, {second, next}}}
	c := &Cleaner{Frontends: func(context.Context) (Frontends, error) { return now, nil }, Table: entries}
	inBubble(t, c, func(change func()) {
		begin := func(f Frontends) {
			now = f
			change()
		}
		entries.change(func() { entries.began = time.Now() })
		begin(Frontends{address: {first}, second: {first}})
		pass(time.Minute)
		must.Equal(t, entries.log, []string{"0s 1", "1s 0", "5s 0", "30s 0"}, "at the start")

		entries.change(func() { entries.log, entries.began = nil, time.Now() })
		begin(Frontends{address: {next}, second: {first}})
		pass(2 * time.Second)
		// Before kube-proxy follows.
		entries.change(func() { entries.entries = append(entries.entries, Entry{address, first}) })
		pass(time.Minute)
		must.Equal(t, entries.log, []string{"0s 1", "1s 0", "5s 1", "30s 0"}, "after a change")

		entries.change(func() { entries.entries = append(entries.entries, Entry{address, first}) })
		begin(Frontends{second: {first}}) // no server is left: what there is may come back
		pass(45 * time.Second)
		must.Equal(t, entries.entries, []Entry{{second, first}, {address, first}}, "without a server")

		entries.change(func() {
			entries.entries, entries.log, entries.began = []Entry{{address, next}, {second, first}}, nil, time.Now()
		})
		begin(Frontends{address: {first}, second: {first}})
		pass(2 * time.Second)
		begin(Frontends{address: {first}, second: {next}}) // another address, while the first is not done with
		pass(time.Millisecond)
		entries.change(func() { entries.entries = append(entries.entries, Entry{address, next}) })
		pass(time.Minute)
		must.Equal(t, entries.log, []string{"0s 1", "1s 0", "2s 1", "3s 1", "7s 0", "32s 0"}, "after two changes")
	})
	must.Equal(t, value(t, c.Metrics.deleted), 6, "deleted")
}

// value of a metric.
func value(t *testing.T, m prometheus.Metric) float64 {
	t.Helper()
	var data dto.Metric
	must.Do(t, m.Write(&data))
	return data.GetCounter().GetValue() + data.GetGauge().GetValue()
}

func TestMetricSaysWhenCleanerLastLooked(t *testing.T) {
	var unknown atomic.Bool
	entries := &table{err: errors.New("not permitted")}
	c := &Cleaner{Table: entries, Frontends: func(context.Context) (Frontends, error) {
		if unknown.Load() {
			return nil, errors.New("not known yet")
		}
		return Frontends{address: {first}}, nil
	}}
	inBubble(t, c, func(change func()) {
		ago := func() time.Duration {
			pass(0)
			return time.Since(time.Unix(0, int64(value(t, c.Metrics.looked)*1e9))).Round(time.Second)
		}
		unknown.Store(true)
		change()
		pass(5 * time.Minute)
		must.Equal(t, value(t, c.Metrics.looked), 0, "before the Services are known")
		unknown.Store(false)
		pass(5 * time.Minute)
		must.Equal(t, value(t, c.Metrics.looked), 0, "while entries can't be deleted")
		entries.change(func() { entries.err = nil })
		pass(time.Minute)
		must.True(t, ago() <= time.Minute, "%s ago", ago())
		pass(time.Hour)
		must.True(t, ago() <= time.Minute, "%s ago, without a change", ago())
	})
}

// A new NFSService has dozens of Services and slices, and each node hears of each.
func TestManyChangesAreReadTogether(t *testing.T) {
	reads, read := 0, time.Time{}
	c := &Cleaner{Table: &table{}, Frontends: func(context.Context) (Frontends, error) {
		reads, read = reads+1, time.Now()
		return Frontends{netip.AddrPortFrom(address.Addr(), uint16(reads)): {first}}, nil
	}}
	inBubble(t, c, func(change func()) {
		var last time.Time
		for range 100 {
			change()
			last = time.Now()
			time.Sleep(10 * time.Millisecond)
		}
		pass(time.Second)
		if reads > 4 || read.Before(last) {
			t.Errorf("%d reads, the last %s after the last change", reads, read.Sub(last))
		}
	})
}
