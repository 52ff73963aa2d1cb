package rest

import (
	"context"
	"encoding/pem"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	bed "github.com/fairlead-io/fairlead/e2e/ondat"
	"github.com/fairlead-io/fairlead/internal/nfs/ondat"
	"github.com/fairlead-io/fairlead/internal/testkit/certtest"
	"github.com/fairlead-io/fairlead/internal/testkit/must"
)

func TestVolumesOfAllNamespaces(t *testing.T) {
	w := newWorld(t)
	for i := range 20 {
		ns := fmt.Sprintf("ns-%02d", i)
		w.AddNamespace(ns, "team")
		w.Provision(ns, "v-"+ns, "pv-"+ns, "data", "apps")
	}
	w.Attach("v-ns-03", "10.0.0.3:32003")
	w.LoseServer("v-ns-04")
	listing, err := w.Volumes(t.Context())
	if err != nil || len(listing.Volumes) != 20 || len(listing.Listed) != 21 {
		t.Fatalf("got %+v, %v", listing, err)
	}
	byID := map[string]ondat.Volume{}
	for _, v := range listing.Volumes {
		byID[v.ID] = v
	}
	v := byID["v-ns-03"]
	if v.NamespaceID != "ns-03" || v.ServiceEndpoint != "10.0.0.3:32003" || v.AttachmentType != "nfs" || v.Labels[ondat.LabelPVC] != "data" || v.Version == "" {
		t.Errorf("got %+v", v)
	}
	if byID["v-ns-04"].ServiceEndpoint != "" || byID["v-ns-05"].ServiceEndpoint != "" { // null, and no nfs at all
		t.Errorf("got %+v", byID)
	}
}

// The released manager drops all volumes and logs in again (ListSharedVolumes).
func TestErrorOfOneNamespaceStopsNoOther(t *testing.T) {
	w := newWorld(t)
	w.AddNamespace("b-id", "b")
	w.Provision("default-id", "v-1", "pv-1", "data", "apps")
	w.Provision("b-id", "v-2", "pv-2", "data", "apps")
	for _, status := range []int{403, 404, 500, 503} {
		w.Fail(bed.Fault{Path: "/namespaces/b-id/volumes", Status: status, Body: "oops"})
		listing, err := w.Volumes(t.Context())
		w.Recover()
		if err != nil || len(listing.Volumes) != 1 || listing.Volumes[0].ID != "v-1" || !listing.Listed["default-id"] {
			t.Errorf("%d: got %+v, %v", status, listing, err)
		}
		if gone := status == 404; listing.Gone("b-id") != gone || (listing.Failed["b-id"] == nil) != gone {
			t.Errorf("%d: gone %t, failed %v", status, listing.Gone("b-id"), listing.Failed)
		}
	}
	w.loggedIn(t, 1)
	w.Fail(bed.Fault{Path: "/namespaces", Status: 503})
	if _, err := w.Volumes(t.Context()); err == nil || !strings.Contains(err.Error(), "listing namespaces at Ondat's API: status 503: the store") {
		t.Errorf("got %v", err)
	}
}

// shared is a volume of the control plane as it is now.
func shared(t *testing.T, w *world) ondat.Volume {
	t.Helper()
	w.Provision("default-id", "v-1", "pv-1", "data", "apps")
	w.Attach("v-1", "10.0.0.1:32001")
	v, err := w.Client.Volume(t.Context(), "default-id", "v-1")
	must.Do(t, err)
	return v
}

func (w *world) endpoint() string {
	v, _ := w.Server.Volume("v-1")
	return v.MountEndpoint()
}

func TestMountEndpointIsSetAndCleared(t *testing.T) {
	w := newWorld(t)
	v := shared(t, w)
	must.Do(t, w.SetMountEndpoint(t.Context(), v, "[fd00::1]:2049"))
	must.Equal(t, w.endpoint(), "[fd00::1]:2049")
	v, _ = w.Client.Volume(t.Context(), "default-id", "v-1")
	must.Do(t, w.SetMountEndpoint(t.Context(), v, ""))
	must.Equal(t, w.endpoint(), "")
}

