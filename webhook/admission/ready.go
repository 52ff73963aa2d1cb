package admission

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"time"
)

// Readiness of the server: the caches are synced, the server is not draining, and a TLS connection to it gets a certificate
// that is valid now for the serving name.
type Readiness struct {
	Address     string
	ServingName string
	Synced      func() bool
	Draining    func() bool
	Now         func() time.Time
}

// Errors of readiness.
var (
	ErrDraining  = errors.New("draining")
	ErrNotSynced = errors.New("caches are not synced")
	ErrNoCert    = errors.New("no certificate is served")
)

// Check returns nil when ready, else why not.
func (r *Readiness) Check(ctx context.Context) error {
	if r.Draining() {
		return ErrDraining
	}
	if !r.Synced() {
		return ErrNotSynced
	}
	dialer := tls.Dialer{NetDialer: &net.Dialer{Timeout: time.Second}, Config: &tls.Config{
		MinVersion: tls.VersionTLS13,
		ServerName: r.ServingName,
		// Check examines the certificate itself. The API server checks the signer.
		InsecureSkipVerify: true, //nolint:gosec // nothing is sent over this connection
	}}
	conn, err := dialer.DialContext(ctx, "tcp", r.Address)
	if err != nil {
		return fmt.Errorf("%w: %w", ErrNoCert, err)
	}
	defer conn.Close()
	served := conn.(*tls.Conn).ConnectionState().PeerCertificates
	if len(served) == 0 {
		return ErrNoCert
	}
	leaf, now := served[0], r.Now()
	if now.Before(leaf.NotBefore) || now.After(leaf.NotAfter) {
		return fmt.Errorf("the certificate served is valid from %s to %s", leaf.NotBefore, leaf.NotAfter)
	}
	if err := leaf.VerifyHostname(r.ServingName); err != nil {
		return fmt.Errorf("the certificate served is not the one for %s: %w", r.ServingName, err)
	}
	return nil
}

// ServeHTTP answers 200 when ready and 503 with the reason when not.
func (r *Readiness) ServeHTTP(w http.ResponseWriter, request *http.Request) {
	if err := r.Check(request.Context()); err != nil {
		http.Error(w, err.Error(), http.StatusServiceUnavailable)
		return
	}
	fmt.Fprintln(w, "ok")
}
