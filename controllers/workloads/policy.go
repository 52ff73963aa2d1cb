package workloads

import (
	"context"
	"fmt"
	"strings"
	"time"

	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fairlead-io/fairlead/api/v1alpha1"
	"github.com/fairlead-io/fairlead/internal/reads"
	"github.com/fairlead-io/fairlead/internal/rwx"
	"github.com/fairlead-io/fairlead/internal/settings/catalog"
	"github.com/fairlead-io/fairlead/internal/settings/rollout"
)

// policy gathers the facts that do not depend on the node.
func (r *Reconciler) policy(ctx context.Context) (rwx.Restarts, error) {
	object, err := r.Cached.RolloutObject(ctx)
	if err != nil {
		return rwx.Restarts{}, err
	}
	record, err := reads.RecordOf(object)
	if err != nil {
		return rwx.Restarts{}, err
	}
	own, system, err := r.Cached.Values(ctx)
	if err != nil {
		return rwx.Restarts{}, err
	}
	mounting, err := r.mounting(ctx, object, rollout.MountPlace(system, r.Names))
	if err != nil {
		return rwx.Restarts{}, err
	}
	values := catalog.Resolve(own, system)
	return rwx.Restarts{
		Driver: r.Names.Driver,
		// A malformed value is off: a typing error restarts no pod.
		Enabled:   catalog.IsOn(values[catalog.AutoDeletePod].Text),
		Blacklist: catalog.Kinds(values[catalog.AutoDeletePodBlacklist].Text),
		Applied:   record.Clients, Mounting: mounting,
		Paused:     object.Annotations[rwx.RestartsAnnotation] == rwx.RestartsPaused,
		DeadMounts: r.DeadMounts, OnRequest: r.OnRequest, Now: r.Clock.Now(),
	}, nil
}

// mounting is where clients mount volumes, and since when. A change is recorded before any pod is
// judged by it, so that the next leader has it too.
func (r *Reconciler) mounting(ctx context.Context, cached *v1alpha1.NetworkRollout, place rwx.MountPlace) (rwx.Mounting, error) {
	known := reads.MountingOf(cached)
	r.mu.Lock()
	missed := r.missed
	r.mu.Unlock()
	if known.Next(place, time.Time{}) == known && missed == (rwx.Mounting{}) {
		return known, nil
	}
	now := r.Clock.Now().Truncate(time.Microsecond)
	err := retry.RetryOnConflict(retry.DefaultRetry, func() error {
		var object v1alpha1.NetworkRollout
		if err := r.Live.Get(ctx, client.ObjectKeyFromObject(cached), &object); err != nil {
			return err
		}
		before := reads.MountingOf(&object)
		known = before
		if missed.Since.After(before.Since) {
			known = known.Next(missed.Place, missed.Since)
		}
		if known = known.Next(place, now); known == before {
			return nil
		}
		reads.SetMounting(&object, known)
		return r.Client.Status().Update(ctx, &object)
	})
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case err == nil:
		r.missed = rwx.Mounting{}
	case missed == (rwx.Mounting{}):
		r.missed = rwx.Mounting{Place: place, Since: now}
	case missed.Place != place:
		r.missed.Place = rwx.InEither // it changed again before it could be recorded
	}
	if err != nil {
		return known, fmt.Errorf("recording where CSI plugin pods mount volumes: %w", err)
	}
	return known, nil
}

// policyKey changes when pods have to be judged again. It leaves out the time.
func policyKey(p rwx.Restarts) string {
	return fmt.Sprint(p.Enabled, strings.Join(p.Blacklist, ";"), p.Applied, p.OnRequest, p.Paused, p.Mounting.Place, p.Mounting.Since.UnixMicro())
}
