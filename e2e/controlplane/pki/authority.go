// Package pki makes the keys and certificates that one control plane needs.
package pki

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"errors"
	"fmt"
	"io/fs"
	"math/big"
	"net"
	"path/filepath"
	"time"
)

// lifetime is long because a control plane that somebody left running for
// months should still answer; it is reachable from this machine only.
const lifetime = 10 * 365 * 24 * time.Hour

// Authority is a certificate authority in a folder.
type Authority struct {
	folder      string
	certificate *x509.Certificate
	key         crypto.Signer
}

// Pair is where a certificate and its key were written.
type Pair struct {
	CertificateFile, KeyFile string
}

// Open returns the authority in a folder, making it when there is none: a
// control plane that is started again in the same folder must keep its
// authority, or every certificate and token issued before would be worthless.
func Open(folder string) (*Authority, error) {
	authority := &Authority{folder: folder}
	err := authority.load()
	if errors.Is(err, fs.ErrNotExist) {
		err = authority.create()
	}
	if err != nil {
		return nil, fmt.Errorf("opening the certificate authority in %s: %w", folder, err)
	}
	return authority, nil
}

// CertificateFile is where the authority's own certificate is.
func (a *Authority) CertificateFile() string { return filepath.Join(a.folder, "ca.crt") }

// KeyFile is where the authority's key is.
func (a *Authority) KeyFile() string { return filepath.Join(a.folder, "ca.key") }

func (a *Authority) load() error {
	var err error
	if a.certificate, err = readCertificate(a.CertificateFile()); err != nil {
		return err
	}
	a.key, err = readKey(a.KeyFile())
	return err
}

func (a *Authority) create() error {
	key, err := newKey()
	if err != nil {
		return err
	}
	template, err := newTemplate(pkix.Name{CommonName: "fairlead-controlplane-ca"})
	if err != nil {
		return err
	}
	template.IsCA = true
	template.BasicConstraintsValid = true
	template.KeyUsage = x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature | x509.KeyUsageCRLSign
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		return fmt.Errorf("signing the authority's certificate: %w", err)
	}
	if a.certificate, err = x509.ParseCertificate(der); err != nil {
		return fmt.Errorf("reading back the authority's certificate: %w", err)
	}
	a.key = key
	// The key goes first: a folder with a certificate is a complete one.
	if err := writeKey(a.KeyFile(), key); err != nil {
		return err
	}
	return writeCertificate(a.CertificateFile(), der)
}

// Server issues a certificate for a server, which is also good as a client
// certificate for etcd's talk with itself.
func (a *Authority) Server(name string, hosts []string) (Pair, error) {
	template, err := newTemplate(pkix.Name{CommonName: name})
	if err != nil {
		return Pair{}, err
	}
	template.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth}
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
	template, err := newTemplate(pkix.Name{CommonName: user, Organization: groups})
	if err != nil {
		return Pair{}, err
	}
	template.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}
	return a.issue("client-"+filepath.Base(user), template)
}

func (a *Authority) issue(name string, template *x509.Certificate) (Pair, error) {
	pair := Pair{
		CertificateFile: filepath.Join(a.folder, name+".crt"),
		KeyFile:         filepath.Join(a.folder, name+".key"),
	}
	key, err := newKey()
	if err != nil {
		return Pair{}, err
	}
	template.KeyUsage = x509.KeyUsageDigitalSignature
	der, err := x509.CreateCertificate(rand.Reader, template, a.certificate, key.Public(), a.key)
	if err != nil {
		return Pair{}, fmt.Errorf("signing the certificate of %s: %w", name, err)
	}
	if err := writeKey(pair.KeyFile, key); err != nil {
		return Pair{}, err
	}
	return pair, writeCertificate(pair.CertificateFile, der)
}

func newKey() (*ecdsa.PrivateKey, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, fmt.Errorf("making a key: %w", err)
	}
	return key, nil
}

func newTemplate(subject pkix.Name) (*x509.Certificate, error) {
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 127))
	if err != nil {
		return nil, fmt.Errorf("making a serial number: %w", err)
	}
	now := time.Now()
	return &x509.Certificate{
		SerialNumber: serial,
		Subject:      subject,
		// Clocks of containers on one machine may differ a little.
		NotBefore: now.Add(-5 * time.Minute),
		NotAfter:  now.Add(lifetime),
	}, nil
}
