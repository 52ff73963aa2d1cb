package admission

import (
	"context"
	"crypto/tls"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/fairlead-io/fairlead/certs"
	"github.com/fairlead-io/fairlead/internal/testkit/certtest"
	"github.com/fairlead-io/fairlead/internal/testkit/must"
)

func TestTLSIsAtLeast13(t *testing.T) {
	serving := validNow(t, servingName)
	for name, clientCA := range map[string]string{"without a client CA": "", "with a client CA": validNow(t, "apiserver").file(t)} {
		t.Run(name, func(t *testing.T) {
			server, _ := serveTLS(t, serving, clientCA, http.NotFoundHandler(), 0)
			client := serving.client()
			client.MaxVersion = tls.VersionTLS12
			if _, err := tls.Dial("tcp", server.Address, client); err == nil {
				t.Error("TLS 1.2 was accepted")
			}
			client.MaxVersion, client.NextProtos = 0, []string{"h2", "http/1.1"}
			conn, err := tls.Dial("tcp", server.Address, client)
			must.Do(t, err)
			defer conn.Close()
			if state := conn.ConnectionState(); state.Version != tls.VersionTLS13 || state.NegotiatedProtocol != "http/1.1" {
				t.Errorf("got version %x, protocol %q", state.Version, state.NegotiatedProtocol)
			}
		})
	}
}

func TestOnlyClientsOfClientCAAreServed(t *testing.T) {
	serving, apiServer, stranger := validNow(t, servingName), validNow(t, "apiserver"), validNow(t, "stranger")
	server, _ := serveTLS(t, serving, apiServer.file(t), http.NotFoundHandler(), 0)
	for name, test := range map[string]struct {
		client *tls.Config
		served bool
	}{
		"of the CA":      {serving.client(apiServer.Certificate), true},
		"of another CA":  {serving.client(stranger.Certificate), false},
		"no certificate": {serving.client(), false},
	} {
		c := http.Client{Transport: &http.Transport{DisableKeepAlives: true, TLSClientConfig: test.client}}
		response, err := c.Get("https://" + server.Address)
		must.Equal(t, err == nil, test.served, "%s: got %v", name, err)
		if err == nil {
			response.Body.Close()
		}
	}
}

func TestClientCAFilesWithoutCertificate(t *testing.T) {
	empty := filepath.Join(t.TempDir(), "ca.crt")
	must.Do(t, os.WriteFile(empty, []byte("not PEM"), 0o600))
	for file, want := range map[string]string{filepath.Join(t.TempDir(), "none"): "no such file", empty: "failed to append client CA cert"} {
		server := &Server{Address: freeAddress(t), Source: validNow(t, servingName), ClientCAFile: file, Handler: http.NotFoundHandler(), Log: slog.New(slog.DiscardHandler)}
		err := server.Start(t.Context())
		must.Check(t, err != nil && strings.Contains(err.Error(), want), "%s: got %v", file, err)
	}
}

func TestRotatedCertificateIsServedWithoutRestart(t *testing.T) {
	dir := t.TempDir()
	source := certs.FromFiles(filepath.Join(dir, "tls.crt"), filepath.Join(dir, "tls.key"))
	server, _ := serveTLS(t, source, "", http.NotFoundHandler(), 0)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- source.Start(ctx) }()
	defer func() {
		cancel()
		err := <-ended
		must.Check(t, err == nil, "the source: %v", err)
	}()
	if conn, err := tls.Dial("tcp", server.Address, &tls.Config{InsecureSkipVerify: true}); err == nil { //nolint:gosec // no certificate is expected
		conn.Close()
		t.Fatal("a certificate was served before there was one")
	}
	for _, name := range []string{"first", "second"} {
		c := validNow(t, servingName)
		must.Do(t, certtest.WriteFiles(dir, c.Certificate))
		eventually(t, "the "+name+" certificate", func() bool { return c.isServedAt(server.Address) })
	}
}
