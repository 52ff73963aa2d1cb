package settingsapi

import (
	"crypto/sha256"
	"net"
	"net/http"
	"sync"
	"time"

	"k8s.io/client-go/util/flowcontrol"
	"k8s.io/utils/lru"
)

// Callers with unknown tokens must not delay authenticated callers: each unknown token
// costs a request to the API server.
const (
	// authenticating is how many tokens are reviewed at once, in addition to requests being handled.
	authenticating = 16
	// unknownFor is how long a token stays unknown. A new token may have to wait so long.
	unknownFor = 5 * time.Second
	// remembered is how many recent tokens and addresses are kept, some hundred bytes each.
	remembered = 4096
	// reviewRate (per second) and reviewBurst limit token reviews for one address to half of
	// Fairlead's own limit at the API server, so that no address uses all of it.
	reviewRate, reviewBurst = 10, 20
)

// unknownTokens has the hashes of tokens that the API server rejected recently.
type unknownTokens struct {
	cache *lru.Cache
	now   func() time.Time
}

func newUnknownTokens() *unknownTokens { return &unknownTokens{lru.New(remembered), time.Now} }

func (u *unknownTokens) add(token string) {
	u.cache.Add(sha256.Sum256([]byte(token)), u.now().Add(unknownFor))
}

func (u *unknownTokens) has(token string) bool {
	until, known := u.cache.Get(sha256.Sum256([]byte(token)))
	return known && u.now().Before(until.(time.Time))
}

// reviewLimits limits token reviews per address.
type reviewLimits struct {
	lock      sync.Mutex
	addresses *lru.Cache
}

func newReviewLimits() *reviewLimits { return &reviewLimits{addresses: lru.New(remembered)} }

// allow reports whether another token from the request's address may be reviewed now.
func (l *reviewLimits) allow(r *http.Request) bool {
	address, _, err := net.SplitHostPort(r.RemoteAddr)
	if err != nil {
		address = r.RemoteAddr
	}
	l.lock.Lock()
	defer l.lock.Unlock()
	limiter, known := l.addresses.Get(address)
	if !known {
		limiter = flowcontrol.NewTokenBucketPassiveRateLimiter(reviewRate, reviewBurst)
		l.addresses.Add(address, limiter)
	}
	return limiter.(flowcontrol.PassiveRateLimiter).TryAccept()
}
