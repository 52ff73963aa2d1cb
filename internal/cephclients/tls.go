package cephclients

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"os"
	"path/filepath"
)

// ClientName is the name in the controller's certificate.
const ClientName = "fairlead-controller"

// ServerTLS serves only the controller: a client with a certificate for ClientName, signed by the CA in ca.crt.
func ServerTLS(directory string) *tls.Config {
	return &tls.Config{MinVersion: tls.VersionTLS13, GetConfigForClient: func(*tls.ClientHelloInfo) (*tls.Config, error) {
		certificates, ca, err := readCertificates(directory)
		return &tls.Config{
			MinVersion: tls.VersionTLS13, NextProtos: []string{"http/1.1"}, Certificates: certificates,
			ClientCAs: ca, ClientAuth: tls.RequireAndVerifyClientCert,
			SessionTicketsDisabled: true, // a ticket would outlive the CA
			VerifyConnection:       func(c tls.ConnectionState) error { return c.PeerCertificates[0].VerifyHostname(ClientName) },
		}, err
	}}
}

// readCertificates is done for each connection: cert-manager replaces the files.
func readCertificates(directory string) ([]tls.Certificate, *x509.CertPool, error) {
	file := func(name string) string { return filepath.Join(directory, name) }
	certificate, err := tls.LoadX509KeyPair(file("tls.crt"), file("tls.key"))
	if err != nil {
		return nil, nil, fmt.Errorf("reading the certificate: %w", err)
	}
	pem, err := os.ReadFile(file("ca.crt"))
	if err != nil {
		return nil, nil, fmt.Errorf("reading the CA: %w", err)
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(pem) {
		return nil, nil, fmt.Errorf("%s has no certificate in PEM", file("ca.crt"))
	}
	return []tls.Certificate{certificate}, pool, nil
}
