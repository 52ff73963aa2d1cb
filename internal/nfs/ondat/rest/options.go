package rest

import (
	"cmp"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/utils/clock"
)

// Defaults; the released manager's, but for the limits of bodies and of requests at a time.
const (
	DefaultTimeout = 10 * time.Second
	DefaultRefresh = time.Minute
	// maxBody bounds what is read of an answer: about 50,000 volumes.
	maxBody = 64 << 20
	// maxAtOnce namespaces are listed at a time.
	maxAtOnce = 8
)

// Options of a client.
type Options struct {
	// Endpoint as ParseEndpoint reads it.
	Endpoint string
	// CAFile has the PEM certificates of the authorities that the API's certificate
	// may be signed by. Empty: those of the system.
	CAFile string
	// SecretPath is a folder with the files username and password. They are read at each login.
	SecretPath string
	// Timeout of one request; a login may take twice as long. Zero: the default.
	Timeout time.Duration
	// Refresh is how old a token becomes before the client logs in again, if two
	// thirds of its lifetime are not shorter. Zero: the default.
	Refresh time.Duration
	// Clock counts the lifetime of tokens. Nil: the real one.
	Clock clock.PassiveClock
	// Registry for the metrics. Nil: none.
	Registry prometheus.Registerer
}

func (o Options) withDefaults() Options {
	o.Timeout, o.Refresh = cmp.Or(o.Timeout, DefaultTimeout), cmp.Or(o.Refresh, DefaultRefresh)
	if o.Clock == nil {
		o.Clock = clock.RealClock{}
	}
	return o
}

// transport is the network below the metrics.
func (o Options) transport() (*http.Transport, error) {
	t, ok := http.DefaultTransport.(*http.Transport)
	if !ok {
		t = &http.Transport{}
	}
	t = t.Clone()
	t.MaxIdleConnsPerHost = 2 * maxAtOnce
	t.TLSClientConfig = &tls.Config{MinVersion: tls.VersionTLS12}
	if o.CAFile == "" {
		return t, nil
	}
	pem, err := os.ReadFile(o.CAFile)
	if err != nil {
		return nil, fmt.Errorf("reading the certificate authorities of Ondat's API: %w", err)
	}
	t.TLSClientConfig.RootCAs = x509.NewCertPool()
	if !t.TLSClientConfig.RootCAs.AppendCertsFromPEM(pem) {
		return nil, fmt.Errorf("%s holds no certificate: write PEM certificates of the authorities that signed the certificate of Ondat's API", o.CAFile)
	}
	return t, nil
}

// credentials are read at each login, so that a changed secret needs no restart.
func (o Options) credentials() (login, error) {
	var l login
	for file, value := range map[string]*string{"username": &l.Username, "password": &l.Password} {
		data, err := os.ReadFile(filepath.Join(o.SecretPath, file))
		if err != nil {
			return l, fmt.Errorf("reading Ondat's credentials: %w: mount a Secret with the keys username and password there", err)
		}
		if *value = strings.TrimSpace(string(data)); *value == "" {
			return l, fmt.Errorf("reading Ondat's credentials: %s is empty", filepath.Join(o.SecretPath, file))
		}
	}
	return l, nil
}
