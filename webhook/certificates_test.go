package webhook

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"io"
	"log/slog"
	"math/big"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"testing"
	"time"
)

const servingName = "fairlead-webhook.fairlead-system.svc"

// keyPair is a certificate in PEM that signs itself.
type keyPair struct{ cert, key []byte }

func newKeyPair(t *testing.T, name string, notBefore, notAfter time.Time) keyPair {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	serial, err := rand.Int(rand.Reader, big.NewInt(1<<62))
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: serial, Subject: pkix.Name{CommonName: name}, DNSNames: []string{name},
		NotBefore: notBefore, NotAfter: notAfter, IsCA: true, BasicConstraintsValid: true,
		KeyUsage:    x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	keyDER, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	return keyPair{
		pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}),
		pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: keyDER}),
	}
}

func validNow(t *testing.T, name string) keyPair {
	return newKeyPair(t, name, time.Now().Add(-time.Hour), time.Now().Add(time.Hour))
}

func (p keyPair) tls(t *testing.T) *tls.Certificate {
	t.Helper()
	certificate, err := tls.X509KeyPair(p.cert, p.key)
	if err != nil {
		t.Fatal(err)
	}
	return &certificate
}

func (p keyPair) write(t *testing.T, dir string) (cert, key string) {
	t.Helper()
	cert, key = filepath.Join(dir, "tls.crt"), filepath.Join(dir, "tls.key")
	for path, data := range map[string][]byte{cert: p.cert, key: p.key} {
		if err := os.WriteFile(path, data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return cert, key
}

func (p keyPair) pool() *x509.CertPool {
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(p.cert)
	return pool
}

func (p keyPair) der() []byte {
	block, _ := pem.Decode(p.cert)
	return block.Bytes
}

// fixed is a source of one certificate, or of an error.
type fixed struct {
	certificate *tls.Certificate
	err         error
}

func (f fixed) GetCertificate(*tls.ClientHelloInfo) (*tls.Certificate, error) {
	return f.certificate, f.err
}
func (fixed) Start(context.Context) error { return nil }
func (fixed) Healthy() bool               { return true }

// serveTLS starts a Server and returns it with its address; stop drains it and waits.
func serveTLS(t *testing.T, config *tls.Config, handler http.Handler, drainDelay time.Duration) (server *Server, address string, stop func()) {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	server = &Server{
		Listener: tls.NewListener(listener, config), Handler: handler, DrainDelay: drainDelay,
		Log: slog.New(slog.NewTextHandler(io.Discard, nil)),
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- server.Start(ctx) }()
	stopped := false
	stop = func() {
		cancel()
		if !stopped {
			stopped = true
			if err := <-ended; err != nil {
				t.Errorf("draining: %v", err)
			}
		}
	}
	t.Cleanup(stop)
	return server, listener.Addr().String(), stop
}

// servedCertificate is the certificate that a handshake gets.
func servedCertificate(address string) ([]byte, error) {
	conn, err := tls.Dial("tcp", address, &tls.Config{InsecureSkipVerify: true}) //nolint:gosec // what is served is looked at
	if err != nil {
		return nil, err
	}
	defer conn.Close()
	return conn.ConnectionState().PeerCertificates[0].Raw, nil
}

func serves(address string, p keyPair) bool {
	raw, err := servedCertificate(address)
	return err == nil && bytes.Equal(raw, p.der())
}
