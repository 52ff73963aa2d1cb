package admission

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/pprof"
	"runtime/debug"
	"time"

	"github.com/go-chi/chi/v5"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/fairlead-io/fairlead/certs"
)

// Ops serves health, readiness, metrics and, if enabled, profiles.
func Ops(readiness http.Handler, gatherer prometheus.Gatherer, profiles bool) http.Handler {
	router := chi.NewRouter()
	router.Get("/healthz", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprintln(w, "ok") })
	router.Method(http.MethodGet, "/readyz", readiness)
	router.Method(http.MethodGet, "/metrics", promhttp.HandlerFor(gatherer, promhttp.HandlerOpts{}))
	if profiles {
		router.HandleFunc("/debug/pprof/*", pprof.Index)
		router.HandleFunc("/debug/pprof/profile", pprof.Profile)
		router.HandleFunc("/debug/pprof/symbol", pprof.Symbol)
		router.HandleFunc("/debug/pprof/trace", pprof.Trace)
	}
	return router
}

// Readiness of the server: the caches are synced, the server is not draining, and it has a certificate that is valid now for
// the serving name.
type Readiness struct {
	Source      certs.Source
	ServingName string
	Synced      func() bool
	Draining    func() bool
	Now         func() time.Time
}

// Errors of readiness.
var (
	ErrDraining  = errors.New("draining")
	ErrNotSynced = errors.New("caches are not synced")
	ErrNoCert    = errors.New("no certificate is served")
)

// Check returns nil when ready, else why not.
func (r *Readiness) Check() error {
	if r.Draining() {
		return ErrDraining
	}
	if !r.Synced() {
		return ErrNotSynced
	}
	served, err := r.Source.GetCertificate(&tls.ClientHelloInfo{ServerName: r.ServingName})
	if err != nil {
		return fmt.Errorf("%w: %w", ErrNoCert, err)
	}
	if served == nil || len(served.Certificate) == 0 {
		return ErrNoCert
	}
	leaf, err := x509.ParseCertificate(served.Certificate[0])
	if err != nil {
		return fmt.Errorf("%w: %w", ErrNoCert, err)
	}
	if now := r.Now(); now.Before(leaf.NotBefore) || now.After(leaf.NotAfter) {
		return fmt.Errorf("the certificate served is valid from %s to %s", leaf.NotBefore, leaf.NotAfter)
	}
	if err := leaf.VerifyHostname(r.ServingName); err != nil {
		return fmt.Errorf("the certificate served is not the one for %s: %w", r.ServingName, err)
	}
	return nil
}

// ServeHTTP answers 200 when ready and 503 with the reason when not.
func (r *Readiness) ServeHTTP(w http.ResponseWriter, _ *http.Request) {
	if err := r.Check(); err != nil {
		http.Error(w, err.Error(), http.StatusServiceUnavailable)
		return
	}
	fmt.Fprintln(w, "ok")
}

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
