// Package endpoints publishes the addresses of headless Services: only of the pods that serve a
// volume on its storage network.
//
// rwx.Publish decides what to publish. This package writes EndpointSlices, one per IP family,
// which kube-proxy and DNS read, and a classic Endpoints object for readers of the old API, with a
// label that keeps Kubernetes from mirroring it into slices.
//
// The Service owns both. Kubernetes publishes Services with a selector or a cluster IP: earlier
// objects of Fairlead are deleted. If the duty is off, Releaser returns the volumes to Longhorn.
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

	"github.com/fairlead-io/fairlead/controllers/kit"
	"github.com/fairlead-io/fairlead/internal/longhorn"
	"github.com/fairlead-io/fairlead/internal/multus"
	"github.com/fairlead-io/fairlead/internal/reads"
	"github.com/fairlead-io/fairlead/internal/rwx"
)

// Reconciler publishes the addresses of volumes. A request names
// a Service, which has the name of its volume.
type Reconciler struct {
	Names longhorn.Names
	// Classic writes an Endpoints object too.
	Classic bool
	Client  client.Client
	Cached  *reads.Reader
	// DeadMounts are looked for, so those who are left behind by a server that moves are kept.
	DeadMounts bool
	// Live reads from the API server.
	Live   client.Reader
	Events events.EventRecorder
	Clock  clock.PassiveClock
	Log    *slog.Logger

	// overwritten is by Service. There is one worker.
	overwritten map[string]*overwritten
}

// Reconcile publishes the present addresses of one Service's server.
func (r *Reconciler) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	service, err := r.Cached.ServiceObject(ctx, request.Name)
	if apierrors.IsNotFound(err) {
		delete(r.overwritten, request.Name)
		return ctrl.Result{}, nil // its objects are garbage-collected
	}
	if err != nil {
		return ctrl.Result{}, err
	}
	after, err := r.publish(ctx, service)
	if kit.IsConflict(err) {
		err = nil // the cache is stale, and its update is an event
	}
	return ctrl.Result{RequeueAfter: after}, err
}

// publish returns when to look again without an event.
func (r *Reconciler) publish(ctx context.Context, object *corev1.Service) (time.Duration, error) {
	service := r.Cached.ServiceOf(object)
	switch {
	case object.DeletionTimestamp != nil:
		return 0, nil // its objects are garbage-collected
	case !service.Headless() || service.Selects: // Kubernetes publishes it
		return r.release(ctx, object.Name)
	}
	var clients multus.Attachment
	if service.Recorded.IsZero() {
		record, err := r.Cached.Record(ctx)
		if errors.Is(err, reads.ErrNotRecorded) {
			return 0, nil // the network is unknown until the record is adopted: nothing is written or deleted
		}
		if err != nil {
			return 0, err
		}
		clients = record.Clients
	}
	network := service.Network(clients)
	if service.OptOut || network.IsZero() {
		return r.release(ctx, object.Name)
	}
	servers, err := r.Cached.ServersOf(ctx, service.Volume)
	if err != nil {
		return 0, err
	}
	if err := r.Cached.FindClashes(ctx, servers); err != nil {
		return 0, err
	}
	published := rwx.Publish(service, servers, clients)
	err = r.syncSlices(ctx, object, published)
	if r.Classic {
		err = errors.Join(err, r.syncClassic(ctx, object, published))
	} else {
		err = errors.Join(err, r.leaveClassic(ctx, object.Name))
	}
	return r.reportUnreachable(object, network, servers, published), err
}

// release returns a published volume to the storage system.
func (r *Reconciler) release(ctx context.Context, service string) (time.Duration, error) {
	published := false
	for _, family := range families {
		s, err := r.ownSlice(ctx, reads.SliceName(service, family))
		if err != nil {
			return 0, err
		}
		published = published || s != nil
	}
	have, err := r.classic(ctx, service)
	if err != nil || !published && (have == nil || !touched(have)) {
		return 0, err
	}
	done, err := r.releaser().Service(ctx, service)
	if err != nil || done {
		return 0, err
	}
	return releaseRetry, nil
}

func (r *Reconciler) releaser() *Releaser {
	return &Releaser{Names: r.Names, Client: r.Client, Live: r.Live, Log: r.Log}
}

// late is how long Multus may take before an event reports a missing address.
const late = 10 * time.Second

// clashRetry is how soon a server is looked at again whose address another pod has.
const clashRetry = 30 * time.Second

// reportUnreachable reports why a volume with a Ready server has no address.
func (r *Reconciler) reportUnreachable(object *corev1.Service, network multus.Attachment, servers []rwx.Server, published []rwx.Published) time.Duration {
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
		if s.Clash.Older {
			r.Events.Eventf(object, nil, corev1.EventTypeWarning, "AddressClash", "Publish",
				"server pod %s has an address on %s that the older pod %s has too: nothing is published. The network's ipam assigns addresses twice, as host-local does with one range on every node", s.Pod, network, s.Clash.Pod)
			return clashRetry // the other pod's end is no event of this Service
		}
		r.Log.Warn("nothing to publish", "service", object.Name, "pod", s.Pod, "network", network.String())
		r.Events.Eventf(object, nil, corev1.EventTypeWarning, "NoAddress", "Publish",
			"server pod %s is Ready, but Multus reports no address of the pod on %s: nothing is published until Multus reports one", s.Pod, network)
	}
	return 0
}
