//go:build linux

package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/fairlead-io/fairlead/internal/csi/registration"
	"github.com/fairlead-io/fairlead/internal/csi/server"
)

// serveMetrics serves /metrics until the context ends.
func serveMetrics(ctx context.Context, listen string, registry *prometheus.Registry) error {
	mux := http.NewServeMux()
	mux.Handle("/metrics", promhttp.HandlerFor(registry, promhttp.HandlerOpts{}))
	return serveHTTP(ctx, listen, mux)
}

// probeTimeout is how long a driver's socket may take to answer. The liveness probe waits one second longer.
const probeTimeout = 4 * time.Second

// serveHealth serves /healthz and /readyz until the context ends.
func serveHealth(ctx context.Context, listen string, registrations []*registration.Registration) error {
	return serveHTTP(ctx, listen, healthHandler(registrations))
}

// healthHandler answers /healthz and /readyz. Healthy means that each driver answers on its socket. Ready means that the
// kubelet has registered all drivers.
func healthHandler(registrations []*registration.Registration) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("/healthz", func(w http.ResponseWriter, r *http.Request) {
		ctx, cancel := context.WithTimeout(r.Context(), probeTimeout)
		defer cancel()
		for _, driver := range registrations {
			if err := server.Probe(ctx, driver.Endpoint); err != nil {
				http.Error(w, fmt.Sprintf("driver %s: %v", driver.Driver, err), http.StatusServiceUnavailable)
				return
			}
		}
		fmt.Fprintln(w, "ok")
	})
	mux.HandleFunc("/readyz", func(w http.ResponseWriter, _ *http.Request) {
		if i := slices.IndexFunc(registrations, func(r *registration.Registration) bool { return !r.Registered() }); i >= 0 {
			http.Error(w, "the kubelet has not registered the driver "+registrations[i].Driver, http.StatusServiceUnavailable)
			return
		}
		fmt.Fprintln(w, "ok")
	})
	return mux
}

func serveHTTP(ctx context.Context, listen string, handler http.Handler) error {
	if listen == "0" || listen == "" {
		return nil
	}
	s := &http.Server{Addr: listen, Handler: handler, ReadHeaderTimeout: 10 * time.Second}
	stop := context.AfterFunc(ctx, func() { s.Close() })
	defer stop()
	if err := s.ListenAndServe(); !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("serving on %s: %w", listen, err)
	}
	return nil
}
