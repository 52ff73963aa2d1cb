package rollout

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fairlead-io/fairlead/controllers/kit"
	"github.com/fairlead-io/fairlead/internal/cluster"
	"github.com/fairlead-io/fairlead/internal/settings/catalog"
	"github.com/fairlead-io/fairlead/internal/settings/rollout"
	"github.com/fairlead-io/fairlead/internal/storage"
)

// Reconciler rolls out the network of shared volumes of one profile.
type Reconciler struct {
	Profile storage.Profile
	// Applies is false if the storage system rolls out by itself: the record then follows what is
	// observed, and nothing is changed.
	Applies bool
	// VolumeNetworks permits per-volume networks.
	VolumeNetworks bool
	// Policy of roll-outs, from the configuration.
	Policy rollout.Policy
	Client client.Client
	Cached *cluster.Reader
	Live   *cluster.Reader
	Events events.EventRecorder
	Clock  clock.PassiveClock
	Log    *slog.Logger

	restarts *prometheus.CounterVec
	window   kit.Window
	// There is one worker: refusals need no lock.
	refusals refusals
	// reported is when the status was last written.
	reported time.Time
	// watchNetworks watches networks. It is called once, when the kind is known to be installed:
	// the controller would not start without the kind.
	watchNetworks func() error
}

// Reconcile takes at most one step.
func (r *Reconciler) Reconcile(ctx context.Context, _ ctrl.Request) (ctrl.Result, error) {
	if err := r.ensureRecord(ctx); err != nil {
		return ctrl.Result{}, err
	}
	record, err := r.Cached.Record(ctx)
	if errors.Is(err, cluster.ErrNotRecorded) {
		return ctrl.Result{}, r.adopt(ctx)
	}
	if errors.Is(err, cluster.ErrMalformedRecord) { // its correction is an event
		return ctrl.Result{}, r.reportMalformed(ctx, err)
	}
	if err != nil {
		return ctrl.Result{}, err
	}
	if resumed, err := r.resumeReplacing(ctx, record); resumed || err != nil {
		return ctrl.Result{}, err
	}
	began := time.Now()
	facts, err := r.gather(ctx, r.Cached, record)
	r.window.Looked(began)
	if err != nil {
		return r.orReportInvalid(ctx, err)
	}
	if !r.Applies {
		return r.follow(ctx, facts)
	}
	step := rollout.Next(facts)
	if step.Action != rollout.Nothing {
		if facts, step, err = r.stepLive(ctx); err != nil {
			return r.orReportInvalid(ctx, err)
		}
	}
	switch step.Action {
	case rollout.RecordClients, rollout.RecordServers, rollout.RecordVolumeClients, rollout.RecordVolumeServers:
		return ctrl.Result{}, nil // the new record is an event
	}
	after, err := r.reportRollout(ctx, facts, step)
	if kit.IsConflict(err) {
		return ctrl.Result{}, nil // the cache is stale, and its update is an event
	}
	_, retry := r.refusals.held(r.Clock.Now())
	return ctrl.Result{RequeueAfter: kit.Earliest(after, step.After, retry, r.untilKindIsLookedFor(facts))}, err
}

// untilKindIsLookedFor: without Multus no network can be watched, and its installation is no event.
func (r *Reconciler) untilKindIsLookedFor(facts rollout.Rollout) time.Duration {
	if r.watchNetworks == nil || !facts.UsesNetworks() {
		return 0
	}
	return 30 * time.Second
}

// resumeReplacing completes the replacement of a Service that an earlier leader began. With a stale
// cache, the Service may exist already. While the API server refuses the Service, other work goes on.
func (r *Reconciler) resumeReplacing(ctx context.Context, record rollout.Record) (resumed bool, _ error) {
	if record.Replacing == "" {
		return false, nil
	}
	if held, _ := r.refusals.held(r.Clock.Now()); slices.ContainsFunc(held, func(h rollout.Refusal) bool {
		return h.Kind == catalog.BlockedByService && h.Name == record.Replacing
	}) {
		return false, nil
	}
	err := r.finishReplacing(ctx)
	switch {
	case kit.IsConflict(err): // the conflicting write is an event
		r.Log.Info("stepped aside", "action", rollout.ReplaceServices, "error", err.Error())
		return true, nil
	case kit.IsRefused(err):
		r.refuse(catalog.BlockedByService, r.serviceNamed(record.Replacing), err)
		return false, nil
	case err == nil:
		r.refusals.remove(catalog.BlockedByService, record.Replacing)
	}
	return true, err
}

