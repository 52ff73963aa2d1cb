package conntrack

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"slices"
	"sync"
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

func (t *table) Delete(choose func(Entry) bool) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	before := len(t.entries)
	t.entries = slices.DeleteFunc(t.entries, choose)
	t.log = append(t.log, fmt.Sprintf("%s %d", time.Since(t.began), before-len(t.entries)))
	return before - len(t.entries), t.err
}

func TestStaleEntriesAreDeletedUntilKubeProxyFollows(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, stop := context.WithCancel(context.Background())
		now := Frontends{address: {first}, second: {first}}
		entries := &table{began: time.Now(), entries: []Entry{{address, first}, {second, first}, {second, next}}}
		counter, err := NewCounter(prometheus.NewRegistry())
		must.Do(t, err)
		c := &Cleaner{Frontends: func(context.Context) (Frontends, error) { return now, nil }, Table: entries, Log: slog.New(slog.DiscardHandler), Deleted: counter}
		changes, ended := make(chan struct{}), make(chan struct{})
		go func() { c.Run(ctx, changes); close(ended) }()
		changes <- struct{}{}
		time.Sleep(time.Minute)
		synctest.Wait()
		changes <- struct{}{} // nothing changed
		time.Sleep(time.Minute)
		synctest.Wait()
		want := []string{"0s 1", "1s 0", "3s 0", "10s 0", "30s 0"}
		if !slices.Equal(entries.log, want) {
			t.Errorf("at the start %q", entries.log)
		}

		entries.log, entries.began = nil, time.Now()
		now = Frontends{address: {next}, second: {first}}
		changes <- struct{}{}
		time.Sleep(2 * time.Second)
		synctest.Wait()
		entries.mu.Lock() // before kube-proxy follows; and one of an address that did not change
		entries.entries = append(entries.entries, Entry{address, first}, Entry{second, next})
		entries.err = errors.New("interrupted")
		entries.mu.Unlock()
		time.Sleep(time.Minute)
		synctest.Wait()
		if want := []string{"0s 1", "1s 0", "3s 1", "10s 0", "30s 0"}; !slices.Equal(entries.log, want) {
			t.Errorf("after a change %q", entries.log)
		}

		now = Frontends{second: {first}} // no server is left: what there is may come back
		entries.mu.Lock()
		entries.entries = append(entries.entries, Entry{address, first})
		entries.mu.Unlock()
		changes <- struct{}{}
		time.Sleep(time.Minute)
		synctest.Wait()
		if len(entries.log) != 5 {
			t.Errorf("without a server %q", entries.log)
		}
		entries.mu.Lock()
		entries.entries, entries.log, entries.began = []Entry{{address, next}, {second, first}}, nil, time.Now()
		entries.mu.Unlock()
		now = Frontends{address: {first}, second: {first}}
		changes <- struct{}{}
		time.Sleep(2 * time.Second)
		synctest.Wait()
		now = Frontends{address: {first}, second: {next}} // another address, while the first is not done with
		changes <- struct{}{}
		time.Sleep(time.Millisecond)
		synctest.Wait()
		entries.mu.Lock()
		entries.entries = append(entries.entries, Entry{address, next})
		entries.mu.Unlock()
		time.Sleep(time.Minute)
		synctest.Wait()
		if want := []string{"0s 1", "1s 0", "2s 1", "3s 1", "5s 0", "12s 0", "32s 0"}; !slices.Equal(entries.log, want) {
			t.Errorf("after two changes %q", entries.log)
		}
		var m dto.Metric
		if err := counter.Write(&m); err != nil || m.GetCounter().GetValue() != 6 {
			t.Errorf("%v, %v", m.GetCounter(), err)
		}
		stop()
		<-ended
	})
}

// A new NFSService has dozens of Services and slices, and each node hears of each.
func TestManyChangesAreReadTogether(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, stop := context.WithCancel(context.Background())
		reads, changed := 0, time.Time{}
		entries := &table{}
		c := &Cleaner{Frontends: func(context.Context) (Frontends, error) {
			reads, changed = reads+1, time.Now()
			return Frontends{netip.AddrPortFrom(address.Addr(), uint16(reads)): {first}}, nil
		}, Table: entries, Log: slog.New(slog.DiscardHandler)}
		changes, ended := make(chan struct{}), make(chan struct{})
		go func() { c.Run(ctx, changes); close(ended) }()
		var last time.Time
		for range 100 {
			changes <- struct{}{}
			last = time.Now()
			time.Sleep(10 * time.Millisecond)
		}
		time.Sleep(time.Second)
		synctest.Wait()
		if reads > 4 || changed.Before(last) {
			t.Errorf("%d reads, the last %s after the last change", reads, changed.Sub(last))
		}
		stop()
		<-ended
	})
}
