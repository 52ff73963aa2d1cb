//go:build linux

package main

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"time"

	"github.com/fairlead-io/fairlead/internal/csi/registration"
	"github.com/fairlead-io/fairlead/internal/csi/server"
)

// probeTimeout is how long a driver's socket may take to answer. The liveness probe waits one second longer.
const probeTimeout = 4 * time.Second

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
