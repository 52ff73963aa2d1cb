//go:build linux

package main

import (
	"context"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/fairlead-io/fairlead/internal/csi/identity"
	"github.com/fairlead-io/fairlead/internal/csi/registration"
	"github.com/fairlead-io/fairlead/internal/csi/server"
	"github.com/fairlead-io/fairlead/internal/testkit/must"
)

func TestHealthAsksEachDriversSocket(t *testing.T) {
	dir := t.TempDir()
	serving := func(name string) (string, func()) {
		ctx, stop := context.WithCancel(t.Context())
		socket, listening, ended := filepath.Join(dir, name), make(chan struct{}), make(chan error)
		go func() {
			ended <- server.Serve(ctx, socket, server.Options{}, func() { close(listening) }, (&identity.Server{Driver: name}).Register)
		}()
		<-listening
		return socket, func() { stop(); must.Do(t, <-ended) }
	}
	first, stopFirst := serving("first")
	second, stopSecond := serving("second")
	defer stopFirst()
	silent := filepath.Join(dir, "silent")
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "unix", silent) // it never accepts
	must.Do(t, err)
	defer listener.Close()

	healthz := func(want int, what string, sockets ...string) {
		t.Helper()
		var registrations []*registration.Registration
		for _, s := range sockets {
			registrations = append(registrations, registration.New(filepath.Base(s), s, dir, slog.New(slog.DiscardHandler)))
		}
		ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
		if want == http.StatusOK {
			ctx, cancel = context.WithCancel(t.Context())
		}
		defer cancel()
		answer := httptest.NewRecorder()
		healthHandler(registrations).ServeHTTP(answer, httptest.NewRequestWithContext(ctx, http.MethodGet, "/healthz", nil))
		must.Equal(t, answer.Code, want, "%s: %s", what, answer.Body)
	}
	healthz(http.StatusServiceUnavailable, "no registration", first)
	for _, name := range []string{"first", "second", "silent"} {
		must.Do(t, os.WriteFile(filepath.Join(dir, name+"-reg.sock"), nil, 0o600))
	}
	healthz(http.StatusOK, "both answer", first, second)
	healthz(http.StatusServiceUnavailable, "no socket", first, filepath.Join(dir, "none"))
	healthz(http.StatusServiceUnavailable, "a socket that does not answer", first, silent)
	stopSecond()
	healthz(http.StatusServiceUnavailable, "a driver that has ended", first, second)
}
