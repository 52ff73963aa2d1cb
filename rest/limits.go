package rest

import (
	"context"
	"net/http"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// The API must never be in the way of admission, which the same process serves:
// it works on so many requests of known callers at once, and refuses the rest.
const (
	concurrent     = 16
	requestTimeout = 20 * time.Second
)

func atMost(n int) func(http.Handler) http.Handler {
	places := make(chan struct{}, n)
	return func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			select {
			case places <- struct{}{}:
				defer func() { <-places }()
				next.ServeHTTP(w, r)
			default:
				tooMany(w)
			}
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
