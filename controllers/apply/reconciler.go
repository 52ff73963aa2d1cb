// Package apply is the settings controller: it applies the settings of the danger zone to the
// storage system's components, and rolls out the network of shared volumes. It reports the progress of each
// setting, and what the setting waits for, in status, conditions, events and metrics.
//
// A reconcile gathers one snapshot (reads.Reader.Facts), makes the plan (planner.Make), reports, and takes at most
// one step of the network and one on a component. A step is decided on the cache, and again on a live snapshot; each
// write has the state that was decided on as its precondition. A crash loses only what is kept in memory: how often a
// change was undone or refused, and when reports were written.
//
// The step of the network is planner.Plan.Network, the next work on a component planner.Plan.Next. The networks of
// clients and servers are kept in the NetworkRollout, the record, which is also a Service's memory while it is replaced.
package apply

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fairlead-io/fairlead/api/v1alpha1"
	"github.com/fairlead-io/fairlead/controllers/kit"
	"github.com/fairlead-io/fairlead/internal/longhorn"
	"github.com/fairlead-io/fairlead/internal/reads"
	"github.com/fairlead-io/fairlead/internal/settings/catalog"
	"github.com/fairlead-io/fairlead/internal/settings/planner"
	"github.com/fairlead-io/fairlead/internal/settings/rollout"
)

// Reconciler applies settings.
type Reconciler struct {
	Names longhorn.Names
	// Applies is false if the storage system applies settings by itself: Fairlead then only reports, and the
	// record follows what is observed.
	Applies bool
	// Duties as configured, for comparison with longhorn.VersionDuties.
	Duties map[string]string
	// VolumeNetworks permits per-volume networks.
	VolumeNetworks bool
	// Policy of roll-outs, from the configuration.
	Policy rollout.Policy
	Client client.Client
	Cached *reads.Reader
	Live   *reads.Reader
	// API reads the objects that are written, from the API server.
	API    client.Reader
	Events events.EventRecorder
	Clock  clock.PassiveClock
	Log    *slog.Logger

	metrics *metrics
	window  kit.Window
	// unreported counts the restarts of clients that requested the network already, by node.
	unreported map[string]int
	// watchNetworks watches networks. It is called once, when a network exists: the controller would not start
	// without the kind.
	watchNetworks func() error
	// There is one worker: the fields below need no lock.
	backoff  backoff
	refusals refusals
	// wake is when to look again without an event; 0 is never.
	wake       time.Duration
	warned     kit.Once[string, string]
	lastWrites lastWrites
	// confirmed are the last writes of `applied` to the storage system's settings.
	confirmed map[catalog.Name]string
	// inUse: a volume was attached at the last look.
	inUse bool
	// lastEvents are the conditions in the last events of settings.
	lastEvents map[string]metav1.Condition
}

// Reconcile takes at most one step of the network and one on a component.
func (r *Reconciler) Reconcile(ctx context.Context, _ ctrl.Request) (ctrl.Result, error) {
	r.wake = 0
	missing := r.ensureObjects(ctx)
	if err := r.adviseDuties(ctx); err != nil {
		return ctrl.Result{}, err
	}
	began := time.Now()
	refused, retry := r.refusals.known(r.Clock.Now())
	r.wakeIn(retry)
	facts, made, err := r.look(ctx, r.Cached, refused)
	r.window.Looked(began)
	if err != nil {
		return ctrl.Result{}, err
	}
	wrote, recordErr := r.keepRecord(ctx, facts.Rollout)
	if wrote {
		return ctrl.Result{}, nil // the new record is an event
	}
	if newlyApplied(facts, made) {
		// A cache may be stale in one kind only: Applied is reported after a live read.
		if facts, made, err = r.look(ctx, r.Live, refused); err != nil {
			return ctrl.Result{}, err
		}
	}
	r.warnUnknown(facts.SystemValues)
	// Reports come before steps: after a crash no setting is reported as applied while it changes.
	// stepLive does no work that is not reported.
	reports := r.report(ctx, facts, made)
	if reports.behind { // the change may be one that wakes no reconcile
		return ctrl.Result{RequeueAfter: time.Second}, errors.Join(missing, recordErr, reports.err())
	}
	r.wakeIn(made.After)
	due := len(r.refusals.held(facts.Now)) < len(refused)
	if _, work := made.Next(); r.Applies && (work || due || made.Network.Action != rollout.Nothing) {
		err = r.stepLive(ctx)
	}
	if err := errors.Join(missing, recordErr, reports.err(), err, r.followNetworks(facts.Rollout)); err != nil {
		return ctrl.Result{}, err // retried within mostBackoff
	}
	return ctrl.Result{RequeueAfter: r.wake}, nil
}

