package httpserver

import (
	"context"
	"crypto/tls"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/fairlead-io/fairlead/internal/testkit/must"
)

// start a server with the certificate of package httptest, and a client that trusts it.
// stop returns the result of Start.
func start(t *testing.T, handler http.Handler) (address string, c *http.Client, stop func() <-chan error) {
	t.Helper()
	example := httptest.NewTLSServer(nil)
	t.Cleanup(example.Close)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	must.Do(t, err)
	server := New("test", listener, &tls.Config{MinVersion: tls.VersionTLS13, Certificates: example.TLS.Certificates}, handler, slog.New(slog.DiscardHandler))
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	stopped := make(chan error, 1)
	go func() { stopped <- server.Start(ctx) }()
	return listener.Addr().String(), example.Client(), func() <-chan error { cancel(); return stopped }
}

func TestServesOverTLSUntilStopped(t *testing.T) {
	begun, open := make(chan struct{}), make(chan struct{})
	address, c, stop := start(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		close(begun)
		<-open
		if r.TLS == nil {
			w.WriteHeader(http.StatusTeapot)
		}
	}))
	codes := make(chan int, 1)
	go func() {
		response, err := c.Get("https://" + address)
		if err != nil {
			t.Error(err)
			codes <- 0
			return
		}
		_ = response.Body.Close()
		codes <- response.StatusCode
	}()
	<-begun
	stopped := stop() // a request that has begun is answered
	time.Sleep(50 * time.Millisecond)
	close(open)
	must.Equal(t, <-codes, http.StatusOK)
	must.Do(t, <-stopped)
}

func TestConnectionsAreLimited(t *testing.T) {
	address, _, stop := start(t, http.NotFoundHandler())
	t.Cleanup(func() { <-stop() }) // after the connections are closed
	handshake := func(within time.Duration) (net.Conn, error) {
		dialer := &net.Dialer{Timeout: within}
		conn, err := tls.DialWithDialer(dialer, "tcp", address, &tls.Config{InsecureSkipVerify: true}) //nolint:gosec // only connections count
		if err == nil {
			t.Cleanup(func() { _ = conn.Close() })
		}
		return conn, err
	}
	var last net.Conn
	for i := range connections {
		var err error
		last, err = handshake(10 * time.Second)
		must.True(t, err == nil, "connection %d: %v", i, err)
	}
	_, err := handshake(100 * time.Millisecond)
	must.Check(t, err != nil, "more than %d connections", connections)
	_ = last.Close()
	_, err = handshake(10 * time.Second)
	must.Do(t, err)
}
