package settingsapi

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"time"

	"golang.org/x/net/netutil"
)

// Server serves the API on its own listener.
type Server struct {
	Listener net.Listener
	TLS      *tls.Config
	Handler  http.Handler
	Log      *slog.Logger
}

// shutdownTimeout and the time that admission needs to drain fit in the pod's grace period.
const shutdownTimeout = 5 * time.Second

// Start serves until the context ends, then waits for requests that have begun.
func (s *Server) Start(ctx context.Context) error {
	server := &http.Server{
		Handler:           s.Handler,
		ReadHeaderTimeout: 5 * time.Second,
		ReadTimeout:       10 * time.Second,
		WriteTimeout:      requestTimeout + 10*time.Second,
		IdleTimeout:       time.Minute,
		MaxHeaderBytes:    32 << 10,
		ErrorLog:          slog.NewLogLogger(s.Log.Handler(), slog.LevelDebug),
	}
	failed := make(chan error, 1)
	go func() {
		failed <- server.Serve(tls.NewListener(netutil.LimitListener(s.Listener, connections), s.TLS))
	}()
	s.Log.Info("serving the API", "address", s.Listener.Addr().String())
	select {
	case err := <-failed:
		return fmt.Errorf("serving the API: %w", err)
	case <-ctx.Done():
	}
	deadline, cancel := context.WithTimeout(context.WithoutCancel(ctx), shutdownTimeout)
	defer cancel()
	if err := server.Shutdown(deadline); err != nil {
		_ = server.Close()
	}
	if err := <-failed; !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("serving the API: %w", err)
	}
	return nil
}
