package admission

import (
	"context"
	"crypto/tls"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"path/filepath"
	"strconv"
	"sync/atomic"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/webhook"

	"github.com/fairlead-io/fairlead/certs"
)

// Server serves admission with controller-runtime's webhook server, and ends without dropping a review.
type Server struct {
	// Address to listen on: <host>:<port>, or :<port>.
	Address string
	// Source of the serving certificate.
	Source certs.Source
	// ClientCAFile, if set: clients need a certificate of its CAs, PEM.
	ClientCAFile string
	Handler      http.Handler
	// DrainDelay is how long the server keeps serving after its context ended, until no new connections arrive.
	DrainDelay time.Duration
	Log        *slog.Logger

	draining atomic.Bool
}

const (
	// The API server sends a review at once: a slow sender holds no memory for long.
	readTimeout = 15 * time.Second
	// The longest timeout of a webhook is 30 seconds, after the body was read.
	writeTimeout = 45 * time.Second
)

// Draining reports whether the server is about to end.
func (s *Server) Draining() bool { return s.draining.Load() }

// Start serves until the context ends, and drains then: the server is unready but keeps serving while other replicas take
// over, requests that come then get their connections closed, and it ends after the last answer.
func (s *Server) Start(ctx context.Context) error {
	host, port, err := net.SplitHostPort(s.Address)
	if err != nil {
		return fmt.Errorf("listening for admission: %w", err)
	}
	options := webhook.Options{Host: host, TLSOpts: []func(*tls.Config){ServingTLS(s.Source)}, WebhookMux: http.NewServeMux()}
	if options.Port, err = strconv.Atoi(port); err != nil || options.Port == 0 {
		return fmt.Errorf("listening for admission: %q is not the number of a port", port)
	}
	if s.ClientCAFile != "" {
		options.CertDir, options.ClientCAName = filepath.Dir(s.ClientCAFile), filepath.Base(s.ClientCAFile)
	}
	options.WebhookMux.Handle("/", s)
	serving, end := context.WithCancel(context.WithoutCancel(ctx))
	defer end()
	stop := context.AfterFunc(ctx, func() {
		s.draining.Store(true)
		s.Log.Info("draining", "delay", s.DrainDelay.String())
		time.AfterFunc(s.DrainDelay, end)
	})
	defer stop()
	s.Log.Info("serving admission", "address", s.Address)
	if err := webhook.NewServer(options).Start(serving); err != nil {
		return fmt.Errorf("serving admission: %w", err)
	}
	s.Log.Info("drained")
	return nil
}

// ServeHTTP serves one request of a connection.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if s.Draining() {
		w.Header().Set("Connection", "close")
	}
	connection, now := http.NewResponseController(w), time.Now()
	_ = connection.SetReadDeadline(now.Add(readTimeout)) // fails only without a connection
	_ = connection.SetWriteDeadline(now.Add(writeTimeout))
	// controller-runtime cancels the requests in work when it shuts down. They are answered, unless their callers have left.
	ctx, cancel := context.WithCancel(context.WithoutCancel(r.Context()))
	defer cancel()
	defer context.AfterFunc(r.Context(), func() {
		if !s.Draining() {
			cancel()
		}
	})()
	s.Handler.ServeHTTP(w, r.WithContext(ctx))
}

// ServingTLS serves the source's certificate over TLS 1.3.
func ServingTLS(source certs.Source) func(*tls.Config) {
	return func(c *tls.Config) {
		c.MinVersion, c.GetCertificate = tls.VersionTLS13, source.GetCertificate
		// The API server speaks HTTP/1.1 to webhooks; draining relies on its Connection: close.
		c.NextProtos = []string{"http/1.1"}
	}
}
