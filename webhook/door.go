package webhook

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

// door bounds what reviews in work hold. A review over a bound is refused, not queued: the API server's
// client tries again after Retry-After, ten times within the webhook's timeout (client-go/rest/with_retry.go).
type door struct{ requests, memory *limits.Budget }

func newDoor() *door {
	return &door{limits.NewBudget(connections, requestsOfSource), limits.NewBudget(memory, memoryOfSource)}
}

// visit is what one review holds until it is answered.
type visit struct {
	*door
	source string
	held   int64
}

// enter takes the place of a request and the memory of its body, before the body is read.
func (d *door) enter(r *http.Request) (*visit, error) {
	v := &visit{door: d, source: limits.Source(r.RemoteAddr)}
	if !d.requests.Take(v.source, 1) {
		return nil, bad(http.StatusTooManyRequests, "more than %d reviews at once from %s: try again in a second", requestsOfSource, v.source)
	}
	if err := v.hold(requestCost + bodySize(r)); err != nil {
		d.requests.Give(v.source, 1)
		return nil, err
	}
	return v, nil
}

// hold takes more memory.
func (v *visit) hold(n int64) error {
	if v.held+n > memoryOfSource {
		return bad(http.StatusRequestEntityTooLarge, "the review takes %d bytes of memory, at most %d are allowed", v.held+n, memoryOfSource)
	}
	if !v.memory.Take(v.source, n) {
		return bad(http.StatusTooManyRequests, "the reviews in work take all memory that they may: try again in a second")
	}
	v.held += n
	return nil
}

// decoded gives back what decoding took beyond what it left.
func (v *visit) decoded(took int64, view any) {
	v.give(took - min(took, structure(reflect.ValueOf(view))))
}

func (v *visit) give(n int64) {
	v.memory.Give(v.source, n)
	v.held -= n
}

func (v *visit) leave() {
	v.give(v.held)
	v.requests.Give(v.source, 1)
}
