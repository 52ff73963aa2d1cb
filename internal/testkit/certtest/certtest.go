// Package certtest makes certificates for tests, as cert-manager does.
package certtest

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"time"
)

// CA signs certificates.
type CA struct {
	Certificate *x509.Certificate
	key         *ecdsa.PrivateKey
}

// New returns a self-signed CA.
func New() (*CA, error) {
	ca := &CA{}
	var err error
	ca.Certificate, ca.key, err = ca.sign(&x509.Certificate{Subject: pkix.Name{CommonName: "ca"}, IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign})
	return ca, err
}

func (ca *CA) sign(template *x509.Certificate) (*x509.Certificate, *ecdsa.PrivateKey, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, nil, err
	}
	now := time.Now()
	template.SerialNumber = big.NewInt(now.UnixNano())
	if template.NotAfter.IsZero() {
		template.NotBefore, template.NotAfter = now.Add(-time.Hour), now.Add(time.Hour)
	}
	parent, by := ca.Certificate, ca.key
	if parent == nil {
		parent, by = template, key
	}
	der, err := x509.CreateCertificate(rand.Reader, template, parent, key.Public(), by)
	if err != nil {
		return nil, nil, err
	}
	certificate, err := x509.ParseCertificate(der)
	return certificate, key, err
}

// SelfSigned returns a self-signed certificate for a DNS name, for servers and clients, with its key.
func SelfSigned(name string, notBefore, notAfter time.Time) (tls.Certificate, error) {
	certificate, key, err := (&CA{}).sign(&x509.Certificate{
		Subject: pkix.Name{CommonName: name}, DNSNames: []string{name}, NotBefore: notBefore, NotAfter: notAfter, IsCA: true, BasicConstraintsValid: true,
		KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	})
	if err != nil {
		return tls.Certificate{}, err
	}
	return tls.Certificate{Certificate: [][]byte{certificate.Raw}, PrivateKey: key, Leaf: certificate}, nil
}

// WriteFiles puts a certificate and its key into tls.crt and tls.key of a directory.
func WriteFiles(directory string, c tls.Certificate) error {
	der, err := x509.MarshalPKCS8PrivateKey(c.PrivateKey)
	if err != nil {
		return err
	}
	return errors.Join(writePEM(directory, "tls.crt", "CERTIFICATE", c.Certificate[0]), writePEM(directory, "tls.key", "PRIVATE KEY", der))
}

func writePEM(directory, file, kind string, content []byte) error {
	return os.WriteFile(filepath.Join(directory, file), pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: content}), 0o600)
}

// Write puts a certificate for a name or an IP address into a directory, as a Secret is mounted.
func (ca *CA) Write(directory, name string, usage x509.ExtKeyUsage) error {
	template := &x509.Certificate{ExtKeyUsage: []x509.ExtKeyUsage{usage}, KeyUsage: x509.KeyUsageDigitalSignature}
	if ip := net.ParseIP(name); ip != nil {
		template.IPAddresses = []net.IP{ip}
	} else {
		template.DNSNames = []string{name}
	}
	certificate, key, err := ca.sign(template)
	if err != nil {
		return err
	}
	return errors.Join(
		WriteFiles(directory, tls.Certificate{Certificate: [][]byte{certificate.Raw}, PrivateKey: key}),
		writePEM(directory, "ca.crt", "CERTIFICATE", ca.Certificate.Raw))
}
