package webhook

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"
)

func TestReadiness(t *testing.T) {
	yes, no := func() bool { return true }, func() bool { return false }
	now := time.Now()
	for name, test := range map[string]struct {
		source  fixed
		but     func(*Readiness)
		want    error
		message string
	}{
		"ready":      {source: fixed{certificate: validNow(t, servingName).tls(t)}},
		"draining":   {source: fixed{certificate: validNow(t, servingName).tls(t)}, but: func(r *Readiness) { r.Draining = yes }, want: ErrDraining, message: "draining"},
		"not synced": {source: fixed{certificate: validNow(t, servingName).tls(t)}, but: func(r *Readiness) { r.Synced = no }, want: ErrNotSynced, message: "caches are not synced"},
		"no certificate": {
			source: fixed{err: errors.New("none yet")}, want: ErrNoCert, message: "no certificate is served: ",
		},
		"nobody listens": {
			source: fixed{certificate: validNow(t, servingName).tls(t)}, but: func(r *Readiness) { r.Address = "127.0.0.1:1" },
			want: ErrNoCert, message: "no certificate is served: ",
		},
		"expired": {
			source:  fixed{certificate: newKeyPair(t, servingName, now.Add(-2*time.Hour), now.Add(-time.Hour)).tls(t)},
			message: "the certificate served is valid from ",
		},
		"not valid yet": {
			source:  fixed{certificate: newKeyPair(t, servingName, now.Add(time.Hour), now.Add(2*time.Hour)).tls(t)},
			message: "the certificate served is valid from ",
		},
		"expires while served": {
			source: fixed{certificate: validNow(t, servingName).tls(t)}, but: func(r *Readiness) { r.Now = func() time.Time { return now.Add(2 * time.Hour) } },
			message: "the certificate served is valid from ",
		},
		"of another name": {
			source:  fixed{certificate: validNow(t, "other.fairlead-system.svc").tls(t)},
			message: "the certificate served is not the one for " + servingName + ": x509: certificate is valid for other.fairlead-system.svc, not " + servingName,
		},
	} {
		t.Run(name, func(t *testing.T) {
			config, err := TLSConfig(test.source, "")
			if err != nil {
				t.Fatal(err)
			}
			_, address, _ := serveTLS(t, config, http.NotFoundHandler(), 0)
			r := &Readiness{Address: address, ServingName: servingName, Synced: yes, Draining: no, Now: time.Now}
			if test.but != nil {
				test.but(r)
			}
			err = r.Check(t.Context())
			response := httptest.NewRecorder()
			r.ServeHTTP(response, httptest.NewRequest(http.MethodGet, "/readyz", nil))
			if test.message == "" {
				if err != nil || response.Code != http.StatusOK || response.Body.String() != "ok\n" {
					t.Fatalf("got %v, %d %s", err, response.Code, response.Body)
				}
				return
			}
			if err == nil || !strings.HasPrefix(err.Error(), test.message) || test.want != nil && !errors.Is(err, test.want) {
				t.Errorf("got %v, want %s", err, test.message)
			}
			if response.Code != http.StatusServiceUnavailable || !strings.HasPrefix(response.Body.String(), test.message) {
				t.Errorf("got %d %s", response.Code, response.Body)
			}
		})
	}
}

func TestReadinessWithClientCertificatesAskedFor(t *testing.T) {
	clientCA, _ := validNow(t, "apiserver").write(t, t.TempDir())
	config, err := TLSConfig(fixed{certificate: validNow(t, servingName).tls(t)}, clientCA)
	if err != nil {
		t.Fatal(err)
	}
	server, address, _ := serveTLS(t, config, http.NotFoundHandler(), 0)
	r := &Readiness{Address: address, ServingName: servingName, Synced: func() bool { return true }, Draining: server.Draining, Now: time.Now}
	if err := r.Check(t.Context()); err != nil {
		t.Fatalf("its own look at the certificate needs no client certificate: %v", err)
	}
}