// The released manager logs it and waits for the next poll.
func TestStaleVersionIsReadAgainAtOnce(t *testing.T) {
	w := newWorld(t)
	v := shared(t, w)
	w.Change("v-1", func(v *bed.Volume) { v.Description = "changed" })
	w.Requests()
	if err := w.SetMountEndpoint(t.Context(), v, "10.96.0.1:2049"); err != nil || w.endpoint() != "10.96.0.1:2049" {
		t.Fatalf("got %q, %v", w.endpoint(), err)
	}
	const path = "/namespaces/default-id/volumes/v-1"
	must.Equal(t, w.Requests(), []string{"PUT " + path + "/nfs/mount-endpoint", "GET " + path, "PUT " + path + "/nfs/mount-endpoint"})
	// It is there already: a retry whose first answer was lost.
	if err := w.SetMountEndpoint(t.Context(), v, "10.96.0.1:2049"); err != nil {
		t.Errorf("got %v", err)
	}
	// Another leader has published another address.
	if err := w.SetMountEndpoint(t.Context(), v, "10.96.0.2:2049"); err == nil || w.endpoint() != "10.96.0.1:2049" {
		t.Errorf("got %q, %v", w.endpoint(), err)
	}
}

func TestStaleVersionIsRetriedOnce(t *testing.T) {
	w := newWorld(t)
	v := shared(t, w)
	w.Before(func(r *http.Request) {
		if r.Method == http.MethodPut {
			w.Change("v-1", func(v *bed.Volume) { v.Description += "." })
		}
	})
	if err := w.SetMountEndpoint(t.Context(), v, "10.96.0.1:2049"); !IsCode(err, http.StatusPreconditionFailed) || w.endpoint() != "" {
		t.Errorf("got %q, %v", w.endpoint(), err)
	}
	w.Before(nil)
	w.Delete("v-1")
	if err := w.SetMountEndpoint(t.Context(), v, "10.96.0.1:2049"); !IsCode(err, http.StatusNotFound) {
		t.Errorf("got %v", err)
	}
}

func TestErrorsHoldNoSecretAndAreShort(t *testing.T) {
	w := newWorld(t)
	shared(t, w)
	body := func(secret string) string {
		return fmt.Sprintf(`{"error": "no \u001b[31m %s %s"}`, secret, strings.Repeat("x", 5000))
	}
	for _, path := range []string{"/namespaces", "/auth/login"} {
		w.list(t)
		secret := w.held.Load().text
		if path == "/auth/login" {
			w.held.Store(new(token))
			secret = w.Password
		}
		w.Fail(bed.Fault{Path: path, Status: http.StatusForbidden, Body: body(secret)})
		_, err := w.Volumes(t.Context())
		if err == nil {
			t.Fatal("no error")
		}
		if text := err.Error(); strings.Contains(text, secret) || strings.Contains(text, "\x1b") || len(text) > 500 || !strings.Contains(text, "[hidden]") {
			t.Errorf("%s: got %q", path, text)
		}
		w.Recover()
	}
}

func TestKindsOfErrors(t *testing.T) {
	w := newWorld(t)
	w.list(t)
	for status, want := range map[int]string{
		400: "bad_request", 403: "forbidden", 404: "not_found", 409: "conflict", 412: "stale_version", 422: "invalid_state",
		423: "locked", 451: "licence", 500: "server_error", 503: "unavailable", 507: "server_error", 302: "unexpected_status", 200: "bad_answer",
	} {
		w.Fail(bed.Fault{Path: "/namespaces", Status: status, Body: "<html>"})
		_, err := w.Volumes(t.Context())
		must.Equal(t, Class(err), want, "%d: (%v)", status, err)
		w.Recover()
	}
	gone := httptest.NewServer(http.NotFoundHandler())
	gone.Close()
	c := client(t, Options{Endpoint: gone.URL, SecretPath: w.secret})
	if _, err := c.Volumes(t.Context()); Class(err) != "connection" || !strings.Contains(err.Error(), "check ondat.apiEndpoint") || strings.Contains(err.Error(), "/v2/") {
		t.Errorf("got %s, %v", Class(err), err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := w.Volumes(ctx); Class(err) != "cancelled" {
		t.Errorf("got %s, %v", Class(err), err)
	}
	must.Equal(t, Class(errors.New("x")), "connection")
}

func TestHungServerMeetsTheTimeout(t *testing.T) {
	release := make(chan struct{})
	hung := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { <-release }))
	defer hung.Close()
	defer close(release)
	w := newWorld(t)
	c := client(t, Options{Endpoint: hung.URL, SecretPath: w.secret, Timeout: 10 * time.Millisecond})
	if _, err := c.Volumes(t.Context()); Class(err) != "timeout" {
		t.Errorf("got %v", err)
	}
}

