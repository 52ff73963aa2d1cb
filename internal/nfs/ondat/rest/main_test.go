package rest

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	clocktesting "k8s.io/utils/clock/testing"

	bed "github.com/fairlead-io/fairlead/e2e/ondat"
	"github.com/fairlead-io/fairlead/internal/testkit/must"
)

// world is a control plane of the test bed and a client of it.
type world struct {
	*bed.Server
	*Client
	clock    *clocktesting.FakePassiveClock
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

func client(t *testing.T, o Options) *Client {
	t.Helper()
	c, err := New(o)
	must.Do(t, err)
	return c
}

func newWorld(t *testing.T, change ...func(*Options)) *world {
	t.Helper()
	s := bed.New()
	server := s.Start()
	t.Cleanup(server.Close)
	w := &world{
		Server: s, clock: clocktesting.NewFakePassiveClock(time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)),
		registry: prometheus.NewRegistry(), secret: secretOf(t, s),
	}
	o := Options{Endpoint: server.URL, SecretPath: w.secret, Clock: w.clock, Registry: w.registry, Timeout: 5 * time.Second}
	for _, c := range change {
		c(&o)
	}
	w.Client = client(t, o)
	return w
}