// wakeIn schedules a look; 0 schedules none.
func (r *Reconciler) wakeIn(after time.Duration) {
	r.wake = kit.Earliest(r.wake, after)
}

// followNetworks begins to watch networks once there are some. Before, the installation of Multus is no event.
func (r *Reconciler) followNetworks(facts rollout.Rollout) error {
	watch := r.watchNetworks
	if watch == nil {
		return nil
	}
	if len(facts.Networks) > 0 {
		r.watchNetworks = nil
		return watch()
	}
	if facts.UsesNetworks() {
		r.wakeIn(rollout.MissingNetworkRetry)
	}
	return nil
}

// newlyApplied reports whether the plan has an applied setting that was last reported as not applied.
func newlyApplied(facts planner.Facts, made planner.Plan) bool {
	return slices.ContainsFunc(made.Settings, func(s planner.SettingPlan) bool {
		last := facts.Reported[s.Name]
		return s.Applied && (!last.Applied || last.Rolled == nil || *last.Rolled != s.Value.Text)
	})
}

// look gathers a reader's facts and makes the plan. Refused writes are not planned, and components whose last change was undone
// or refused are left alone for a while.
func (r *Reconciler) look(ctx context.Context, reader *reads.Reader, refused []rollout.Refusal) (planner.Facts, planner.Plan, error) {
	facts, err := reader.Facts(ctx, reads.FactsOptions{Now: r.Clock.Now(), Policy: r.Policy, VolumeNetworks: r.VolumeNetworks})
	if err != nil {
		return facts, planner.Plan{}, err
	}
	r.backoff.forget(facts.Values)
	facts.Held = r.backoff.holds()
	facts.Rollout.Record.Refused = refused
	for _, c := range facts.Rollout.Clients {
		if c.Reaches(facts.Rollout.Record.Clients) {
			delete(r.unreported, c.Node)
		}
	}
	facts.Rollout.Restarted = maps.Clone(r.unreported)
	made := planner.Make(facts)
	if facts.Rollout.Record.Unknown { // without a record, the network takes no step
		made.Network.Action = rollout.Nothing
	}
	return facts, made, nil
}

// stepLive decides on live facts. It takes at most one step of the network and one on a component: neither delays the other.
func (r *Reconciler) stepLive(ctx context.Context) error {
	facts, made, err := r.look(ctx, r.Live, r.refusals.held(r.Clock.Now()))
	if err != nil {
		return err
	}
	r.wakeIn(made.After)
	var failed error
	if made.Network.Action != rollout.Nothing {
		failed = r.stepNetwork(ctx, facts, made)
	}
	return errors.Join(failed, r.workLive(ctx, facts, made))
}

// workLive does the next work on a component. The next look reports an error in the settings of the work.
func (r *Reconciler) workLive(ctx context.Context, facts planner.Facts, made planner.Plan) error {
	work, ready := made.Next()
	if !ready || slices.ContainsFunc(work.Settings, func(name catalog.Name) bool { return !facts.Reported[name].Underway }) {
		return nil // or the value is new and not reported yet: its event follows
	}
	err := r.do(ctx, facts, work)
	// Another write came first, and is the next event.
	if kit.IsStale(err) {
		r.Log.Info("stepped aside", "action", work.Action, "component", work.Component.Name, "error", err.Error())
		return nil
	}
	if err != nil { // a refused component delays no other
		r.backoff.record(work, facts, err)
	}
	return err
}

// ensureObjects creates the record, and Fairlead's own settings without a value, to list, to patch and to report in.
// Objects that can't be created stop no other.
func (r *Reconciler) ensureObjects(ctx context.Context) error {
	problems := []error{r.ensure(ctx, &v1alpha1.NetworkRollout{}, longhorn.Name)}
	for _, d := range catalog.All() {
		problems = append(problems, r.ensure(ctx, &v1alpha1.Setting{}, string(d.Name)))
	}
	return errors.Join(problems...)
}

// ensure creates an object of a name, unless the cache has one.
func (r *Reconciler) ensure(ctx context.Context, object client.Object, name string) error {
	err := r.Client.Get(ctx, client.ObjectKey{Namespace: r.Names.Namespace, Name: name}, object)
	if !apierrors.IsNotFound(err) {
		return err
	}
	object.SetNamespace(r.Names.Namespace)
	object.SetName(name)
	if err := r.Client.Create(ctx, object); err != nil && !apierrors.IsAlreadyExists(err) {
		return fmt.Errorf("creating %T %s: %w", object, name, err)
	}
	return nil
}

// now is the time as the API stores it, to the second.
func (r *Reconciler) now() metav1.Time { return metav1.NewTime(r.Clock.Now().Truncate(time.Second)) }
