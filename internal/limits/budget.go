// Package limits keeps callers from using up a process: connections, requests and memory are bounded, in sum and per source.
package limits

import (
	"net"
	"sync"
)

// Budget is how much may be in use at a time, in sum and by one source.
type Budget struct {
	total, perSource int64

	mu      sync.Mutex
	used    int64
	sources map[string]int64
}

// NewBudget allows total in sum, of which one source may use perSource.
func NewBudget(total, perSource int64) *Budget {
	return &Budget{total: total, perSource: perSource, sources: map[string]int64{}}
}

// Take reports whether the source may use n more. Who takes must give back as much.
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

// Give gives back what was taken.
func (b *Budget) Give(source string, n int64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.used -= n
	if b.sources[source] -= n; b.sources[source] == 0 {
		delete(b.sources, source) // callers choose their addresses: keep none
	}
}

// Used is what is in use now.
func (b *Budget) Used() int64 {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.used
}

// PerSource is the most that one source may use.
func (b *Budget) PerSource() int64 { return b.perSource }

// Source is the address of a caller without its port: one host opens many connections.
func Source(remoteAddr string) string {
	host, _, err := net.SplitHostPort(remoteAddr)
	if err != nil {
		return remoteAddr
	}
	return host
}
