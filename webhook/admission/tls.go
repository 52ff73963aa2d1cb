package admission

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"os"

	"github.com/fairlead-io/fairlead/certs"
)

// ErrNoClientCA is returned for a file without CA certificates.
var ErrNoClientCA = errors.New("no PEM certificate in the client CA file")

// TLSConfig serves the source's certificate over TLS 1.3. With a clientCAFile, clients need a certificate of its CAs.
func TLSConfig(source certs.Source, clientCAFile string) (*tls.Config, error) {
	config := &tls.Config{
		MinVersion:     tls.VersionTLS13,
		GetCertificate: source.GetCertificate,
		// The API server speaks HTTP/1.1 to webhooks; draining relies on its Connection: close.
		NextProtos: []string{"http/1.1"},
	}
	if clientCAFile == "" {
		return config, nil
	}
	pem, err := os.ReadFile(clientCAFile)
	if err != nil {
		return nil, fmt.Errorf("reading the client CA file: %w", err)
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(pem) {
		return nil, fmt.Errorf("%w: %s", ErrNoClientCA, clientCAFile)
	}
	config.ClientCAs, config.ClientAuth = pool, tls.RequireAndVerifyClientCert
	return config, nil
}
