package admission

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/fairlead-io/fairlead/internal/testkit/must"
)

func TestReadiness(t *testing.T) {
	yes, no := func() bool { return true }, func() bool { return false }
	serving := validNow(t, servingName)
	const expired, none = "the certificate served is valid from ", "no certificate is served: "
	for name, test := range map[string]struct {
		served  certificate
		change  func(*Readiness)
		want    error
		message string
	}{
		"ready":                {served: serving},
		"draining":             {served: serving, change: func(r *Readiness) { r.Draining = yes }, want: ErrDraining, message: "draining"},
		"not synced":           {served: serving, change: func(r *Readiness) { r.Synced = no }, want: ErrNotSynced, message: "caches are not synced"},
		"no certificate":       {want: ErrNoCert, message: none},
		"expired":              {served: newCertificate(t, servingName, -2*time.Hour, -time.Hour), message: expired},
		"not valid yet":        {served: newCertificate(t, servingName, time.Hour, 2*time.Hour), message: expired},
		"expires while served": {served: serving, change: func(r *Readiness) { r.Now = func() time.Time { return time.Now().Add(2 * time.Hour) } }, message: expired},
		"another name": {served: validNow(t, "other.fairlead-system.svc"),
			message: "the certificate served is not the one for " + servingName + ": x509: certificate is valid for other.fairlead-system.svc, not " + servingName},
	} {
		t.Run(name, func(t *testing.T) {
			r := &Readiness{Source: test.served, ServingName: servingName, Synced: yes, Draining: no, Now: time.Now}
			if test.change != nil {
				test.change(r)
			}
			err := r.Check()
			response := httptest.NewRecorder()
			r.ServeHTTP(response, httptest.NewRequest(http.MethodGet, "/readyz", nil))
			if test.message == "" {
				must.Do(t, err)
				must.True(t, response.Code == http.StatusOK && response.Body.String() == "ok\n", "got %d %s", response.Code, response.Body)
				return
			}
			must.Check(t, err != nil && strings.HasPrefix(err.Error(), test.message) && (test.want == nil || errors.Is(err, test.want)),
				"got %v, want %s", err, test.message)
			must.Check(t, response.Code == http.StatusServiceUnavailable && strings.HasPrefix(response.Body.String(), test.message),
				"got %d %s", response.Code, response.Body)
		})
	}
}
