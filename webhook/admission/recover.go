package admission

import (
	"log/slog"
	"net/http"
	"runtime/debug"
)

// Recoverer answers a panic with an error: the failure policy decides, and the server keeps serving.
func Recoverer(log *slog.Logger) func(http.Handler) http.Handler {
	return func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			defer func() {
				if p := recover(); p != nil {
					if p == http.ErrAbortHandler {
						panic(p)
					}
					log.Error("panic", "path", r.URL.Path, "panic", p, "stack", string(debug.Stack()))
					http.Error(w, "internal error, see Fairlead's log", http.StatusInternalServerError)
				}
			}()
			next.ServeHTTP(w, r)
		})
	}
}
