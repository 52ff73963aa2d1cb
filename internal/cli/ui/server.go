package ui

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strconv"
	"time"

	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/manager"
)

// listen on a loopback address only.
func listen(port int) (net.Listener, error) {
	var failed error
	for _, host := range []string{"127.0.0.1", "::1"} { // some machines have IPv6 only
		listener, err := net.Listen("tcp", net.JoinHostPort(host, strconv.Itoa(port)))
		if err == nil {
			return listener, nil
		}
		failed = errors.Join(failed, err)
	}
	return nil, fmt.Errorf("listening on the loopback address: %w", failed)
}

// serve until the context ends.
func serve(ctx context.Context, listener net.Listener, handler http.Handler) error {
	server := manager.Server{
		Listener: listener, ShutdownTimeout: ptr.To(time.Second),
		Server: &http.Server{Handler: handler, ReadHeaderTimeout: 10 * time.Second, MaxHeaderBytes: 64 << 10},
	}
	if err := server.Start(ctx); err != nil {
		return fmt.Errorf("serving the page: %w", err)
	}
	return nil
}
