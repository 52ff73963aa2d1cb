package admission

import (
	"net"
	"net/http"
	"reflect"

	"github.com/fairlead-io/fairlead/internal/limits"
)

// The admission port is open to every pod. These bounds keep it within the memory of
// manifests/base/webhook.yaml (96 MiB before the garbage collector works harder, 128 at most).
const (
	// An API server works on 600 requests at a time (--max-requests-inflight 400 and
	// --max-mutating-requests-inflight 200). Behind konnectivity or a masquerading node, several are one source.
	requestsOfSource = 600
	// The API server calls over HTTP/1.1: one request per connection, and 25 idle ones per entry
	// (idleConnsPerHost in client-go/transport). One costs 20 KiB, with 8 KiB of short headers 100 KiB.
	connections, connectionsOfSource = 900, 700
	// memory of reviews in work: one source may send 600 pods of 20 KiB, or one review of MaxBody.
	memory, memoryOfSource = 48 << 20, 24 << 20
)

// LimitConnections bounds the connections of the admission port. It goes below TLS: handshakes cost most.
func LimitConnections(l net.Listener) net.Listener {
	return limits.Listen(l, limits.NewBudget(connections, connectionsOfSource))
}

// Limiter bounds the requests and the memory of reviews in work. A review over a bound is refused, not queued: the API server's
// client tries again after Retry-After, ten times within the webhook's timeout (client-go/rest/with_retry.go).
type Limiter struct{ requests, memory *limits.Budget }

// NewLimiter has the bounds of the admission port.
func NewLimiter() *Limiter {
	return &Limiter{limits.NewBudget(connections, requestsOfSource), limits.NewBudget(memory, memoryOfSource)}
}

// reservation is what one review takes until it is answered.
type reservation struct {
	*Limiter
	source string
	held   int64
}

// reserve takes a request and the memory of its body, before the body is read.
func (l *Limiter) reserve(r *http.Request) (*reservation, error) {
	held := &reservation{Limiter: l, source: limits.Source(r.RemoteAddr)}
	if !l.requests.Take(held.source, 1) {
		return nil, bad(http.StatusTooManyRequests, "more than %d reviews at once from %s: try again in a second", requestsOfSource, held.source)
	}
	if err := held.hold(requestCost + bodySize(r)); err != nil {
		l.requests.Give(held.source, 1)
		return nil, err
	}
	return held, nil
}

// hold takes more memory.
func (r *reservation) hold(n int64) error {
	if r.held+n > memoryOfSource {
		return bad(http.StatusRequestEntityTooLarge, "the review takes %d bytes of memory, at most %d are allowed", r.held+n, memoryOfSource)
	}
	if !r.memory.Take(r.source, n) {
		return bad(http.StatusTooManyRequests, "the reviews in work take all of their memory: try again in a second")
	}
	r.held += n
	return nil
}

// decoded gives back the memory of decoding, except for the decoded view.
func (r *reservation) decoded(took int64, view any) {
	r.give(took - min(took, structure(reflect.ValueOf(view))))
}

func (r *reservation) give(n int64) {
	r.memory.Give(r.source, n)
	r.held -= n
}

func (r *reservation) release() {
	r.give(r.held)
	r.requests.Give(r.source, 1)
}
