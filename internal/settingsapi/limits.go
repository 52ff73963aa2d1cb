package settingsapi

import (
	"context"
	"net/http"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fairlead-io/fairlead/internal/limits"
)

// The API must never be in the way of admission, which the same process serves:
// it works on so many requests of known callers at once, and refuses the rest.
const (
	concurrent     = 16
	requestTimeout = 20 * time.Second
	// connections that may be open at a time: each holds memory that admission may need. Half of
	// them for one address, so that no address uses them up.
	connections, connectionsOfSource = 128, 64
)

// atMost counts all sources together: all callers may come through one gateway.
func atMost(n int64) func(http.Handler) http.Handler {
	places := limits.NewBudget(n, n)
	return func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if !places.Take("", 1) {
				tooMany(w)
				return
			}
			defer places.Give("", 1)
			next.ServeHTTP(w, r)
		})
	}
}

func tooMany(w http.ResponseWriter) {
	w.Header().Set("Retry-After", "1")
	refuse(w, http.StatusTooManyRequests, metav1.StatusReasonTooManyRequests, "too many requests at once: try again in a second")
}

// within ends what a request has asked of the API server when nobody waits for it any more.
func within(timeout time.Duration) func(http.Handler) http.Handler {
	return func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			ctx, cancel := context.WithTimeout(r.Context(), timeout)
			defer cancel()
			next.ServeHTTP(w, r.WithContext(ctx))
		})
	}
}
