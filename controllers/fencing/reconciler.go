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

	"github.com/fairlead-io/fairlead/controllers/kit"
	"github.com/fairlead-io/fairlead/internal/cluster/fencing"
	"github.com/fairlead-io/fairlead/internal/fence"
)

// Reconciler keeps the records of nodes and fences lost nodes. A request names a node.
type Reconciler struct {
	Client client.Client
	// Cached and Live read the same, from the cache and from the API server.
	Cached, Live *fencing.FenceReader
	// Held tells which nodes get or lose an attachment.
	Held *fencing.Holdings
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
	// denied is when the API server last denied a mark.
	denied atomic.Pointer[time.Time]
	// left is since when volumes without attachment are unused, by record.
	left sync.Map
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
	if errors.Is(err, errBehind) || errors.Is(err, fencing.ErrNotSynced) {
		return ctrl.Result{RequeueAfter: behind}, nil
	}
	return result, err
}

// reconcile decides on the cache as long as there is nothing to do, or only a ledger or a loss to record; else on live reads.
func (r *Reconciler) reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	all, err := r.look(ctx, r.Cached, request.Name)
	if err != nil {
		return ctrl.Result{}, err
	}
	quiet, marks := true, false
	var after time.Duration
	for _, d := range all {
		r.observe(d)
		r.requestReports(ctx, d)
		marks = r.needsMark(d) || marks
		quiet = quiet && d.isSettled()
		after = kit.Earliest(after, d.requeueAfter())
	}
	if quiet && !marks {
		// If the cache is stale, an event follows.
		for _, d := range all {
			r.reportKept(d)
		}
		return ctrl.Result{RequeueAfter: after}, nil
	}
	if len(all) == 1 {
		d := all[0]
		if known, err := r.isKnown(ctx, d, marks); err != nil {
			return ctrl.Result{}, err
		} else if known {
			return r.record(ctx, d)
		}
	}
	return r.incident(ctx, request.Name)
}

// isKnown reports whether a decision on the cache may be recorded. A stale cache may hide that the node is lost, and that an
// attachment is gone for that reason. So the Node is compared with a live read before a loss is recorded or a volume forgotten.
// Losses do not wait for the decisions of incidents: many nodes may be lost at once.
func (r *Reconciler) isKnown(ctx context.Context, d decision, marks bool) (bool, error) {
	switch {
	case d.isRoutine() && !marks && !fence.Forgets(d.Facts.Status, d.Status):
		return true, nil
	case d.Node == nil, !d.isJustLost() && (marks || !d.isRoutine()):
		return false, nil
	}
	var now corev1.Node
	if err := r.API.Get(ctx, client.ObjectKeyFromObject(d.Node), &now); err != nil {
		return false, client.IgnoreNotFound(err)
	}
	return !fencing.FenceNodeChanged(d.Node, &now), nil
}

// record writes the record, or the mark that follows from the record.
func (r *Reconciler) record(ctx context.Context, d decision) (ctrl.Result, error) {
	var err error
	if d.differs() {
		err = r.write(ctx, d)
	} else {
		err = r.mark(ctx, d)
	}
	if isOvertaken(err) || apierrors.IsNotFound(err) {
		return ctrl.Result{RequeueAfter: behind}, nil // the cache is behind
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

// reports returns what the storage reports of machines about to be fenced, by record. The storage is asked before
// other nodes have to wait for this node. Without an answer, fencing relies on the ledger. asked is false if
// nothing is about to be fenced.
func (r *Reconciler) reports(ctx context.Context, node string) (reports map[string]fence.Report, asked bool, err error) {
	if r.Ask == nil {
		return nil, true, nil
	}
	all, err := r.look(ctx, r.Live, node)
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

// incident decides on live reads, one node at a time, and acts.
func (r *Reconciler) incident(ctx context.Context, node string) (ctrl.Result, error) {
	reports, asked, err := r.reports(ctx, node)
	if err != nil {
		return ctrl.Result{}, err
	}
	r.deciding.Lock()
	defer r.deciding.Unlock()
	for range rounds {
		views, err := r.views(ctx, r.Live, node)
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
			return d.requeueAfter(), false, nil // the record's event leads to what else there is to do
		}
		return 0, true, nil
	}
	if d.isSettled() && !r.needsMark(d) {
		return d.requeueAfter(), false, nil
	}
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
