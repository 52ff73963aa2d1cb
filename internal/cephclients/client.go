package cephclients

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"sync/atomic"
	"time"

	"k8s.io/utils/clock"

	"github.com/fairlead-io/fairlead/internal/cephclients/cephcli"
)

const (
	// askTimeout is longer than the server's timeout, so that the server's own error arrives.
	askTimeout = 17 * time.Second
	maxAnswer  = 1 << 20
)

// Ask sends requests to the server at url, by the certificates in a directory.
func Ask(url, directory string) func(context.Context, cephcli.Request) (cephcli.Answer, error) {
	return func(ctx context.Context, request cephcli.Request) (answer cephcli.Answer, err error) {
		ctx, cancel := context.WithTimeout(ctx, askTimeout)
		defer cancel()
		certificates, ca, err := readCertificates(directory)
		if err != nil {
			return answer, err
		}
		body, err := json.Marshal(request)
		if err != nil {
			return answer, fmt.Errorf("writing the request: %w", err)
		}
		post, err := http.NewRequestWithContext(ctx, http.MethodPost, url, bytes.NewReader(body))
		if err != nil {
			return answer, fmt.Errorf("writing the request: %w", err)
		}
		// Each request has a connection of its own: they are rare, and certificates are replaced.
		transport := &http.Transport{DisableKeepAlives: true, TLSClientConfig: &tls.Config{MinVersion: tls.VersionTLS13, Certificates: certificates, RootCAs: ca}}
		response, err := transport.RoundTrip(post)
		if err != nil {
			return answer, fmt.Errorf("asking %s: %w", url, err)
		}
		defer response.Body.Close()
		data, err := io.ReadAll(io.LimitReader(response.Body, maxAnswer))
		if err == nil && response.StatusCode != http.StatusOK {
			err = fmt.Errorf("%s: %.200s", response.Status, data)
		} else if err == nil {
			err = json.Unmarshal(data, &answer)
		}
		if err != nil {
			err = fmt.Errorf("asking %s: %w", url, err)
		}
		return answer, err
	}
}

const (
	// pause after a request that took long and brought nothing: such requests take up to askTimeout, and questions about other
	// nodes wait for them.
	pause = time.Minute
	// long is how long the server waits for one command.
	long = 5 * time.Second
)

// WithPause asks nothing for a while after a request that took long and brought nothing: the next requests fail at once.
func WithPause(ask func(context.Context, cephcli.Request) (cephcli.Answer, error), c clock.PassiveClock) func(context.Context, cephcli.Request) (cephcli.Answer, error) {
	var last atomic.Pointer[time.Time]
	return func(ctx context.Context, request cephcli.Request) (cephcli.Answer, error) {
		began := c.Now()
		if at := last.Load(); at != nil && began.Sub(*at) < pause {
			return cephcli.Answer{}, fmt.Errorf("no answer at %s; the next request is after %s", at.UTC().Format(time.RFC3339), pause)
		}
		answer, err := ask(ctx, request)
		if ended := c.Now(); ended.Sub(began) >= long && (err != nil || isEmpty(answer)) {
			last.Store(&ended)
		}
		return answer, err
	}
}

// isEmpty reports whether Ceph has answered nothing.
func isEmpty(answer cephcli.Answer) bool {
	for _, found := range answer.Clients {
		if found.Problem == "" {
			return false
		}
	}
	return answer.Servers.Problem != ""
}

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
