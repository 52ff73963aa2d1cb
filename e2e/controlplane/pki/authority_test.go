package pki

import (
	"crypto/x509"
	"os"
	"testing"

	certutil "k8s.io/client-go/util/cert"
)

func TestServerCertificateIsTrusted(t *testing.T) {
	authority, err := New(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	pair, err := authority.Server("server", []string{"127.0.0.1", "localhost"})
	if err != nil {
		t.Fatal(err)
	}
	content, err := os.ReadFile(pair.CertificateFile)
	if err != nil {
		t.Fatal(err)
	}
	certificates, err := certutil.ParseCertsPEM(content)
	if err != nil {
		t.Fatal(err)
	}
	roots, err := certutil.NewPool(authority.CertificateFile)
	if err != nil {
		t.Fatal(err)
	}
	for _, host := range []string{"127.0.0.1", "localhost"} {
		if _, err := certificates[0].Verify(x509.VerifyOptions{Roots: roots, DNSName: host}); err != nil {
			t.Errorf("as %s: %v", host, err)
		}
	}
}
