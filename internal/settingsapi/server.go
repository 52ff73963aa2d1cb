package settingsapi

import (
	"crypto/tls"
	"log/slog"
	"net"
	"net/http"
	"time"

	"golang.org/x/net/netutil"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/manager"
)

const (
	// connections is how many connections may be open at a time: each holds memory that admission may need.
	connections = 128
	// shutdownTimeout and the time that admission needs to drain fit in the pod's grace period.
	shutdownTimeout = 5 * time.Second
)

// NewServer serves a handler over TLS until its context ends, and then waits for requests that have begun.
func NewServer(name string, listener net.Listener, c *tls.Config, handler http.Handler, log *slog.Logger) *manager.Server {
	return &manager.Server{
		Name:     name,
		Listener: tls.NewListener(netutil.LimitListener(listener, connections), c),
		Server: &http.Server{
			Handler:           handler,
			ReadHeaderTimeout: 5 * time.Second,
			ReadTimeout:       10 * time.Second,
			WriteTimeout:      requestTimeout + 10*time.Second,
			IdleTimeout:       time.Minute,
			MaxHeaderBytes:    32 << 10,
			ErrorLog:          slog.NewLogLogger(log.Handler(), slog.LevelDebug),
		},
		ShutdownTimeout: ptr.To(shutdownTimeout),
	}
}
