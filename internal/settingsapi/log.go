package settingsapi

import (
	"context"
	"net/http"
	"runtime/debug"
	"time"

	"github.com/go-chi/chi/v5/middleware"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// sight collects the facts of a request for the log. Headers are never logged.
type sight struct{ user string }

type sightKey struct{}

func seen(ctx context.Context) *sight {
	if s, ok := ctx.Value(sightKey{}).(*sight); ok {
		return s
	}
	return &sight{}
}

// recorded logs a line per request. The API server's audit log also has each change,
// with the user's name.
func (a *api) recorded(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		started, s := time.Now(), &sight{}
		recorder := middleware.NewWrapResponseWriter(w, r.ProtoMajor)
		next.ServeHTTP(recorder, r.WithContext(context.WithValue(r.Context(), sightKey{}, s)))
		a.Log.Debug("api request", "method", r.Method, "path", r.URL.Path, "status", recorder.Status(),
			"user", s.user, "duration", time.Since(started).String())
	})
}

// recovered answers a panic with an error, so that admission continues.
func (a *api) recovered(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		defer func() {
			if p := recover(); p != nil {
				if p == http.ErrAbortHandler {
					panic(p)
				}
				a.Log.Error("panic", "path", r.URL.Path, "panic", p, "stack", string(debug.Stack()))
				refuse(w, http.StatusInternalServerError, metav1.StatusReasonInternalError, "internal error, see Fairlead's log")
			}
		}()
		next.ServeHTTP(w, r)
	})
}
