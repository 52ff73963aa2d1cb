package settingsapi

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"io"
	"log/slog"
	"math/big"
	"net"
	"net/http"
	"testing"
	"time"
)

// selfSigned is a certificate for this test's server, and a pool that trusts it.
func selfSigned(t *testing.T) (tls.Certificate, *x509.CertPool) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), DNSNames: []string{"api.test"}, IsCA: true, BasicConstraintsValid: true,
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	certificate, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	pool := x509.NewCertPool()
	pool.AddCert(certificate)
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}, pool
}

func TestServesOverTLSUntilItIsStopped(t *testing.T) {
	certificate, pool := selfSigned(t)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	begun, open := make(chan struct{}), make(chan struct{})
	server := &Server{
		Listener: listener, TLS: &tls.Config{MinVersion: tls.VersionTLS13, Certificates: []tls.Certificate{certificate}},
		Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			close(begun)
			<-open
			if r.TLS == nil {
				w.WriteHeader(http.StatusTeapot)
			}
		}),
		Log: slog.New(slog.NewTextHandler(io.Discard, nil)),
	}
	ctx, stop := context.WithCancel(t.Context())
	stopped := make(chan error, 1)
	go func() { stopped <- server.Start(ctx) }()
	transport := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: pool, ServerName: "api.test"}}
	defer transport.CloseIdleConnections()
	codes := make(chan int, 1)
	go func() {
		response, err := (&http.Client{Transport: transport}).Get("https://" + listener.Addr().String())
		if err != nil {
			t.Error(err)
			codes <- 0
			return
		}
		_ = response.Body.Close()
		codes <- response.StatusCode
	}()
	<-begun
	stop() // what has begun is answered
	time.Sleep(50 * time.Millisecond)
	close(open)
	if code := <-codes; code != http.StatusOK {
		t.Errorf("got %d", code)
	}
	if err := <-stopped; err != nil {
		t.Error(err)
	}
}

func TestOneAddressDoesNotUseUpTheConnections(t *testing.T) {
	certificate, _ := selfSigned(t)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	server := &Server{
		Listener: listener, TLS: &tls.Config{MinVersion: tls.VersionTLS13, Certificates: []tls.Certificate{certificate}},
		Handler: http.NotFoundHandler(), Log: slog.New(slog.DiscardHandler),
	}
	ctx, stop := context.WithCancel(t.Context())
	stopped := make(chan error, 1)
	go func() { stopped <- server.Start(ctx) }()
	t.Cleanup(func() { // after the connections are closed
		stop()
		<-stopped
	})
	handshake := func(from string) error {
		dialer := &net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(from)}}
		conn, err := tls.DialWithDialer(dialer, "tcp", listener.Addr().String(), &tls.Config{InsecureSkipVerify: true}) //nolint:gosec // only connections count
		if err == nil {
			t.Cleanup(func() { _ = conn.Close() })
		}
		return err
	}
	for i := range connectionsOfSource {
		if err := handshake("127.0.0.1"); err != nil {
			t.Fatalf("connection %d: %v", i, err)
		}
	}
	if handshake("127.0.0.1") == nil {
		t.Errorf("more than %d connections from one address", connectionsOfSource)
	}
	if err := handshake("127.0.0.2"); err != nil {
		t.Errorf("another address: %v", err)
	}
}
