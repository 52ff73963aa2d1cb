package admission

import (
	"bytes"
	"net/http"

	"golang.org/x/sync/semaphore"
)

// Limit bounds the memory of the reviews in work, beside their connections and headers. The admission port is open to every
// pod, unless a NetworkPolicy or a client CA closes it (docs/webhook-access.md). A review over the bound is refused, not
// queued: the API server's client tries again after Retry-After, ten times within the webhook's timeout
// (client-go/rest/with_retry.go).
type Limit struct{ memory *semaphore.Weighted }

const (
	// memory of all reviews in work, in bytes. With the rest of the process it stays within the memory limit of
	// manifests/base/webhook.yaml. An API server works on 600 requests at a time; a pod of 12 KiB counts as 150 KiB.
	memory = 192 << 20
	// most is for one review.
	most = memory / 4
	// requestCost is what a request of the API server takes beside its body.
	requestCost = 16 << 10
	// valueCost is what decoding takes at most for each comma or brace: measured 180 bytes for a name in a map, and
	// 250 for {} in a list of 72 bytes each while the list grows. A pod of 12 KiB has 650 of them.
	valueCost = 160
)

// NewLimit has the bounds of the admission port.
func NewLimit() *Limit { return &Limit{semaphore.NewWeighted(memory)} }

// reservation is what one review takes until it is answered.
type reservation struct {
	*Limit
	held int64
}

// reserve takes the memory of a request and its body, before the body is read.
func (l *Limit) reserve(r *http.Request) (*reservation, error) {
	held := &reservation{Limit: l}
	return held, held.hold(requestCost + bodySize(r))
}

// hold takes more memory.
func (r *reservation) hold(n int64) error {
	if r.held+n > most {
		return bad(http.StatusRequestEntityTooLarge, "the review takes %d bytes of memory, at most %d are allowed", r.held+n, most)
	}
	if !r.memory.TryAcquire(n) {
		return bad(http.StatusTooManyRequests, "the reviews in work take all of their memory: try again in a second")
	}
	r.held += n
	return nil
}

func (r *reservation) release() { r.memory.Release(r.held) }

// bodySize is how much of a body is read at most. The API server always sends the length.
func bodySize(r *http.Request) int64 {
	if r.ContentLength < 0 {
		return MaxBody
	}
	return min(r.ContentLength, MaxBody)
}

// decodingCost bounds the memory for decoding a body, beside the body.
func decodingCost(body []byte) int64 {
	return valueCost * int64(bytes.Count(body, []byte{','})+bytes.Count(body, []byte{'{'}))
}
