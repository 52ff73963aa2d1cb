package ondat

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/fairlead-io/fairlead/controllers/kit"
	"github.com/fairlead-io/fairlead/controllers/nfs/frontend"
	"github.com/fairlead-io/fairlead/internal/config"
	"github.com/fairlead-io/fairlead/internal/nfs/ondat"
)

// API of the control plane, as internal/nfs/ondat/rest has it.
type API interface {
	Volumes(ctx context.Context) (ondat.Listing, error)
	Volume(ctx context.Context, namespaceID, id string) (ondat.Volume, error)
	SetMountEndpoint(ctx context.Context, v ondat.Volume, endpoint string) error
}

// Reconciler publishes shared volumes. Its requests name volumes by their ID.
type Reconciler struct {
	Config config.Ondat
	API    API
	// Client reads from the cache, Live from the API server.
	Client client.Client
	Live   client.Reader
	// Writer of Services and slices.
	Writer *frontend.Writer
	Events events.EventRecorder
	Clock  clock.Clock
	Log    *slog.Logger

	table   *table
	metrics *metrics
	// failures of polls in a row.
	failures int
	// failed are the namespaces that could not be listed last, with the class of the error.
	failed map[string]string
}

// again is the delay before a state that ends by itself is checked again.
const again = time.Second

// behind is the delay after a conflict: the cache was stale.
const behind = 50 * time.Millisecond

// Reconcile brings one volume in line. The request's name is the volume's ID.
func (r *Reconciler) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	defer func() {
		if took, last := r.table.done(request.Name, r.Clock.Now()); last {
			r.metrics.rounds.Observe(took.Seconds())
		}
	}()
	f, ok := r.table.find(request.Name)
	if !ok {
		return reconcile.Result{}, nil // not listed yet, or of another control plane
	}
	ctx, cancel := context.WithTimeout(ctx, r.Config.K8sCreateWaitDuration.Duration)
	defer cancel()
	after, err := r.reconcile(ctx, f)
	if kit.IsConflict(err) {
		return ctrl.Result{RequeueAfter: behind}, nil // the cache is stale: an event follows
	}
	return ctrl.Result{RequeueAfter: after}, err
}

func (r *Reconciler) reconcile(ctx context.Context, f ondat.Finding) (time.Duration, error) {
	switch f.State {
	case ondat.Served:
		after, err := r.serve(ctx, f)
		if why := (ondat.Refusal{}); errors.As(err, &why) {
			return 0, r.ignore(ctx, f, why)
		}
		return after, err
	case ondat.Ignored:
		return 0, r.ignore(ctx, f, f.Why)
	}
	err := r.withdraw(ctx, f)
	if err == nil && f.State == ondat.NotServed { // else it is gone, or without the labels of a shared volume
		f, err = r.clearLabel(ctx, f)
	}
	if err != nil {
		return 0, err
	}
	r.table.settle(f, r.Clock.Now(), outcome{phase: notServed})
	return 0, nil
}
