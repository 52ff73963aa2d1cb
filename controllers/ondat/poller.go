package ondat

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/fairlead-io/fairlead/controllers/kit"
	"github.com/fairlead-io/fairlead/internal/nfs/ondat"
	"github.com/fairlead-io/fairlead/internal/nfs/ondat/rest"
)

// maxBackOff is the longest pause after failed polls, in retry intervals.
const maxBackOff = 6

// poller asks the control plane, and fills the queue of the reconciler.
type poller struct {
	// ready is closed when queue is there.
	ready chan struct{}
	queue workqueue.TypedRateLimitingInterface[reconcile.Request]
	// failures in a row.
	failures int
	// class of the last error, and of the last error by namespace: each is logged once.
	class  string
	failed map[string]string
}

// Start polls until the context ends. It is a Runnable of the leader: it waits for
// nothing but the queue, so that the process starts though the control plane is down.
func (r *Reconciler) Start(ctx context.Context) error {
	select {
	case <-r.poller.ready:
	case <-ctx.Done():
		return nil
	}
	for {
		ids, err := r.poll(ctx)
		for _, id := range ids {
			r.poller.queue.Add(reconcile.Request{NamespacedName: types.NamespacedName{Name: id}})
		}
		timer := r.Clock.NewTimer(r.pause(err))
		select {
		case <-ctx.Done():
			timer.Stop()
			return nil
		case <-timer.C():
		}
	}
}

// pause until the next poll: the interval, or a growing one while polls fail.
func (r *Reconciler) pause(err error) time.Duration {
	if err == nil {
		r.poller.failures = 0
		return r.Options.Interval
	}
	r.poller.failures++
	return kit.Backoff(r.Options.Retry, maxBackOff*r.Options.Retry, r.poller.failures)
}

// poll lists the volumes, and returns those with news.
func (r *Reconciler) poll(ctx context.Context) ([]string, error) {
	began := r.Clock.Now()
	listing, err := r.API.Volumes(ctx)
	if err != nil {
		if class := rest.Class(err); class != r.poller.class && ctx.Err() == nil {
			r.poller.class = class
			r.Log.Warn("Ondat's volumes cannot be listed; what is published stays", "why", err.Error())
		}
		return nil, err
	}
	if r.poller.class != "" {
		r.poller.class = ""
		r.Log.Info("Ondat's volumes can be listed again")
	}
	r.logFailed(listing)
	var services corev1.ServiceList
	if err := r.Client.List(ctx, &services, client.HasLabels{ondat.VolumeIDLabel}, client.UnsafeDisableDeepCopy); err != nil {
		r.Log.Warn("the Services of Ondat's volumes cannot be listed", "why", err.Error())
		return nil, fmt.Errorf("listing Services: %w", err)
	}
	served := make(map[string]bool, len(services.Items))
	for i := range services.Items {
		served[services.Items[i].Labels[ondat.VolumeIDLabel]] = true
	}
	return r.table.update(listing, served, began, r.Clock.Now()), nil
}

// logFailed logs once which namespaces cannot be listed.
func (r *Reconciler) logFailed(listing ondat.Listing) {
	failed := map[string]string{}
	for id, err := range listing.Failed {
		failed[id] = rest.Class(err)
		if r.poller.failed[id] != failed[id] {
			r.Log.Warn("a namespace of Ondat cannot be listed; what is published of it stays", "namespace", id, "why", err.Error())
		}
	}
	r.poller.failed = failed
}
