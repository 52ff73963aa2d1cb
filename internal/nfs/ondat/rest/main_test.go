package rest

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/fairlead-io/fairlead/internal/testkit/must"
	bed "github.com/fairlead-io/fairlead/internal/testkit/ondat"
)

// world is a control plane of the test bed and a client of it.
type world struct {
	*bed.Server
	*Client
	registry *prometheus.Registry
	secret   string
}

// secretOf writes the credentials as a mounted Secret has them.
func secretOf(t *testing.T, s *bed.Server) string {
	t.Helper()
	folder := t.TempDir()
	for name, value := range map[string]string{"username": s.Username, "password": s.Password + "\n"} {
		must.Do(t, os.WriteFile(filepath.Join(folder, name), []byte(value), 0o600))
	}
	return folder
}

func client(t *testing.T, endpoint, caFile, secret string) *Client {
	t.Helper()
	c, err := New(endpoint, caFile, secret, prometheus.NewRegistry())
	must.Do(t, err)
	return c
}

func newWorld(t *testing.T) *world {
	t.Helper()
	s := bed.New()
	server := s.Start()
	t.Cleanup(server.Close)
	w := &world{Server: s, registry: prometheus.NewRegistry(), secret: secretOf(t, s)}
	var err error
	w.Client, err = New(server.URL, "", w.secret, w.registry)
	must.Do(t, err)
	return w
}

func (w *world) list(t *testing.T) {
	t.Helper()
	if listing, err := w.Volumes(t.Context()); err != nil || len(listing.Failed) > 0 {
		t.Fatalf("got %v, %v", err, listing.Failed)
	}
}

// loggedIn compares the logins since the last call of Requests.
func (w *world) loggedIn(t *testing.T, want int) {
	t.Helper()
	logins := 0
	for _, r := range w.Requests() {
		if r == "POST /auth/login" {
			logins++
		}
	}
	must.Equal(t, logins, want, "logins")
}
