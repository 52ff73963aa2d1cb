package cephclients

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/fairlead-io/fairlead/internal/cephclients/cephcli"
	"github.com/fairlead-io/fairlead/internal/cephclients/server"
	"github.com/fairlead-io/fairlead/internal/httpserver"
	"github.com/fairlead-io/fairlead/internal/testkit/certtest"
	"github.com/fairlead-io/fairlead/internal/testkit/must"
)

func newCA(t *testing.T) *certtest.CA {
	t.Helper()
	ca, err := certtest.New()
	must.Do(t, err)
	return ca
}

// write puts a certificate for a name into a directory, and returns that.
func write(t *testing.T, ca *certtest.CA, directory, name string, usage x509.ExtKeyUsage) string {
	t.Helper()
	must.Do(t, ca.Write(directory, name, usage))
	return directory
}

const inUse = `{"watchers":[{"address":"10.0.0.1:0/1","client":1}]}`

// serve runs the real server, for localhost, with commands that all have one answer.
func serve(t *testing.T, directory string) (url string) {
	t.Helper()
	listener, err := net.Listen("tcp", "localhost:0")
	must.Do(t, err)
	handler := server.Handler(func(context.Context, string, ...string) ([]byte, error) { return []byte(inUse), nil })
	s := httpserver.New("ceph-clients", listener, ServerTLS(directory), handler, slog.New(slog.DiscardHandler))
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- s.Start(ctx) }()
	t.Cleanup(func() {
		cancel()
		must.Do(t, <-ended)
	})
	_, port, _ := net.SplitHostPort(listener.Addr().String())
	return "https://localhost:" + port
}

var question = cephcli.Request{"pvc-a": {Pool: "p", Image: "i"}}

func TestOnlyTheControllerIsAnswered(t *testing.T) {
	own, other := newCA(t), newCA(t)
	directory := write(t, own, t.TempDir(), "localhost", x509.ExtKeyUsageServerAuth)
	url := serve(t, directory)
	controller := write(t, own, t.TempDir(), ClientName, x509.ExtKeyUsageClientAuth)
	answer, err := Ask(url, controller)(t.Context(), question)
	if found := answer.Clients["pvc-a"]; err != nil || len(found.Addresses) != 1 || found.Problem != "" {
		t.Fatalf("%+v, %v", answer, err)
	}
	foreign := write(t, other, t.TempDir(), ClientName, x509.ExtKeyUsageClientAuth)
	pem, err := os.ReadFile(filepath.Join(controller, "ca.crt"))
	must.Do(t, err)
	if err := os.WriteFile(filepath.Join(foreign, "ca.crt"), pem, 0o600); err != nil { // it knows the server, and the server not it
		t.Fatal(err)
	}
	for what, directory := range map[string]string{
		"another name":              write(t, own, t.TempDir(), "fairlead-webhook", x509.ExtKeyUsageClientAuth),
		"the server's own":          directory,
		"the name, but as a server": write(t, own, t.TempDir(), ClientName, x509.ExtKeyUsageServerAuth),
		"another CA's":              foreign,
	} {
		if answer, err := Ask(url, directory)(t.Context(), question); err == nil {
			t.Errorf("%s is answered: %v", what, answer)
		}
	}
	pool := x509.NewCertPool()
	pool.AddCert(own.Certificate)
	without := http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: pool}}}
	if response, err := without.Post(url, "application/json", strings.NewReader("{}")); err == nil {
		text, _ := io.ReadAll(response.Body)
		response.Body.Close()
		t.Errorf("without a certificate it answers %s: %s", response.Status, text)
	}
}

func TestServerMustHaveItsNameAndTheCA(t *testing.T) {
	own, other := newCA(t), newCA(t)
	controller := write(t, own, t.TempDir(), ClientName, x509.ExtKeyUsageClientAuth)
	for what, directory := range map[string]string{
		"another name": write(t, own, t.TempDir(), "elsewhere", x509.ExtKeyUsageServerAuth),
		"a client's":   write(t, own, t.TempDir(), "localhost", x509.ExtKeyUsageClientAuth),
		"another CA's": write(t, other, t.TempDir(), "localhost", x509.ExtKeyUsageServerAuth),
	} {
		if answer, err := Ask(serve(t, directory), controller)(t.Context(), question); err == nil {
			t.Errorf("%s is believed: %v", what, answer)
		}
	}
}

// cert-manager replaces the files while both sides run, the CA too.
func TestReplacedCertificatesAreUsed(t *testing.T) {
	first, second := newCA(t), newCA(t)
	servers, controller := t.TempDir(), t.TempDir()
	url := serve(t, write(t, first, servers, "localhost", x509.ExtKeyUsageServerAuth))
	ask := Ask(url, write(t, first, controller, ClientName, x509.ExtKeyUsageClientAuth))
	for _, ca := range []*certtest.CA{first, second} {
		write(t, ca, servers, "localhost", x509.ExtKeyUsageServerAuth)
		write(t, ca, controller, ClientName, x509.ExtKeyUsageClientAuth)
		if _, err := ask(t.Context(), question); err != nil {
			t.Error(err)
		}
	}
}

func TestRefusedRequestSaysWhy(t *testing.T) {
	own := newCA(t)
	url := serve(t, write(t, own, t.TempDir(), "localhost", x509.ExtKeyUsageServerAuth))
	_, err := Ask(url, write(t, own, t.TempDir(), ClientName, x509.ExtKeyUsageClientAuth))(t.Context(), cephcli.Request{"pvc-a": {Pool: "-p", Image: "i"}})
	if err == nil || !strings.Contains(err.Error(), `"-p" is not a name`) {
		t.Error(err)
	}
}
