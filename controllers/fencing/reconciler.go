package fencing

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fairlead-io/fairlead/api/v1alpha1"
	"github.com/fairlead-io/fairlead/controllers/kit"
	"github.com/fairlead-io/fairlead/internal/fence"
	"github.com/fairlead-io/fairlead/internal/reads/fencingreads"
)

// Reconciler keeps the records of all boots. A request names a node.
type Reconciler struct {
	Client client.Client
	Reader *fencingreads.FenceReader
	// Held tells which nodes get or lose an attachment, and which are in an incident.
	Held *fencingreads.Holdings
	// API reads the objects that are written, from the API server.
	API client.Reader
	// Ask asks the storage before a node is fenced; nil asks nothing.
	Ask    fencingreads.AskStorage
	Events events.EventRecorder
	Clock  clock.PassiveClock
	Log    *slog.Logger

	asked   *asked
	metrics *metrics
	// lookAt adds a node to the queue.
	lookAt func(node string)
	// started is when this controller made its first look.
	started atomic.Pointer[time.Time]
	// seen is the last state of each Node, by name.
	seen sync.Map
	// heartbeats are fence.Heartbeats of nodes that are awaited, by name.
	heartbeats sync.Map
	// kept are the deleted records, by UID, of which an event says why they remain.
	kept kit.Once[types.UID, bool]
}

const (
	// refresh is how often a healthy node is checked without an event. Its addresses are
	// recorded as seen just as often.
	refresh = 5 * time.Minute
	// lookForPods is how often a fenced node with pods is checked: pods are not watched.
	lookForPods = 5 * time.Second
	// unwatched is how often a node in an incident is checked in any case.
	unwatched = time.Minute
	// lookForCSIAddons is how often missing kinds of csi-addons are looked for.
	lookForCSIAddons = 30 * time.Second
	// behind is how soon to look again after a write that met a stale cache, or that others must be seen with.
	behind = 200 * time.Millisecond
	// lookTimeout is for an API server that does not answer.
	lookTimeout = 30 * time.Second
	// longestRetry is the longest pause after an error.
	longestRetry = 30 * time.Second
)

// Reconcile looks at all boots that have or had one node name. The cache suffices as long as there is nothing to do, or only what a
// working node has is to be recorded. Else the node is read live, and what it shares with others as well.
func (r *Reconciler) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	working, cancel := context.WithTimeout(ctx, lookTimeout)
	defer cancel()
	after, known, err := r.routine(working, request.Name)
	if err == nil && !known {
		after, err = r.live(ctx, working, request.Name)
	}
	if errors.Is(err, errBehind) || errors.Is(err, fencingreads.ErrNotSynced) || isOvertaken(err) || apierrors.IsNotFound(err) {
		return ctrl.Result{RequeueAfter: behind}, nil
	}
	return ctrl.Result{RequeueAfter: after}, err
}

// routine decides on the cache. known is false if that does not suffice.
func (r *Reconciler) routine(ctx context.Context, node string) (after time.Duration, known bool, err error) {
	if r.Held.InIncident(node) {
		return 0, false, nil
	}
	views, err := r.views(ctx, r.Reader, node)
	if err != nil {
		return 0, true, err
	}
	if len(views) == 0 {
		r.forgetDeleted(node)
		return 0, true, nil
	}
	if len(views) > 1 || !views[0].Quiet() || views[0].Unread != nil {
		return 0, false, nil
	}
	d := decide(views[0])
	r.requestReports(ctx, d.FenceView)
	if !d.isSettled() {
		if known, err := r.isKnown(ctx, d); err != nil || !known {
			return 0, false, err
		}
		if d.differs() {
			if err := r.remember(ctx, d); err != nil {
				return 0, true, err
			}
			d = decide(d.FenceView)
		}
		if err := r.writeStatus(ctx, d); err != nil {
			return 0, true, err
		}
	}
	r.reportKept(d)
	return d.requeueAfter(), true, nil
}

