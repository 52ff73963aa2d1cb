package settingsapi

import (
	"crypto/sha256"
	"net/http"
	"sync"
	"time"

	"k8s.io/client-go/util/flowcontrol"
	"k8s.io/utils/lru"

	"github.com/fairlead-io/fairlead/internal/limits"
)

// Whoever has not shown a token of the cluster yet must not be in the way of those
// who have: each token that nobody knows costs a question to the API server.
const (
	// authenticating is how many tokens are reviewed at once, beside the requests that are worked on.
	authenticating = 16
	// unknownFor is how long a token stays unknown: so long a new one may have to wait.
	unknownFor = 5 * time.Second
	// remembered tokens and addresses, the latest: each is some hundred bytes.
	remembered = 4096
	// reviewRate and reviewBurst are how many tokens from one address are reviewed in a second.
	// Half of what Fairlead asks of the API server, so that no address uses it up.
	reviewRate, reviewBurst = 10, 20
)

// unknownTokens are those that the API server did not know a moment ago, by hash.
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

// reviewLimits are limits of single addresses.
type reviewLimits struct {
	lock      sync.Mutex
	addresses *lru.Cache
}

func newReviewLimits() *reviewLimits { return &reviewLimits{addresses: lru.New(remembered)} }

// allow tells whether one more token from where the request comes from may be reviewed now.
func (l *reviewLimits) allow(r *http.Request) bool {
	address := limits.Source(r.RemoteAddr)
	l.lock.Lock()
	defer l.lock.Unlock()
	limiter, known := l.addresses.Get(address)
	if !known {
		limiter = flowcontrol.NewTokenBucketPassiveRateLimiter(reviewRate, reviewBurst)
		l.addresses.Add(address, limiter)
	}
	return limiter.(flowcontrol.PassiveRateLimiter).TryAccept()
}
