package fencing

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fairlead-io/fairlead/controllers/kit"
	"github.com/fairlead-io/fairlead/internal/cluster/fencing"
	"github.com/fairlead-io/fairlead/internal/fence"
)

// Reconciler keeps the records of nodes and fences lost nodes. A request names a node.
type Reconciler struct {
	Client client.Client
	// Cached and Live read the same, from the cache and from the API server.
	Cached, Live *fencing.FenceReader
	// API reads the objects that are written, from the API server.
	API client.Reader
	// Ask asks the storage before a node is fenced; nil asks nothing.
	Ask    fencing.AskStorage
	Events events.EventRecorder
	Clock  clock.PassiveClock
	Log    *slog.Logger

	// deciding is held while a decision is made and done that may concern other nodes: nodes
	// may share an address.
	deciding sync.Mutex
	metrics  *metrics
	// idle is since when an incident has had nothing to do, by record.
	idle sync.Map
	// denied is when the API server last denied a mark.
	denied atomic.Pointer[time.Time]
	// left is since when volumes without attachment are unused, by record.
	left sync.Map
	// cordoned is since when a node is cordoned, by node.
	cordoned sync.Map
	// started is when this controller made its first look.
	started atomic.Pointer[time.Time]
	// seen is the last state of each Node, by name.
	seen sync.Map
	// kept are the deleted records, by UID, of which an event says why they remain.
	kept kit.Once[types.UID, bool]
}

const (
	// refresh is how often a healthy node is checked without an event. Its addresses are
	// recorded as seen just as often.
	refresh = 5 * time.Minute
	// refused is how often, at most, a refusal is checked without an event.
	refused = 2 * time.Minute
	// lookForPods is how often a fenced node with pods is checked: pods are not watched.
	lookForPods = 5 * time.Second
	// unwatched is how often a node in an incident is checked in any case.
	unwatched = time.Minute
	// lookForCSIAddons is how often missing kinds of csi-addons are looked for.
	lookForCSIAddons = 30 * time.Second
	// rounds is how often one reconcile looks, decides and writes. An incident needs two or three.
	rounds = 8
	// behind is how soon to retry after a write met a stale cache.
	behind = 200 * time.Millisecond
)

// Reconcile looks at all machines that have or had one node name.
func (r *Reconciler) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	result, err := r.reconcile(ctx, request)
	if errors.Is(err, errBehind) {
		return ctrl.Result{RequeueAfter: behind}, nil
	}
	return result, err
}

func (r *Reconciler) reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	all, err := r.look(ctx, r.Cached, request.Name)
	if err != nil {
		return ctrl.Result{}, err
	}
	if len(all) == 1 && fence.Forgets(all[0].Facts.Status, all[0].Status) && all[0].isRoutine() {
		// A stale cache may hide that the node is lost, and that its attachment is gone for that reason.
		if all, err = r.look(ctx, r.Cached.WithLiveNode(), request.Name); err != nil {
			return ctrl.Result{}, err
		}
	}
	quiet, marks := true, false
	var after time.Duration
	for _, d := range all {
		r.observe(d)
		r.requestReports(ctx, d)
		marks = r.needsMark(d) || marks
		if quiet = quiet && d.isSettled(); quiet {
			after = kit.Earliest(after, r.idleRequeue(d))
		}
	}
	if quiet && !marks {
		// If the cache is stale, an event follows.
		for _, d := range all {
			r.reportKept(d)
		}
		return ctrl.Result{RequeueAfter: after}, nil
	}
	if len(all) == 1 && all[0].isJustLost() {
		// When many nodes are lost at once, nodes to fence must not wait for nodes to record.
		if all, err = r.look(ctx, r.Cached.WithLiveNode(), request.Name); err != nil {
			return ctrl.Result{}, err
		}
	}
	if len(all) != 1 || !all[0].isJustLost() && (marks || !all[0].isRoutine()) {
		return r.incident(ctx, request.Name)
	}
	d := all[0]
	r.idle.Delete(d.Facts.Record)
	if d.differs() {
		err = r.write(ctx, d)
		if isOvertaken(err) || apierrors.IsNotFound(err) {
			return ctrl.Result{RequeueAfter: behind}, nil // the cache is behind
		}
	} else if err = r.mark(ctx, d); isOvertaken(err) {
		return ctrl.Result{RequeueAfter: behind}, nil
	}
	r.reportKept(d)
	return ctrl.Result{RequeueAfter: d.requeueAfter()}, err
}

// look decides on all machines that have or had a node's name.
func (r *Reconciler) look(ctx context.Context, from *fencing.FenceReader, node string) ([]decision, error) {
	views, err := r.views(ctx, from, node)
	var all []decision
	for _, v := range views {
		all = append(all, decide(v))
	}
	return all, err
}

