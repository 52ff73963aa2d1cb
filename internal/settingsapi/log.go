package settingsapi

import (
	"context"
	"net/http"
	"runtime/debug"
	"time"

	"github.com/go-chi/chi/v5/middleware"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// sight is what the log learns of a request on its way: never its headers.
type sight struct{ user string }

type sightKey struct{}

func seen(ctx context.Context) *sight {
	if s, ok := ctx.Value(sightKey{}).(*sight); ok {
		return s
	}
	return &sight{}
}

// recorded writes a line per request. Whoever changes something is also in the
// API server's audit log, under their own name.
func (a *api) recorded(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		started, s := time.Now(), &sight{}
		recorder := middleware.NewWrapResponseWriter(w, r.ProtoMajor)
		next.ServeHTTP(recorder, r.WithContext(context.WithValue(r.Context(), sightKey{}, s)))
		a.Log.Debug("api request", "method", r.Method, "path", r.URL.Path, "status", recorder.Status(),
			"user", s.user, "duration", time.Since(started).String())
	})
}

// recovered answers a panic with an error: admission goes on.
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