// isKnown reports whether a decision on the cache may be recorded: only what a working node has changes. A stale cache may
// hide that the node is lost, and that an attachment is gone for that reason. So the Node is compared with a live read before a
// volume is forgotten.
func (r *Reconciler) isKnown(ctx context.Context, d decision) (bool, error) {
	if d.Status.Phase != v1alpha1.NodeHealthy || d.Forget || d.Consumed || !d.hasNoActions() || d.needsMark() || d.Record != nil && d.Record.DeletionTimestamp != nil {
		return false, nil
	}
	if !fence.Forgets(d.Facts.Spec, d.Spec) {
		return true, nil
	}
	var now corev1.Node
	if err := r.API.Get(ctx, client.ObjectKeyFromObject(d.Node), &now); err != nil {
		return false, client.IgnoreNotFound(err)
	}
	return !fencingreads.FenceNodeChanged(d.Node, &now), nil
}

// steps that one look takes at most: a record is written, and what follows from it is done.
const steps = 4

// live decides on live reads. asking outlives the look: the storage is asked for longer than it takes.
func (r *Reconciler) live(asking, ctx context.Context, node string) (after time.Duration, err error) {
	now, unread := r.Reader.Live(ctx)
	if unread != nil {
		now = r.Reader // the memory does not wait for what only a fence needs
	}
	views, err := r.views(ctx, now, node)
	if err != nil {
		return 0, errors.Join(unread, err)
	}
	var problems []error // of one boot, which delay no other
	for _, view := range views {
		if view.Unread = errors.Join(unread, view.Unread); view.Unread != nil {
			problems = append(problems, view.Unread, r.onlyRemember(ctx, view))
			continue
		}
		r.requestReports(ctx, view)
		next, err := r.carryOut(asking, ctx, now, view, len(views) == 1)
		after, problems = kit.Earliest(after, next), append(problems, err)
	}
	return after, joinProblems(problems)
}

// onlyRemember records what the Node shows, and forgets nothing.
func (r *Reconciler) onlyRemember(ctx context.Context, view *fencingreads.FenceView) error {
	d := decision{view, fence.Remember(view.Facts)}
	if !d.differs() {
		return nil
	}
	return r.remember(ctx, d)
}

// carryOut records what is decided on one boot, and does what follows from the record. alone: no other boot has or had the name.
func (r *Reconciler) carryOut(asking, ctx context.Context, now *fencingreads.FenceReader, view *fencingreads.FenceView, alone bool) (time.Duration, error) {
	for range steps {
		view.Facts.Report, view.Facts.Asking = fence.Report{}, false
		d := decide(view)
		if r.Ask != nil {
			view.Facts.Report, view.Facts.Asking = r.asked.about(asking, r, d)
			d = decide(view)
		}
		r.reportKept(d)
		if d.isSettled() {
			return d.requeueAfter(), nil
		}
		done, ok := now.Take(view.Facts.Node.Name, d.addresses())
		if !ok {
			return behind, nil
		}
		defer done() // all steps of the look are on record then
		if d.differs() {
			if err := r.remember(ctx, d); err != nil {
				return 0, err
			}
			if !alone {
				return behind, nil
			}
			continue
		}
		refused := r.do(ctx, d)
		if isOvertaken(refused) {
			return 0, refused
		}
		if d.Forget && refused == nil {
			if d.Record != nil && d.Record.DeletionTimestamp != nil {
				return 0, nil // it ends with the last finalizer
			}
			return behind, nil
		}
		view.Tried, view.LastError = true, ""
		if refused != nil {
			view.LastError = kit.Clip(refused.Error(), mostError)
		}
		d.finish(view)
		if err := errors.Join(refused, r.writeStatus(ctx, d)); err != nil {
			return 0, err
		}
		return d.requeueAfter(), nil
	}
	return behind, nil
}

// isOvertaken reports whether another write came first, or the Node has changed. An existing object is no success either: it may say the contrary.
func isOvertaken(err error) bool {
	return kit.IsConflict(err) || apierrors.IsAlreadyExists(err) || errors.Is(err, errChanged)
}

// mostError is the longest error that a record keeps, in bytes: a webhook may deny at any length.
const mostError = 1 << 10
