package webhook

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/fairlead-io/fairlead/certs"
)

func TestTLSIsAtLeast13(t *testing.T) {
	serving := validNow(t, servingName)
	clientCA, _ := validNow(t, "apiserver").write(t, t.TempDir())
	for name, file := range map[string]string{"without a client CA": "", "with a client CA": clientCA} {
		t.Run(name, func(t *testing.T) {
			config, err := TLSConfig(fixed{certificate: serving.tls(t)}, file)
			if err != nil || config.MinVersion != tls.VersionTLS13 {
				t.Fatalf("got minimum %x, %v", config.MinVersion, err)
			}
			_, address, _ := serveTLS(t, config, http.NotFoundHandler(), 0)
			if _, err := tls.Dial("tcp", address, &tls.Config{RootCAs: serving.pool(), ServerName: servingName, MaxVersion: tls.VersionTLS12}); err == nil {
				t.Error("TLS 1.2 was accepted")
			}
			conn, err := tls.Dial("tcp", address, &tls.Config{RootCAs: serving.pool(), ServerName: servingName, NextProtos: []string{"h2", "http/1.1"}})
			if err != nil {
				t.Fatal(err)
			}
			defer conn.Close()
			if state := conn.ConnectionState(); state.Version != tls.VersionTLS13 || state.NegotiatedProtocol != "http/1.1" {
				t.Errorf("got version %x, protocol %q", state.Version, state.NegotiatedProtocol)
			}
		})
	}
}

func TestOnlyClientsOfTheClientCAAreServed(t *testing.T) {
	serving, apiServer, stranger := validNow(t, servingName), validNow(t, "apiserver"), validNow(t, "stranger")
	clientCA, _ := apiServer.write(t, t.TempDir())
	config, err := TLSConfig(fixed{certificate: serving.tls(t)}, clientCA)
	if err != nil {
		t.Fatal(err)
	}
	_, address, _ := serveTLS(t, config, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "served") }), 0)
	for name, test := range map[string]struct {
		certificates []tls.Certificate
		served       bool
	}{
		"of the CA":   {[]tls.Certificate{*apiServer.tls(t)}, true},
		"of another":  {[]tls.Certificate{*stranger.tls(t)}, false},
		"without any": {nil, false},
	} {
		t.Run(name, func(t *testing.T) {
			c := http.Client{Transport: &http.Transport{DisableKeepAlives: true, TLSClientConfig: &tls.Config{
				RootCAs: serving.pool(), ServerName: servingName, Certificates: test.certificates,
			}}}
			response, err := c.Get("https://" + address)
			if (err == nil) != test.served {
				t.Fatalf("got %v", err)
			}
			if err == nil {
				response.Body.Close()
			}
		})
	}
}

func TestClientCAFilesThatAreNone(t *testing.T) {
	if _, err := TLSConfig(fixed{}, filepath.Join(t.TempDir(), "none")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("no file: got %v", err)
	}
	empty := filepath.Join(t.TempDir(), "ca.crt")
	if err := os.WriteFile(empty, []byte("not PEM"), 0o600); err != nil {
		t.Fatal(err)
	}
	_, err := TLSConfig(fixed{}, empty)
	if want := "no PEM certificate in the client CA file: " + empty; !errors.Is(err, ErrNoClientCA) || err.Error() != want {
		t.Errorf("no PEM: got %v, want %s", err, want)
	}
}

func TestARotatedCertificateIsServedWithoutRestart(t *testing.T) {
	dir, first, second := t.TempDir(), validNow(t, servingName), validNow(t, servingName)
	source := certs.FromFiles(filepath.Join(dir, "tls.crt"), filepath.Join(dir, "tls.key"))
	config, err := TLSConfig(source, "")
	if err != nil {
		t.Fatal(err)
	}
	_, address, _ := serveTLS(t, config, http.NotFoundHandler(), 0)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- source.Start(ctx) }()
	defer func() {
		cancel()
		if err := <-ended; err != nil {
			t.Errorf("the source: %v", err)
		}
	}()
	if _, err := servedCertificate(address); err == nil {
		t.Fatal("a certificate was served before there was one")
	}
	first.write(t, dir)
	eventually(t, "the first certificate", func() bool { return serves(address, first) })
	second.write(t, dir)
	eventually(t, "the rotated certificate", func() bool { return serves(address, second) })
}

func eventually(t *testing.T, what string, holds func() bool) {
	t.Helper()
	for deadline := time.Now().Add(15 * time.Second); time.Now().Before(deadline); time.Sleep(20 * time.Millisecond) {
		if holds() {
			return
		}
	}
	t.Fatalf("not in time: %s", what)
}
