package admission

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"sync/atomic"
	"time"
)

// Server serves admission over TLS and drains without dropping a request.
type Server struct {
	Listener net.Listener // with TLS
	Handler  http.Handler
	// DrainDelay is how long the server keeps serving after it became unready, until no new connections arrive.
	DrainDelay time.Duration
	Log        *slog.Logger

	draining atomic.Bool
}

// shutdownTimeout is longer than the longest deadline of a webhook.
const shutdownTimeout = 35 * time.Second

// Draining reports whether the server is about to end.
func (s *Server) Draining() bool { return s.draining.Load() }

// Start serves until the context ends, and drains then: the server is unready but keeps serving while other replicas take
// over, each answer closes its connection, and the server ends after the last answer.
func (s *Server) Start(ctx context.Context) error {
	server := &http.Server{
		Handler:           s.closingWhileDraining(s.Handler),
		ReadHeaderTimeout: 10 * time.Second,
		ReadTimeout:       15 * time.Second, // the API server sends at once; a slow sender holds no memory
		WriteTimeout:      45 * time.Second, // the longest timeout of a webhook, 30s, after the body was read
		IdleTimeout:       2 * time.Minute,
		MaxHeaderBytes:    4 << 10, // net/http adds 4 KiB; the API server sends 1 KiB, and a token if configured
		ErrorLog:          slog.NewLogLogger(s.Log.Handler(), slog.LevelDebug),
	}
	failed := make(chan error, 1)
	go func() { failed <- server.Serve(s.Listener) }()
	s.Log.Info("serving admission", "address", s.Listener.Addr().String())
	select {
	case err := <-failed:
		return fmt.Errorf("serving admission: %w", err)
	case <-ctx.Done():
	}
	s.draining.Store(true)
	s.Log.Info("draining", "delay", s.DrainDelay.String())
	time.Sleep(s.DrainDelay)
	deadline, cancel := context.WithTimeout(context.WithoutCancel(ctx), shutdownTimeout)
	defer cancel()
	if err := server.Shutdown(deadline); err != nil {
		return fmt.Errorf("draining: %w", err)
	}
	if err := <-failed; !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("serving admission: %w", err)
	}
	s.Log.Info("drained")
	return nil
}

// closingWhileDraining closes connections by the state when an answer begins, not when its request arrived.
func (s *Server) closingWhileDraining(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		next.ServeHTTP(&closingWriter{ResponseWriter: w, draining: &s.draining}, r)
	})
}

type closingWriter struct {
	http.ResponseWriter
	draining *atomic.Bool
	begun    bool
}

func (w *closingWriter) WriteHeader(status int) {
	if !w.begun && w.draining.Load() {
		w.Header().Set("Connection", "close")
	}
	w.begun = true
	w.ResponseWriter.WriteHeader(status)
}

func (w *closingWriter) Write(data []byte) (int, error) {
	if !w.begun {
		w.WriteHeader(http.StatusOK)
	}
	return w.ResponseWriter.Write(data)
}

// Unwrap is for http.ResponseController.
func (w *closingWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }
