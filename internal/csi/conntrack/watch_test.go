package conntrack

import (
	"bytes"
	"context"
	"encoding/json"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/fairlead-io/fairlead/internal/testkit/must"
)

// asked says when it is asked for deletions.
type asked chan []netip.AddrPort

func (a asked) Delete(to []netip.AddrPort, _ func(Entry) bool) (int, error) {
	select {
	case a <- to:
	default:
	}
	return 0, nil
}

// A node plugin may start before its node reaches the API server.
func TestWatchWaitsForTheAPIServer(t *testing.T) {
	var up atomic.Bool
	refused, once := make(chan struct{}), sync.Once{}
	s, e := service("a", 2049, "10.96.0.1"), slice("a", 2049, endpoint("10.0.0.1"))
	lists := map[string]any{
		"services":       &corev1.ServiceList{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "ServiceList"}, Items: []corev1.Service{s}},
		"endpointslices": &discoveryv1.EndpointSliceList{TypeMeta: metav1.TypeMeta{APIVersion: "discovery.k8s.io/v1", Kind: "EndpointSliceList"}, Items: []discoveryv1.EndpointSlice{e}},
	}
	api := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !up.Load() {
			once.Do(func() { close(refused) })
			panic(http.ErrAbortHandler)
		}
		w.Header().Set("Content-Type", "application/json")
		switch {
		case r.URL.Query().Get("sendInitialEvents") == "true":
			w.WriteHeader(http.StatusUnprocessableEntity)
			_ = json.NewEncoder(w).Encode(metav1.Status{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}, Status: metav1.StatusFailure, Reason: metav1.StatusReasonInvalid, Code: http.StatusUnprocessableEntity})
		case r.URL.Query().Get("watch") == "true":
			w.(http.Flusher).Flush()
			<-r.Context().Done()
		default:
			_ = json.NewEncoder(w).Encode(lists[r.URL.Path[strings.LastIndex(r.URL.Path, "/")+1:]])
		}
	}))
	defer api.Close()
	metrics, err := NewMetrics(prometheus.NewRegistry())
	must.Do(t, err)
	deletions, ended := make(asked, 1), make(chan error, 1)
	var messages bytes.Buffer
	ctx, stop := context.WithCancel(t.Context())
	defer func() {
		stop()
		api.CloseClientConnections()
		must.Do(t, <-ended)
		if messages.Len() > 0 {
			t.Errorf("it logs %s", messages.String())
		}
	}()
	go func() {
		ended <- Watch(ctx, &rest.Config{Host: api.URL, ContentConfig: rest.ContentConfig{ContentType: "application/json"}}, &Cleaner{Table: deletions, Log: slog.New(slog.NewTextHandler(&messages, nil)), Metrics: metrics})
	}()
	select {
	case <-refused:
	case err := <-ended:
		ended <- nil
		t.Fatalf("the watch ended before it asked: %v", err)
	}
	must.Equal(t, value(t, metrics.looked), 0, "before the API server answers")
	up.Store(true)
	select {
	case to := <-deletions:
		must.Equal(t, to, []netip.AddrPort{address})
	case err := <-ended:
		ended <- nil
		t.Fatalf("the watch ended: %v", err)
	case <-time.After(time.Minute):
		t.Fatal("connections are not looked at")
	}
}
