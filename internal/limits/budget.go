// Package limits bounds connections, requests and memory, in total and per source, so that callers can't exhaust a process.
package limits

import (
	"net"
	"sync"
)

// Budget limits the use of a resource, in total and per source.
type Budget struct {
	total, perSource int64

	mu      sync.Mutex
	used    int64
	sources map[string]int64
}

// NewBudget allows total units, of which one source may use perSource.
func NewBudget(total, perSource int64) *Budget {
	return &Budget{total: total, perSource: perSource, sources: map[string]int64{}}
}

// Take reserves n units for the source, and reports whether the budget allows it. The caller returns the units with Give.
func (b *Budget) Take(source string, n int64) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if n > b.total-b.used || n > b.perSource-b.sources[source] {
		return false
	}
	b.used += n
	b.sources[source] += n
	return true
}

// Give returns n units that the source took.
func (b *Budget) Give(source string, n int64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.used -= n
	if b.sources[source] -= n; b.sources[source] == 0 {
		delete(b.sources, source) // callers choose their addresses: keep none
	}
}

// Used is the number of units in use.
func (b *Budget) Used() int64 {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.used
}

// PerSource is the limit of one source.
func (b *Budget) PerSource() int64 { return b.perSource }

// Source is a caller's address without the port, since one host opens many connections.
func Source(remoteAddr string) string {
	host, _, err := net.SplitHostPort(remoteAddr)
	if err != nil {
		return remoteAddr
	}
	return host
}
