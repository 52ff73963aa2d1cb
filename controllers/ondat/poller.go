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

// run polls until the context ends, and fills the queue of the reconciler. The process starts though the control plane
// is down.
func (r *Reconciler) run(ctx context.Context, queue workqueue.TypedRateLimitingInterface[reconcile.Request]) {
	for ctx.Err() == nil {
		ids, err := r.poll(ctx)
		for _, id := range ids {
			queue.Add(reconcile.Request{NamespacedName: types.NamespacedName{Name: id}})
		}
		timer := r.Clock.NewTimer(r.pause(err))
		select {
		case <-ctx.Done():
		case <-timer.C():
		}
		timer.Stop()
	}
}

// pause until the next poll: the interval, or a growing one while polls fail.
func (r *Reconciler) pause(err error) time.Duration {
	if err == nil {
		r.failures = 0
		return r.Config.APIPollInterval.Duration
	}
	r.failures++
	return kit.Backoff(r.Config.APIRetryInterval.Duration, maxBackOff*r.Config.APIRetryInterval.Duration, r.failures)
}

// poll lists the volumes, and returns those with news.
func (r *Reconciler) poll(ctx context.Context) ([]string, error) {
	began := r.Clock.Now()
	listing, err := r.API.Volumes(ctx)
	if err != nil {
		listing.Failed = map[string]error{"all": err}
	}
	if ctx.Err() == nil {
		r.logFailed(listing.Failed)
	}
	if err != nil {
		return nil, err
	}
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

// logFailed logs each namespace that cannot be listed, once for each class of errors.
func (r *Reconciler) logFailed(errs map[string]error) {
	failed := map[string]string{}
	for namespace, err := range errs {
		failed[namespace] = rest.Class(err)
		if r.failed[namespace] != failed[namespace] {
			r.Log.Warn("Ondat's volumes cannot be listed; what is published stays", "namespace", namespace, "why", err.Error())
		}
	}
	if len(r.failed) > 0 && len(failed) == 0 {
		r.Log.Info("Ondat's volumes can be listed again")
	}
	r.failed = failed
}
