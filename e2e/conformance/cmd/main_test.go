package main

import (
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/fairlead-io/fairlead/internal/testkit/must"
)

func TestReportOfFailingWebhook(t *testing.T) {
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusTeapot) }))
	defer server.Close()
	file := filepath.Join(t.TempDir(), "request.json")
	must.Do(t, os.WriteFile(file, []byte(`{"kind":"AdmissionReview","request":{"uid":"a","object":{"kind":"Pod"}}}`), 0o600))
	var out strings.Builder
	ok, err := options{url: server.URL, request: file, insecure: true, senders: 1, pid: 0, while: "true"}.run(t.Context(), &out)
	must.Do(t, err)
	if ok || !strings.Contains(out.String(), "FAIL     answers with the request's UID") || !strings.Contains(out.String(), "While the command ran: ") {
		t.Errorf("%t\n%s", ok, out.String())
	}
	for _, o := range []options{{}, {url: server.URL, request: "absent.json"}, {url: server.URL, request: file, ca: file}} {
		if _, err := o.run(t.Context(), io.Discard); err == nil {
			t.Errorf("%+v: no error", o)
		}
	}
}