// gather reads the values in effect and the facts.
func (r *Reconciler) gather(ctx context.Context, reader *cluster.Reader, record rollout.Record) (rollout.Rollout, error) {
	own, system, err := reader.Values(ctx)
	if err != nil {
		return rollout.Rollout{}, err
	}
	values := catalog.Resolve(own, system, r.Profile.Name)
	facts, err := reader.Rollout(ctx, values, record, r.Clock.Now())
	facts.Policy = r.Policy
	facts.Record.Refused, _ = r.refusals.held(r.Clock.Now())
	if err == nil {
		err = r.gatherRequests(ctx, reader, &facts)
	}
	return facts, err
}

// stepLive decides on live facts and does the step.
func (r *Reconciler) stepLive(ctx context.Context) (rollout.Rollout, rollout.Step, error) {
	record, err := r.Live.Record(ctx)
	if err != nil {
		return rollout.Rollout{}, rollout.Step{}, err
	}
	facts, err := r.gather(ctx, r.Live, record)
	if err != nil {
		return facts, rollout.Step{}, err
	}
	step := rollout.Next(facts)
	if step.Action == rollout.Nothing {
		return facts, step, nil
	}
	r.Log.Info("next step", "action", step.Action, "network", step.Network.String(), "message", step.Message, "volumes", step.Volumes.Message)
	kind, object := r.written(facts, step)
	err = r.do(ctx, facts, step)
	switch {
	case err == nil:
		if object != nil {
			r.refusals.remove(kind, object.GetName())
		}
		return facts, step, nil
	case kit.IsStale(err): // another write came first, and is the next event
		r.Log.Info("stepped aside", "action", step.Action, "error", err.Error())
		return facts, step, nil
	case object != nil && kit.IsRefused(err): // other work goes on
		r.refuse(kind, object, err)
		facts.Record.Refused, _ = r.refusals.held(r.Clock.Now())
		step = rollout.Next(facts)
		step.Action, step.After = rollout.Nothing, afterRefusal
		return facts, step, nil
	}
	return facts, step, fmt.Errorf("%s: %w", step.Action, err)
}

// written is the object that a step writes; nil is the record.
func (r *Reconciler) written(facts rollout.Rollout, step rollout.Step) (catalog.BlockerKind, client.Object) {
	switch step.Action {
	case rollout.UpdateTemplate, rollout.ResumeTemplate:
		return catalog.BlockedByDaemonSet, &appsv1.DaemonSet{ObjectMeta: metav1.ObjectMeta{Namespace: r.Profile.Namespace, Name: facts.DaemonSet.Name}}
	case rollout.RestartClients:
		c := step.Clients[0]
		return catalog.BlockedByClient, &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: r.Profile.Namespace, Name: c.Pod, UID: types.UID(c.UID)}}
	case rollout.ReplaceServices:
		s := step.Services[0]
		service := r.serviceNamed(s.Name)
		service.UID = types.UID(s.UID)
		return catalog.BlockedByService, service
	}
	return "", nil
}

func (r *Reconciler) serviceNamed(name string) *corev1.Service {
	return &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: r.Profile.Namespace, Name: name}}
}

// orReportInvalid reports an invalid value, and returns any other error.
func (r *Reconciler) orReportInvalid(ctx context.Context, err error) (ctrl.Result, error) {
	if !errors.Is(err, catalog.ErrInvalidValue) {
		return ctrl.Result{}, err
	}
	record, recordErr := r.Cached.Record(ctx)
	if recordErr != nil {
		return ctrl.Result{}, recordErr
	}
	step := rollout.Step{Phase: rollout.PhaseInvalid, Message: fmt.Sprintf("not applied until the value is corrected: %v", err)}
	after, err := r.reportRollout(ctx, rollout.Rollout{Record: record}, step)
	return ctrl.Result{RequeueAfter: after}, err
}

// now is the time as the API stores it, to the microsecond.
func (r *Reconciler) now() time.Time { return r.Clock.Now().Truncate(time.Microsecond) }