// idleRequeue is when to look again at a node without work. The longer a refusal lasts, the longer
// the pause: what ends a refusal is mostly an event.
func (r *Reconciler) idleRequeue(d decision) time.Duration {
	if !d.Refused {
		r.idle.Delete(d.Facts.Record)
		return d.requeueAfter()
	}
	since, _ := r.idle.LoadOrStore(d.Facts.Record, d.Facts.Now)
	return min(max(d.requeueAfter(), d.Facts.Now.Sub(since.(time.Time))), refused)
}

// reports returns what the storage reports of machines about to be fenced, by record. The storage is asked before
// other nodes have to wait for this node. Without an answer, fencing relies on the ledger. asked is false if
// nothing is about to be fenced.
func (r *Reconciler) reports(ctx context.Context, live *fencing.FenceReader, node string) (reports map[string]fence.Report, asked bool, err error) {
	if r.Ask == nil {
		return nil, true, nil
	}
	all, err := r.look(ctx, live, node)
	reports = map[string]fence.Report{}
	for _, d := range all {
		if !d.asksForFence() {
			continue
		}
		report, failed := r.Ask(ctx, d.Facts)
		if failed != nil {
			r.log(d).Warn("could not check which clients have the volumes open", "checked", len(report.Clients), "error", failed)
		}
		reports[d.Facts.Record], asked = report, true
	}
	return reports, asked, err
}

// incident decides on live reads, one node at a time, and acts. What concerns the whole cluster is read before other
// incidents have to wait.
func (r *Reconciler) incident(ctx context.Context, node string) (ctrl.Result, error) {
	live, err := r.Live.ForIncident(ctx)
	if err != nil {
		return ctrl.Result{}, err
	}
	reports, asked, err := r.reports(ctx, live, node)
	if err != nil {
		return ctrl.Result{}, err
	}
	r.deciding.Lock()
	defer r.deciding.Unlock()
	if live, err = live.Renewed(ctx); err != nil {
		return ctrl.Result{}, err
	}
	for range rounds {
		views, err := r.views(ctx, live, node)
		if err != nil {
			return ctrl.Result{}, err
		}
		var after time.Duration
		var undone []error
		again := false
		for _, view := range views {
			view.Facts.Report = reports[view.Facts.Record]
			wait, more, err := r.decideOne(ctx, view, asked, len(views) == 1)
			if err != nil {
				undone = append(undone, err)
			}
			if again = more; again {
				break // later decisions depend on the record
			}
			after = kit.Earliest(after, wait)
		}
		if len(undone) > 0 {
			return ctrl.Result{}, errors.Join(undone...)
		}
		if !again {
			return ctrl.Result{RequeueAfter: after}, nil
		}
	}
	return ctrl.Result{RequeueAfter: behind}, nil
}

// decideOne decides on one machine, and records the decision or carries it out. alone: no other machine has or had the
// name. The results are when to look again, and whether to look again at all machines of the name at once.
func (r *Reconciler) decideOne(ctx context.Context, view *fencing.FenceView, asked, alone bool) (after time.Duration, again bool, err error) {
	d := decide(view)
	r.observe(d)
	r.reportKept(d)
	if !asked && d.asksForFence() {
		return behind, false, nil // the node was lost after the storage was asked
	}
	if d.differs() {
		err := r.write(ctx, d)
		if err != nil && !isOvertaken(err) && !apierrors.IsNotFound(err) {
			return 0, true, err
		}
		if err == nil && alone && d.onlyReports() && r.mark(ctx, d) == nil {
			return r.idleRequeue(d), false, nil // the record's event leads to what else there is to do
		}
		return 0, true, nil
	}
	if d.isSettled() && !r.needsMark(d) {
		return r.idleRequeue(d), false, nil
	}
	r.idle.Delete(d.Facts.Record)
	if err := r.do(ctx, d); isOvertaken(err) {
		return 0, true, nil
	} else if err != nil {
		return 0, false, errors.Join(err, r.recordError(ctx, view, err))
	}
	return d.requeueAfter(), d.Status.LastError != "" || d.Forget && d.Facts.Replaced, nil
}

// isOvertaken reports whether another write came first. An existing object is no success either:
// it may say the contrary.
func isOvertaken(err error) bool {
	return kit.IsConflict(err) || apierrors.IsAlreadyExists(err)
}

// mostError is the longest error that a record keeps, in bytes: a webhook may deny at any length.
const mostError = 1 << 10

// recordError records why the API server, a quota or another webhook refuses the writes of a decision.
func (r *Reconciler) recordError(ctx context.Context, view *fencing.FenceView, refused error) error {
	view.Facts.Status.LastError = kit.Clip(refused.Error(), mostError)
	d := decide(view)
	if d.Status.LastError == "" {
		return nil // only the record was to be written
	}
	err := r.write(ctx, d)
	if isOvertaken(err) || apierrors.IsNotFound(err) {
		return nil // the next look records it
	}
	return err
}
