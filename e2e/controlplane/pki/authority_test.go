package pki

import (
	"crypto/x509"
	"testing"
)

func TestAuthorityIsKeptInItsFolder(t *testing.T) {
	folder := t.TempDir()
	first, err := Open(folder)
	if err != nil {
		t.Fatal(err)
	}
	pair, err := first.Server("server", []string{"127.0.0.1", "localhost"})
	if err != nil {
		t.Fatal(err)
	}
	again, err := Open(folder)
	if err != nil {
		t.Fatal(err)
	}
	certificate, err := readCertificate(pair.CertificateFile)
	if err != nil {
		t.Fatal(err)
	}
	roots := x509.NewCertPool()
	roots.AddCert(again.certificate)
	for _, host := range []string{"127.0.0.1", "localhost"} {
		if _, err := certificate.Verify(x509.VerifyOptions{Roots: roots, DNSName: host}); err != nil {
			t.Errorf("as %s: %v", host, err)
		}
	}
	// Issuing goes on with the key that was read back.
	if _, err := again.Client("admin", "system:masters"); err != nil {
		t.Error(err)
	}
}

func TestServiceAccountKeyIsKept(t *testing.T) {
	folder := t.TempDir()
	pair, err := ServiceAccountKey(folder)
	if err != nil {
		t.Fatal(err)
	}
	before, err := readPEM(pair.CertificateFile)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := ServiceAccountKey(folder); err != nil {
		t.Fatal(err)
	}
	after, err := readPEM(pair.CertificateFile)
	if err != nil || string(before) != string(after) {
		t.Errorf("the public key changed, %v", err)
	}
}
