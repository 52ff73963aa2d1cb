// Package settingsapi serves the settings as JSON over HTTP: values in effect, whether they
// are applied, and changes. Fairlead reads and writes with the caller's token, so that RBAC,
// the webhooks and the audit log of the API server see the caller.
package settingsapi

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/go-chi/chi/v5"
	"golang.org/x/sync/semaphore"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"

	"github.com/fairlead-io/fairlead/internal/longhorn"
)

// Options of the API.
type Options struct {
	Names longhorn.Names
	// Cluster has the address and the CA of the API server. Its credentials are not used.
	Cluster *rest.Config
	Mapper  meta.RESTMapper
	Scheme  *runtime.Scheme
	Log     *slog.Logger
}

type api struct{ Options }

// NewRouter serves the API.
func NewRouter(o Options) http.Handler {
	o.Cluster = anonymous(o.Cluster)
	a := &api{o}
	r := chi.NewRouter()
	r.NotFound(func(w http.ResponseWriter, _ *http.Request) {
		refuse(w, http.StatusNotFound, metav1.StatusReasonNotFound, "there is nothing here: GET /v1/settings lists the settings")
	})
	r.Route("/v1/settings", func(r chi.Router) {
		r.Use(atMost(concurrent))
		r.Handle("/", methods{http.MethodGet: a.list, http.MethodHead: a.list})
		r.Handle("/{name}", methods{http.MethodGet: a.get, http.MethodHead: a.get, http.MethodPut: a.put})
	})
	return r
}

// The API must never delay admission, which the same process serves. So it handles a
// limited number of requests at once, each for a limited time, and refuses the others.
const (
	concurrent     = 16
	requestTimeout = 20 * time.Second
)

// atMost limits requests of all sources together, since all callers may come through one gateway.
func atMost(n int64) func(http.Handler) http.Handler {
	places := semaphore.NewWeighted(n)
	return func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if !places.TryAcquire(1) {
				w.Header().Set("Retry-After", "1")
				refuse(w, http.StatusTooManyRequests, metav1.StatusReasonTooManyRequests, "too many requests at once: try again in a second")
				return
			}
			defer places.Release(1)
			ctx, cancel := context.WithTimeout(r.Context(), requestTimeout)
			defer cancel()
			next.ServeHTTP(w, r.WithContext(ctx))
		})
	}
}

// methods are the HTTP methods of one path.
type methods map[string]func(http.ResponseWriter, *http.Request)

func (m methods) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if handle, ok := m[r.Method]; ok {
		handle(w, r)
		return
	}
	allow := strings.Join(slices.Sorted(maps.Keys(m)), ", ")
	w.Header().Set("Allow", allow)
	refuse(w, http.StatusMethodNotAllowed, metav1.StatusReasonMethodNotAllowed, fmt.Sprintf("this takes %s", allow))
}
