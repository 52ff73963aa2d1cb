//go:build !race

// The race detector allocates on its own account.

package webhook_test

import (
	"bytes"
	"context"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/fairlead-io/fairlead/bench/sample"
	"github.com/fairlead-io/fairlead/internal/config"
	"github.com/fairlead-io/fairlead/internal/longhorn"
	"github.com/fairlead-io/fairlead/internal/multus"
	"github.com/fairlead-io/fairlead/internal/settings/rollout"
	"github.com/fairlead-io/fairlead/internal/testkit/must"
	"github.com/fairlead-io/fairlead/webhook"
	"github.com/fairlead-io/fairlead/webhook/admission"
)

// discard is the least that an http.ResponseWriter can be.
type discard struct {
	header http.Header
	status int
}

func (d *discard) Header() http.Header         { return d.header }
func (d *discard) WriteHeader(status int)      { d.status = status }
func (d *discard) Write(p []byte) (int, error) { return len(p), nil }

// Allocations, unlike times, are the same on every machine, so the target for
// them is a test.
func TestA12KBPodCostsAtMost64Allocations(t *testing.T) {
	const most = 64
	configuration, err := config.Load("")
	must.Do(t, err)
	network := multus.Attachment{Network: multus.Network{Namespace: "kube-system", Name: "storage-net"}, Interface: "lhnet2"}
	rules := &webhook.Longhorn{
		Names:  longhorn.DefaultNames(),
		Duties: configuration.Longhorn.Duties,
		Record: func(context.Context) (rollout.Record, error) { return rollout.Record{Clients: network}, nil },
	}
	log := slog.New(slog.NewJSONHandler(io.Discard, nil)) // info, as in production
	router := webhook.NewRouter(rules, nil, nil, admission.NewMetrics(prometheus.NewRegistry()), log)
	review, err := sample.ClientPodReview(12_400, nil)
	must.Do(t, err)
	request := httptest.NewRequest(http.MethodPost, "/mutate/longhorn/client-pods?timeout=5s", nil)
	request.Header.Set("Content-Type", "application/json")
	body := bytes.NewReader(review)
	request.Body, request.ContentLength = io.NopCloser(body), int64(len(review))

	recorder := httptest.NewRecorder()
	router.ServeHTTP(recorder, request)
	must.True(t, strings.Contains(recorder.Body.String(), `"patch":`), "got %d %s, want a patch: else there is nothing to measure", recorder.Code, recorder.Body)
	answer := &discard{header: http.Header{}, status: http.StatusOK}
	allocations := testing.AllocsPerRun(100, func() {
		body.Reset(review)
		request.Body = io.NopCloser(body)
		router.ServeHTTP(answer, request)
	})
	must.Equal(t, answer.status, http.StatusOK, "status")
	must.Check(t, allocations <= most, "got %.0f allocations, want at most %d", allocations, most)
	t.Logf("%.0f allocations", allocations)
}
