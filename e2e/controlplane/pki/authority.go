// Package pki makes the keys and certificates that one control plane needs.
package pki

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"time"

	certutil "k8s.io/client-go/util/cert"
)

// lifetime is long because a control plane that somebody left running for
// months should still answer; it is reachable from this machine only.
const lifetime = 10 * 365 * 24 * time.Hour

// Authority is a certificate authority in a folder.
type Authority struct {
	Pair
	folder      string
	certificate *x509.Certificate
	key         crypto.Signer
}

// Pair is where a certificate and its key were written.
type Pair struct {
	CertificateFile, KeyFile string
}

// New makes an authority in a folder.
func New(folder string) (*Authority, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, fmt.Errorf("making a key: %w", err)
	}
	certificate, err := certutil.NewSelfSignedCACert(certutil.Config{CommonName: "fairlead-controlplane-ca"}, key)
	if err != nil {
		return nil, fmt.Errorf("signing the authority's certificate: %w", err)
	}
	if err := os.MkdirAll(folder, 0o700); err != nil {
		return nil, err
	}
	a := &Authority{folder: folder, certificate: certificate, key: key}
	a.Pair, err = a.write("ca", "ca.crt", "CERTIFICATE", certificate.Raw, key)
	return a, err
}

// Server issues a certificate for a server, which is also good as a client
// certificate for etcd's talk with itself.
func (a *Authority) Server(name string, hosts []string) (Pair, error) {
	template := &x509.Certificate{Subject: pkix.Name{CommonName: name}, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth}}
	for _, host := range hosts {
		if ip := net.ParseIP(host); ip != nil {
			template.IPAddresses = append(template.IPAddresses, ip)
		} else {
			template.DNSNames = append(template.DNSNames, host)
		}
	}
	return a.issue(name, template)
}

// Client issues a certificate by which a client is known to the API server: as
// user, in groups.
func (a *Authority) Client(user string, groups ...string) (Pair, error) {
	return a.issue("client-"+filepath.Base(user), &x509.Certificate{
		Subject: pkix.Name{CommonName: user, Organization: groups}, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	})
}

func (a *Authority) issue(name string, template *x509.Certificate) (Pair, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return Pair{}, fmt.Errorf("making a key: %w", err)
	}
	if template.SerialNumber, err = rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 127)); err != nil {
		return Pair{}, fmt.Errorf("making a serial number: %w", err)
	}
	template.NotBefore, template.NotAfter, template.KeyUsage = a.certificate.NotBefore, time.Now().Add(lifetime), x509.KeyUsageDigitalSignature
	der, err := x509.CreateCertificate(rand.Reader, template, a.certificate, key.Public(), a.key)
	if err != nil {
		return Pair{}, fmt.Errorf("signing the certificate of %s: %w", name, err)
	}
	return a.write(name, name+".crt", "CERTIFICATE", der, key)
}

// ServiceAccountKey makes the key that signs service account tokens, as the file of the public key and of the private key.
func (a *Authority) ServiceAccountKey() (Pair, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return Pair{}, fmt.Errorf("making a key: %w", err)
	}
	der, err := x509.MarshalPKIXPublicKey(key.Public())
	if err != nil {
		return Pair{}, fmt.Errorf("encoding the public service account key: %w", err)
	}
	return a.write("service-account", "service-account.pub", "PUBLIC KEY", der, key)
}

func (a *Authority) write(name, public, kind string, content []byte, key crypto.Signer) (Pair, error) {
	pair := Pair{CertificateFile: filepath.Join(a.folder, public), KeyFile: filepath.Join(a.folder, name+".key")}
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return Pair{}, fmt.Errorf("encoding a key: %w", err)
	}
	if err := os.WriteFile(pair.KeyFile, pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der}), 0o600); err != nil {
		return Pair{}, err
	}
	return pair, os.WriteFile(pair.CertificateFile, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: content}), 0o644)
}
