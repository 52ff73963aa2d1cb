package settingsapi

import (
	"context"
	"net/http"
	"time"

	"golang.org/x/sync/semaphore"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// The API must never delay admission, which the same process serves. So it handles a
// limited number of requests of known callers at once, and refuses the others.
const (
	concurrent     = 16
	requestTimeout = 20 * time.Second
	// connections is how many connections may be open at a time: each holds memory that
	// admission may need.
	connections = 128
)

// atMost limits requests of all sources together, since all callers may come through one gateway.
func atMost(n int64) func(http.Handler) http.Handler {
	places := semaphore.NewWeighted(n)
	return func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if !places.TryAcquire(1) {
				tooMany(w)
				return
			}
			defer places.Release(1)
			next.ServeHTTP(w, r)
		})
	}
}

func tooMany(w http.ResponseWriter) {
	w.Header().Set("Retry-After", "1")
	refuse(w, http.StatusTooManyRequests, metav1.StatusReasonTooManyRequests, "too many requests at once: try again in a second")
}

// within cancels a request's calls to the API server after the timeout.
func within(timeout time.Duration) func(http.Handler) http.Handler {
	return func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			ctx, cancel := context.WithTimeout(r.Context(), timeout)
			defer cancel()
			next.ServeHTTP(w, r.WithContext(ctx))
		})
	}
}
