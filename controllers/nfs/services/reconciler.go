package services

import (
	"context"
	"fmt"
	"log/slog"
	"net/netip"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fairlead-io/fairlead/api/v1alpha1"
	"github.com/fairlead-io/fairlead/controllers/kit"
	"github.com/fairlead-io/fairlead/controllers/nfs/frontend"
	"github.com/fairlead-io/fairlead/controllers/nfs/pools"
	"github.com/fairlead-io/fairlead/internal/nfs/definition"
	"github.com/fairlead-io/fairlead/internal/nfs/health"
	"github.com/fairlead-io/fairlead/internal/nfs/rpc"
	"github.com/fairlead-io/fairlead/internal/reads/nfsreads"
)

// Reconciler keeps NFSServices.
type Reconciler struct {
	Client client.Client
	// Live reads from the API server.
	Live     client.Reader
	Writer   *frontend.Writer
	Pools    *pools.Pools
	Drivers  nfsreads.Drivers
	Observer *pools.Observer
	Servers  Servers
	Events   events.EventRecorder
	Clock    clock.PassiveClock
	Log      *slog.Logger

	// parallel is how many Services of a service are written at once; 0: defaultParallel.
	parallel int
	metrics  *metrics
	prober   *rpc.Prober[probed]
	// trigger requests a pass after a while.
	trigger func(types.NamespacedName, time.Duration)

	mu     sync.Mutex
	states map[types.NamespacedName]*state
}

const (
	// gather is how long results of probes are gathered: those of one outage belong together.
	gather = 100 * time.Millisecond
	// settle is the delay before a pass is repeated because the cache was stale.
	settle = 50 * time.Millisecond
	// refused is the delay before a Service that could not be published is tried again.
	refused = 5 * time.Second
	// counting is how often numbers of nodes are written, at most.
	counting = time.Second
)

// Reconcile brings one service in line.
func (r *Reconciler) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	var service v1alpha1.NFSService
	if err := r.Client.Get(ctx, request.NamespacedName, &service); err != nil {
		if apierrors.IsNotFound(err) {
			r.forget(request.NamespacedName)
			return ctrl.Result{}, nil
		}
		return ctrl.Result{}, fmt.Errorf("reading NFSService %s: %w", request, err)
	}
	s := r.stateOf(request.NamespacedName, &service)
	if s.isStale(service.ResourceVersion) {
		return ctrl.Result{RequeueAfter: settle}, nil
	}
	p := &pass{Reconciler: r, key: request.NamespacedName, state: s, service: &service, now: r.Clock.Now()}
	after, err := p.run(ctx)
	if kit.IsConflict(err) {
		return ctrl.Result{RequeueAfter: settle}, nil // the cache is stale
	}
	return ctrl.Result{RequeueAfter: after}, err
}

// stateOf returns what is kept of a service. A recreated service starts without state.
func (r *Reconciler) stateOf(key types.NamespacedName, service *v1alpha1.NFSService) *state {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.states == nil {
		r.states = map[types.NamespacedName]*state{}
	}
	if s := r.states[key]; s != nil && s.uid == service.UID {
		return s
	}
	r.states[key] = newState(service)
	r.metrics.expect(key)
	return r.states[key]
}

func (r *Reconciler) forget(key types.NamespacedName) {
	r.mu.Lock()
	delete(r.states, key)
	r.mu.Unlock()
	r.Servers.Slices(key, "")
	r.setTargets(key, nil, definition.Service{})
	r.metrics.forget(key)
}

// observe takes the result of a probe. A probe that failed by the prober's own fault counts for nothing.
func (r *Reconciler) observe(key types.NamespacedName, backend netip.AddrPort, result rpc.Result) {
	r.metrics.probed(result)
	r.mu.Lock()
	s := r.states[key]
	r.mu.Unlock()
	if s == nil || result.Verdict == rpc.Unknown {
		return
	}
	if s.observe(health.Result{Backend: backend, At: result.Started.Add(result.Took), Error: kit.Clip(result.Message, maxError)}) {
		r.ask(key, gather)
	}
}

// maxError keeps a status with 1,000 failing backends and 4,096 slots well below
// what etcd stores (1.5 MiB). It is in bytes.
const maxError = 256
