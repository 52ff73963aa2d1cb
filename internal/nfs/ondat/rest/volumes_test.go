package rest

import (
	"encoding/pem"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/fairlead-io/fairlead/internal/nfs/ondat"
	"github.com/fairlead-io/fairlead/internal/testkit"
	"github.com/fairlead-io/fairlead/internal/testkit/certtest"
	"github.com/fairlead-io/fairlead/internal/testkit/must"
	bed "github.com/fairlead-io/fairlead/internal/testkit/ondat"
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
		if gone := status == 404; listing.Listed["b-id"] != gone || (listing.Failed["b-id"] == nil) != gone {
			t.Errorf("%d: listed %v, failed %v", status, listing.Listed, listing.Failed)
		}
	}
	w.loggedIn(t, 1)
	failed, _ := testkit.Metric(t, w.registry, "storageos_api_helper_total", "403", "list_shared_volumes")
	must.Equal(t, failed, 1, "failed lists")
	w.Fail(bed.Fault{Path: "/namespaces", Status: 503})
	if _, err := w.Volumes(t.Context()); err == nil || !strings.Contains(err.Error(), "listing namespaces at Ondat's API: status 503: Fairlead tries again") {
		t.Errorf("got %v", err)
	}
}

// shared is a volume of the control plane as it is now.
func shared(t *testing.T, w *world) ondat.Volume {
	t.Helper()
	w.Provision("default-id", "v-1", "pv-1", "data", "apps")
	w.Attach("v-1", "10.0.0.1:32001")
	return listed(t, w)
}

// listed is volume v-1 as the client lists it.
func listed(t *testing.T, w *world) ondat.Volume {
	t.Helper()
	listing, err := w.Volumes(t.Context())
	must.True(t, err == nil && len(listing.Volumes) == 1 && listing.Volumes[0].ID == "v-1", "got %+v, %v", listing, err)
	return listing.Volumes[0]
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
	v = listed(t, w)
	must.Do(t, w.SetMountEndpoint(t.Context(), v, ""))
	must.Equal(t, w.endpoint(), "")
}

// Whoever changed the volume may have published another address.
func TestStaleVersionChangesNothing(t *testing.T) {
	w := newWorld(t)
	v := shared(t, w)
	w.Change("v-1", func(v *bed.Volume) { v.Description = "changed" })
	err := w.SetMountEndpoint(t.Context(), v, "10.96.0.1:2049")
	must.True(t, isStatus(err, http.StatusPreconditionFailed) && w.endpoint() == "", "got %q, %v", w.endpoint(), err)
	must.Do(t, w.SetMountEndpoint(t.Context(), listed(t, w), "10.96.0.1:2049"))
	must.Equal(t, w.endpoint(), "10.96.0.1:2049")
}

func TestErrorsHoldNoSecretAndAreShort(t *testing.T) {
	w := newWorld(t)
	shared(t, w)
	body := func(secret string) string {
		return fmt.Sprintf(`{"error": "no \u001b[31m %s %s"}`, secret, strings.Repeat("x", 5000))
	}
	for _, path := range []string{"/namespaces", "/auth/login"} {
		w.list(t)
		secret := w.token
		if path == "/auth/login" {
			w.token = ""
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

func TestClassesOfErrors(t *testing.T) {
	w := newWorld(t)
	w.list(t)
	for status, want := range map[int]string{403: "give the user a policy", 404: "not Ondat's API", 451: "renew the licence", 503: "Fairlead tries again", 302: "", 200: "is not Ondat's API"} {
		w.Fail(bed.Fault{Path: "/namespaces", Status: status, Body: "<html>"})
		_, err := w.Volumes(t.Context())
		must.True(t, err != nil && strings.Contains(err.Error(), want), "%d: got %v", status, err)
		must.Equal(t, class(err), map[bool]string{true: "other", false: fmt.Sprint(status)}[status == 200], "%v", err)
		w.Recover()
	}
	gone := httptest.NewServer(http.NotFoundHandler())
	gone.Close()
	if _, err := client(t, gone.URL, "", w.secret).Volumes(t.Context()); class(err) != "other" || !strings.Contains(err.Error(), "check ondat.apiEndpoint") || strings.Contains(err.Error(), "/v2/") {
		t.Errorf("got %s, %v", class(err), err)
	}
}

func TestHungServerMeetsTheTimeout(t *testing.T) {
	release := make(chan struct{})
	hung := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { <-release }))
	defer hung.Close()
	defer close(release)
	w := newWorld(t)
	c := client(t, hung.URL, "", w.secret)
	must.Equal(t, c.http.Timeout, timeout)
	c.http.Timeout = 10 * time.Millisecond
	if _, err := c.Volumes(t.Context()); class(err) != "timeout" {
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
	c := client(t, redirecting.URL, "", w.secret)
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
	secret := secretOf(t, s)
	if _, err := client(t, server.URL, ca, secret).Volumes(t.Context()); err != nil {
		t.Errorf("got %v", err)
	}
	other := filepath.Join(t.TempDir(), "other.crt")
	stranger, err := certtest.New()
	must.Do(t, err)
	must.Do(t, os.WriteFile(other, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: stranger.Certificate.Raw}), 0o600))
	for _, file := range []string{"", other} {
		if _, err := client(t, server.URL, file, secret).Volumes(t.Context()); err == nil {
			t.Errorf("CA file %q: a certificate of an unknown authority is accepted", file)
		}
	}
	for _, file := range []string{filepath.Join(t.TempDir(), "none"), filepath.Join(secret, "username")} {
		if _, err := New(server.URL, file, secret, prometheus.NewRegistry()); err == nil {
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
	for name, want := range map[string][]struct {
		value  float64
		labels []string
	}{
		"storageos_api_helper_duration_seconds": {{14, nil}},
		"storageos_api_helper_total": {
			{1, []string{"", "setup"}}, {2, []string{"", "list_shared_volumes"}}, {1, []string{"", "set_external_endpoint"}}, {10, []string{"500", "list_shared_volumes"}},
		},
		"storageos_api_in_flight_requests":       {{0, nil}},
		"storageos_api_request_duration_seconds": {{16, nil}},
		"storageos_api_requests_total":           {{4, []string{"200", "get"}}, {1, []string{"200", "post"}}, {1, []string{"200", "put"}}, {10, []string{"500", "get"}}},
	} {
		for _, c := range want {
			got, found := testkit.Metric(t, w.registry, name, c.labels...)
			must.True(t, found && got == c.value, "%s %q: got %v, want %v", name, c.labels, got, c.value)
		}
	}
}
