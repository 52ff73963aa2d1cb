// Package httpserver has the bounded HTTP server of Fairlead's ports.
package httpserver

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
	// writeTimeout is above the time that any handler takes: settingsapi ends its requests after 20 s.
	writeTimeout = 30 * time.Second
	// shutdownTimeout and the time that admission needs to drain fit in the pod's grace period.
	shutdownTimeout = 5 * time.Second
)

// New serves a handler until the context of Start ends, and then waits for requests that have begun. Without a TLS
// configuration, it serves plain HTTP.
func New(name string, listener net.Listener, c *tls.Config, handler http.Handler, log *slog.Logger) *manager.Server {
	listener = netutil.LimitListener(listener, connections)
	if c != nil {
		listener = tls.NewListener(listener, c)
	}
	return &manager.Server{
		Name:     name,
		Listener: listener,
		Server: &http.Server{
			Handler:           handler,
			ReadHeaderTimeout: 5 * time.Second,
			ReadTimeout:       10 * time.Second,
			WriteTimeout:      writeTimeout,
			IdleTimeout:       time.Minute,
			MaxHeaderBytes:    32 << 10,
			ErrorLog:          slog.NewLogLogger(log.Handler(), slog.LevelDebug),
		},
		ShutdownTimeout: ptr.To(shutdownTimeout),
	}
}
