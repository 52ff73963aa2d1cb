// Package rest is a client of Ondat's control plane: login, the volumes of all
// namespaces, and the mount endpoint of a volume.
//
// Requests and answers are those of github.com/storageos/go-api/v2 v2.4.0, which the
// test bed is driven by (internal/testkit/ondat). Errors say what to do. They hold neither token
// nor password.
package rest

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
)

const (
	// timeout of one request.
	timeout = 10 * time.Second
	// maxBody bounds what is read of an answer: about 50,000 volumes.
	maxBody = 64 << 20
	// maxAtOnce namespaces are listed at a time.
	maxAtOnce = 8
)

// Client of one control plane. It may be used by many goroutines.
type Client struct {
	base       *url.URL
	secretPath string
	http       *http.Client
	metrics    *metrics

	mu    sync.Mutex // held during a login: the other requests wait for the token
	token string     // of the last login
}

// New makes a client. It asks the control plane nothing: that may be down. endpoint is
// as ParseEndpoint reads it. caFile has the PEM certificates of authorities; empty:
// those of the system. secretPath is a folder with the files username and password.
func New(endpoint, caFile, secretPath string, registry prometheus.Registerer) (*Client, error) {
	base, err := ParseEndpoint(endpoint)
	if err != nil {
		return nil, fmt.Errorf("ondat.apiEndpoint: %w", err)
	}
	var authorities *x509.CertPool
	if caFile != "" {
		pem, err := os.ReadFile(caFile)
		if err != nil {
			return nil, fmt.Errorf("reading the certificate authorities of Ondat's API: %w", err)
		}
		if authorities = x509.NewCertPool(); !authorities.AppendCertsFromPEM(pem) {
			return nil, fmt.Errorf("%s holds no certificate: write PEM certificates of the authorities that signed the certificate of Ondat's API", caFile)
		}
	}
	factory := promauto.With(registry)
	return &Client{base: base, secretPath: secretPath, metrics: newMetrics(factory), http: &http.Client{
		Timeout: timeout,
		Transport: measured(factory, &http.Transport{
			Proxy: http.ProxyFromEnvironment, MaxIdleConnsPerHost: maxAtOnce,
			TLSClientConfig: &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: authorities},
		}),
		// A redirection could carry the token to another host.
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}, nil
}

// request is one call of the API.
type request struct {
	doing, method string
	path          []string
	body          any
	// secret that no error may show: the token, or the password of a login.
	secret string
}

// call sends a request with a token. If the control plane does not know the token any
// more, it logs in and sends the request once more.
func (c *Client) call(ctx context.Context, r request, answer any) error {
	token, err := c.login(ctx, "")
	if err != nil {
		return err
	}
	if _, err = c.do(ctx, r, token, answer); !isStatus(err, http.StatusUnauthorized) {
		return err
	}
	if token, err = c.login(ctx, token); err != nil {
		return err
	}
	_, err = c.do(ctx, r, token, answer)
	return err
}

// do sends a request once and reads the answer; nil drops it.
func (c *Client) do(ctx context.Context, r request, token string, answer any) (http.Header, error) {
	escaped := make([]string, len(r.path))
	for i, p := range r.path {
		escaped[i] = url.PathEscape(p)
	}
	var body io.Reader
	if r.body != nil {
		data, err := json.Marshal(r.body)
		if err != nil {
			return nil, r.failed(err)
		}
		body = bytes.NewReader(data)
	}
	q, err := http.NewRequestWithContext(ctx, r.method, c.base.JoinPath(escaped...).String(), body)
	if err != nil {
		return nil, r.failed(err)
	}
	q.Header.Set("Accept", "application/json")
	q.Header.Set("Content-Type", "application/json")
	if token != "" {
		q.Header.Set("Authorization", "Bearer "+token)
		r.secret = token
	}
	resp, err := c.http.Do(q)
	var u *url.Error
	if errors.As(err, &u) {
		return nil, r.failed(fmt.Errorf("%w: check ondat.apiEndpoint, and that the control plane runs", u.Err)) // without the URL
	}
	defer resp.Body.Close()
	data, err := io.ReadAll(io.LimitReader(resp.Body, maxBody))
	switch {
	case err != nil:
		return nil, r.failed(err)
	case resp.StatusCode < 200 || resp.StatusCode > 299:
		return nil, r.failed(refused(resp.StatusCode, data, r.secret))
	case answer != nil && json.Unmarshal(data, answer) != nil:
		return nil, r.failed(c.wrongAnswer())
	}
	return resp.Header, nil
}

func (r request) failed(err error) error { return fmt.Errorf("%s at Ondat's API: %w", r.doing, err) }

func (c *Client) wrongAnswer() error {
	return fmt.Errorf("the answer is not what was asked for: what answers at %s is not Ondat's API, or another version of it", c.base.Host)
}