func TestRedirectionIsNotFollowed(t *testing.T) {
	var seen []string
	other := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { seen = append(seen, r.Header.Get("Authorization")) }))
	defer other.Close()
	w := newWorld(t)
	redirecting := httptest.NewServer(http.RedirectHandler(other.URL, http.StatusTemporaryRedirect))
	defer redirecting.Close()
	c := client(t, Options{Endpoint: redirecting.URL, SecretPath: w.secret})
	if _, err := c.Volumes(t.Context()); err == nil || len(seen) > 0 {
		t.Errorf("got %v, asked %q", err, seen)
	}
}

func TestTLSWithACertificateAuthority(t *testing.T) {
	s := bed.New()
	server := httptest.NewTLSServer(s.Handler())
	defer server.Close()
	ca := filepath.Join(t.TempDir(), "ca.crt")
	must.Do(t, os.WriteFile(ca, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw}), 0o600))
	o := Options{Endpoint: server.URL, SecretPath: secretOf(t, s), CAFile: ca}
	if _, err := client(t, o).Volumes(t.Context()); err != nil {
		t.Errorf("got %v", err)
	}
	other := filepath.Join(t.TempDir(), "other.crt")
	stranger, err := certtest.New()
	must.Do(t, err)
	must.Do(t, os.WriteFile(other, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: stranger.Certificate.Raw}), 0o600))
	for _, o.CAFile = range []string{"", other} {
		if _, err := client(t, o).Volumes(t.Context()); err == nil {
			t.Errorf("CA file %q: a certificate of an unknown authority is accepted", o.CAFile)
		}
	}
	for _, file := range []string{filepath.Join(t.TempDir(), "none"), filepath.Join(o.SecretPath, "username")} {
		o.CAFile = file
		if _, err := New(o); err == nil {
			t.Errorf("%s: no error", file)
		}
	}
}

// The labels of the released manager's metrics hold the text of errors, so that
// their number has no bound.
func TestMetricsByTheirNames(t *testing.T) {
	w := newWorld(t)
	v := shared(t, w)
	must.Do(t, w.SetMountEndpoint(t.Context(), v, "10.96.0.1:2049"))
	w.list(t)
	for i := range 10 {
		w.Fail(bed.Fault{Path: "/namespaces", Status: 500, Body: fmt.Sprintf(`{"error": "id %d"}`, i), Times: 1})
		_, _ = w.Volumes(t.Context())
	}
	families, err := w.registry.Gather()
	must.Do(t, err)
	got := map[string]int{}
	for _, f := range families {
		got[f.GetName()] = len(f.GetMetric())
	}
	if want := map[string]int{
		"storageos_api_helper_duration_seconds": 4, "storageos_api_helper_total": 5, "storageos_api_in_flight_requests": 1,
		"storageos_api_request_duration_seconds": 3, "storageos_api_requests_total": 4,
	}; !maps.Equal(got, want) {
		t.Errorf("got %v", got)
	}
	var series []string
	for _, f := range families {
		for _, m := range f.GetMetric() {
			if m.GetCounter() == nil {
				continue
			}
			line := f.GetName()
			for _, l := range m.GetLabel() {
				line += fmt.Sprintf(" %s=%q", l.GetName(), l.GetValue())
			}
			series = append(series, fmt.Sprint(line, " ", m.GetCounter().GetValue()))
		}
	}
	if want := []string{
		`storageos_api_helper_total error="" function="get_volume" 1`,
		`storageos_api_helper_total error="" function="list_shared_volumes" 1`,
		`storageos_api_helper_total error="" function="set_external_endpoint" 1`,
		`storageos_api_helper_total error="" function="setup" 1`,
		`storageos_api_helper_total error="server_error" function="list_shared_volumes" 10`,
		`storageos_api_requests_total code="200" method="get" 3`,
		`storageos_api_requests_total code="200" method="post" 1`,
		`storageos_api_requests_total code="200" method="put" 1`,
		`storageos_api_requests_total code="500" method="get" 10`,
	}; !slices.Equal(series, want) {
		t.Errorf("got\n%s", strings.Join(series, "\n"))
	}
}
