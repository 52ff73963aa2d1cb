package admission

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/fairlead-io/fairlead/certs"
	"github.com/fairlead-io/fairlead/internal/testkit/certtest"
	"github.com/fairlead-io/fairlead/internal/testkit/must"
)

const servingName = "fairlead-webhook.fairlead-system.svc"

// certificate signs itself. It is a certs.Source of itself.
type certificate struct{ tls.Certificate }

func newCertificate(t *testing.T, name string, notBefore, notAfter time.Duration) certificate {
	t.Helper()
	c, err := certtest.SelfSigned(name, time.Now().Add(notBefore), time.Now().Add(notAfter))
	must.Do(t, err)
	return certificate{c}
}

func validNow(t *testing.T, name string) certificate {
	t.Helper()
	return newCertificate(t, name, -time.Hour, time.Hour)
}

func (c certificate) GetCertificate(*tls.ClientHelloInfo) (*tls.Certificate, error) {
	if c.Leaf == nil {
		return nil, errors.New("none yet")
	}
	return &c.Certificate, nil
}
func (certificate) Start(context.Context) error { return nil }
func (certificate) Healthy() bool               { return true }

// file with the certificate in PEM.
func (c certificate) file(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	must.Do(t, certtest.WriteFiles(dir, c.Certificate))
	return filepath.Join(dir, "tls.crt")
}

// client trusts the certificate, and has certificates of its own.
func (c certificate) client(own ...tls.Certificate) *tls.Config {
	pool := x509.NewCertPool()
	pool.AddCert(c.Leaf)
	return &tls.Config{RootCAs: pool, ServerName: servingName, Certificates: own}
}

// isServedAt reports whether a handshake gets the certificate.
func (c certificate) isServedAt(address string) bool {
	conn, err := tls.Dial("tcp", address, &tls.Config{InsecureSkipVerify: true}) //nolint:gosec // the test looks at what is served
	if err != nil {
		return false
	}
	defer conn.Close()
	return bytes.Equal(conn.ConnectionState().PeerCertificates[0].Raw, c.Leaf.Raw)
}

// freeAddress is one that nothing listens on.
func freeAddress(t *testing.T) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	must.Do(t, err)
	defer listener.Close()
	return listener.Addr().String()
}

// serveTLS starts a Server and returns it. stop drains it and waits.
func serveTLS(t *testing.T, source certs.Source, clientCAFile string, handler http.Handler, drainDelay time.Duration) (server *Server, stop func()) {
	t.Helper()
	server = &Server{
		Address: freeAddress(t), Source: source, ClientCAFile: clientCAFile,
		Handler: handler, DrainDelay: drainDelay, Log: slog.New(slog.DiscardHandler),
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- server.Start(ctx) }()
	stop = sync.OnceFunc(func() {
		cancel()
		err := <-ended
		must.Check(t, err == nil, "draining: %v", err)
	})
	t.Cleanup(stop)
	eventually(t, "listening", func() bool {
		conn, err := net.Dial("tcp", server.Address)
		if err == nil {
			_ = conn.Close()
		}
		return err == nil
	})
	return server, stop
}

func eventually(t *testing.T, what string, holds func() bool) {
	t.Helper()
	for deadline := time.Now().Add(15 * time.Second); time.Now().Before(deadline); time.Sleep(20 * time.Millisecond) {
		if holds() {
			return
		}
	}
	t.Fatalf("not in time: %s", what)
}
