package endpoints

import (
	"context"
	"errors"
	"log/slog"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fairlead-io/fairlead/cluster"
	"github.com/fairlead-io/fairlead/settings"
	"github.com/fairlead-io/fairlead/storage"
)

// Reconciler publishes the addresses of one profile's volumes. A request names
// a Service, which has the name of its volume.
type Reconciler struct {
	Profile storage.Profile
	// Classic: an Endpoints object is written too.
	Classic bool
	Client  client.Client
	Cached  *cluster.Reader
	Events  events.EventRecorder
	Clock   clock.PassiveClock
	Log     *slog.Logger

	// overwritten is by Service. There is one worker.
	overwritten map[string]*overwritten
}

// Reconcile publishes what one Service's server has now.
func (r *Reconciler) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	service, err := r.Cached.ServiceObject(ctx, request.Name)
	if apierrors.IsNotFound(err) {
		delete(r.overwritten, request.Name)
		return ctrl.Result{}, nil // what it owned is collected
	}
	if err != nil {
		return ctrl.Result{}, err
	}
	after, err := r.publish(ctx, service)
	if apierrors.IsConflict(err) {
		err = nil // the cache is behind; what it has yet to see is an event
	}
	return ctrl.Result{RequeueAfter: after}, err
}

// publish returns when to look again, though nothing has happened.
func (r *Reconciler) publish(ctx context.Context, object *corev1.Service) (time.Duration, error) {
	service := r.Cached.ServiceOf(object)
	if !service.Headless() || service.Selects || service.OptOut || object.DeletionTimestamp != nil {
		return 0, errors.Join(r.deleteSlices(ctx, object.Name), r.deleteClassic(ctx, object.Name))
	}
	record, err := r.Cached.Record(ctx)
	if errors.Is(err, cluster.ErrNotRecorded) {
		record, err = settings.Record{}, nil // a Service that has its network recorded needs no more
	}
	if err != nil {
		return 0, err
	}
	servers, err := r.Cached.ServersOf(ctx, service.Volume)
	if err != nil {
		return 0, err
	}
	published := storage.Publish(service, servers, record.Clients)
	if err := r.syncSlices(ctx, object, published); err != nil {
		return 0, err
	}
	sync := r.syncClassic
	if !r.Classic {
		sync = func(ctx context.Context, service *corev1.Service, _ []storage.Published) error {
			return r.deleteClassic(ctx, service.Name)
		}
	}
	return r.tellUnreachable(object, service.Network(record.Clients), servers, published), sync(ctx, object, published)
}

// late is how long Multus may take before somebody is told.
const late = 10 * time.Second

// tellUnreachable says why a volume whose server is up can't be found.
func (r *Reconciler) tellUnreachable(object *corev1.Service, network storage.Attachment, servers []storage.Server, published []storage.Published) time.Duration {
	if len(published) > 0 {
		return 0
	}
	for _, s := range servers {
		if !s.Ready || s.Terminating {
			continue
		}
		if wait := s.Created.Add(late).Sub(r.Clock.Now()); wait > 0 {
			return wait
		}
		r.Log.Warn("nothing to publish", "service", object.Name, "pod", s.Pod, "network", network.String())
		r.Events.Eventf(object, nil, corev1.EventTypeWarning, "NoAddress", "Publish",
			"server pod %s is Ready, but Multus reports no address for it on %s; nothing is published until it does", s.Pod, network)
	}
	return 0
}
