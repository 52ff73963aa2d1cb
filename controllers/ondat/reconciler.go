package ondat

import (
	"cmp"
	"context"
	"log/slog"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/fairlead-io/fairlead/controllers/kit"
	"github.com/fairlead-io/fairlead/controllers/nfs/frontend"
	"github.com/fairlead-io/fairlead/internal/config"
	"github.com/fairlead-io/fairlead/internal/nfs/ondat"
)

const (
	// pause between two rounds at least: events may follow each other closely.
	pause = time.Second
	// listLimit bounds the time to list the volumes of all namespaces.
	listLimit = 30 * time.Second
	// volumeLimit bounds the work on one volume in a round.
	volumeLimit = 20 * time.Second
	// defaultParallel is how many volumes are brought in line at a time.
	defaultParallel = 16
)

// API of the control plane, as internal/nfs/ondat/rest has it.
type API interface {
	Volumes(ctx context.Context) (ondat.Listing, error)
	SetMountEndpoint(ctx context.Context, v ondat.Volume, endpoint string) error
}

// Reconciler publishes shared volumes. All of them are one request.
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

	metrics  *metrics
	parallel int
	ended    time.Time // of the last round

	// What follows is what the last round found. A new leader begins without it.

	// volumes that exist as far as is known.
	volumes []ondat.Volume
	// outcomes by the IDs of volumes.
	outcomes map[string]outcome
	// cleaned are the IDs of volumes without Endpoints of the released manager.
	cleaned sync.Map
	// failed are the errors of namespaces that could not be listed.
	failed kit.Once[string, string]
}

// Reconcile runs a round.
func (r *Reconciler) Reconcile(ctx context.Context, _ reconcile.Request) (reconcile.Result, error) {
	if wait := pause - r.Clock.Since(r.ended); wait > 0 {
		return reconcile.Result{RequeueAfter: wait}, nil
	}
	err := r.round(ctx)
	r.ended = r.Clock.Now()
	if err != nil && ctx.Err() == nil {
		r.Log.Warn("Ondat's volumes cannot be published", "why", err.Error())
	}
	return reconcile.Result{RequeueAfter: r.Config.APIPollInterval.Duration}, nil
}

// round lists the volumes, judges them, and brings the objects of each in line. While
// the control plane does not answer, the volumes of the last list count: nothing is
// withdrawn, and a Service that is deleted comes back.
func (r *Reconciler) round(ctx context.Context) error {
	began := r.Clock.Now()
	listing := r.list(ctx)
	r.volumes = listing.Merge(r.volumes)
	services, err := r.services(ctx)
	if err != nil {
		return err
	}
	findings := r.judge(listing, services)
	outcomes := make([]outcome, len(findings))
	// What is withdrawn goes first: another volume may take over the Service, or the address of the server.
	for _, served := range []bool{false, true} {
		var group errgroup.Group
		group.SetLimit(cmp.Or(r.parallel, defaultParallel))
		for i, f := range findings {
			if (f.State == ondat.Served) != served {
				continue
			}
			group.Go(func() error {
				outcomes[i] = r.bring(ctx, f, services)
				return nil
			})
		}
		_ = group.Wait()
	}
	r.outcomes = map[string]outcome{}
	for i, f := range findings {
		r.outcomes[f.ID] = outcomes[i]
	}
	r.cleaned.Range(func(id, _ any) bool {
		if _, exists := r.outcomes[id.(string)]; !exists {
			r.cleaned.Delete(id)
		}
		return true
	})
	r.metrics.count(r.outcomes, r.Clock.Since(began))
	return nil
}

// list asks the control plane, and logs what cannot be listed whenever that changes.
// The listing is empty if the control plane does not answer.
func (r *Reconciler) list(ctx context.Context) ondat.Listing {
	asking, cancel := context.WithTimeout(ctx, listLimit)
	defer cancel()
	listing, err := r.API.Volumes(asking)
	if err == nil {
		r.metrics.polled.Set(float64(r.Clock.Now().UnixMilli()) / 1000)
	} else {
		listing = ondat.Listing{Failed: map[string]error{"all": err}}
	}
	for namespace, err := range listing.Failed {
		if r.failed.IsNew(namespace, err.Error()) && ctx.Err() == nil {
			r.Log.Warn("Ondat's volumes cannot be listed; what is published stays", "namespace", namespace, "why", err.Error())
		}
	}
	r.failed.ForgetAll(func(namespace string) bool { return listing.Failed[namespace] == nil })
	return listing
}

// judge returns the shared volumes, and those that still have a Service: they may not
// be shared any more, or not exist.
func (r *Reconciler) judge(listing ondat.Listing, services services) []ondat.Finding {
	var findings []ondat.Finding
	for _, f := range ondat.Judge(r.volumes) {
		if f.State != ondat.Plain || len(services.ofVolume[f.ID]) > 0 {
			findings = append(findings, f)
		}
	}
	for id := range services.ofVolume {
		if _, listedBefore := r.outcomes[id]; !services.exists[id] && (listedBefore || listing.IsComplete()) {
			findings = append(findings, ondat.Finding{Volume: ondat.Volume{ID: id}, State: ondat.Plain})
		}
	}
	return findings
}
