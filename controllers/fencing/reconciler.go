package fencing

import (
	"context"
	"errors"
	"log/slog"
	"strings"
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
	"github.com/fairlead-io/fairlead/internal/cluster"
	"github.com/fairlead-io/fairlead/internal/fence"
)

// Reconciler keeps the records of nodes, and fences those that are lost. A
// request names a node.
type Reconciler struct {
	Client client.Client
	// Cached and Live read the same, from the cache and from the API server.
	Cached, Live *cluster.FenceReader
	// API reads the objects that are written, from the API server.
	API client.Reader
	// Ask is asked before a node is fenced; nil is never.
	Ask    cluster.AskStorage
	Events events.EventRecorder
	Clock  clock.PassiveClock
	Log    *slog.Logger

	// deciding is held while something is decided and done that may concern other
	// nodes too: they may have an address in common.
	deciding sync.Mutex
	metrics  *metrics
	// idle is since when there has been nothing to do in an incident, by record.
	idle sync.Map
	// undone is what went wrong, by node, when what was decided was last tried.
	undone sync.Map
	// denied is when the API server last did not let a node be marked.
	denied atomic.Pointer[time.Time]
	// left is since when volumes without attachment are used no more, by record.
	left sync.Map
	// cordoned is since when a node is, by node.
	cordoned sync.Map
	// kept are the deleted records, by UID, of which an event says why they remain.
	kept kit.Once[types.UID, bool]
}

const (
	// refresh is how often a healthy node is looked at though nothing has happened:
	// its addresses were seen just as often.
	refresh = 5 * time.Minute
	// refused is how often, at most, a refusal is looked at though nothing has happened.
	refused = 2 * time.Minute
	// lookForPods is how often a fenced node is looked at while there are pods on
	// it: pods are not watched.
	lookForPods = 5 * time.Second
	// unwatched is how often a node in an incident is looked at in any case.
	unwatched = time.Minute
	// lookForCSIAddons is how often its kinds are looked for while they are missing.
	lookForCSIAddons = 30 * time.Second
	// rounds of looking and writing in one go. An incident needs two or three; each
	// is decided anew.
	rounds = 8
	// behind is how soon it is tried again after others were faster all the time.
	behind = 200 * time.Millisecond
)

// Reconcile looks at one node name: at all machines that have or had it.
func (r *Reconciler) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	all, err := r.look(ctx, r.Cached, request.Name)
	if err != nil {
		return ctrl.Result{}, err
	}
	if len(all) == 1 && fence.Forgets(all[0].Facts.Status, all[0].Status) && all[0].routine() {
		// The cache may be late: an attachment may be gone because the node is lost.
		if all, err = r.look(ctx, r.Cached.WithLiveNode(), request.Name); err != nil {
			return ctrl.Result{}, err
		}
	}
	quiet, marks := true, false
	var after time.Duration
	for _, d := range all {
		r.seen(d)
		marks = r.marks(d) || marks
		if quiet = quiet && d.rests(); quiet {
			after = kit.Earliest(after, r.patience(d))
		}
	}
	if quiet && !marks {
		// Should the cache be behind, what it has missed is an event.
		for _, d := range all {
			r.tellKept(d)
		}
		return ctrl.Result{RequeueAfter: after}, nil
	}
	if len(all) == 1 && all[0].justLost() {
		// When many nodes are lost at once, none that is to be fenced waits for those
		// that only are to be remembered.
		if all, err = r.look(ctx, r.Cached.WithLiveNode(), request.Name); err != nil {
			return ctrl.Result{}, err
		}
	}
	if len(all) != 1 || !all[0].justLost() && (marks || !all[0].routine()) {
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
	r.tellKept(d)
	return ctrl.Result{RequeueAfter: d.after()}, err
}

// look at all machines that have or had a node's name, and decide.
func (r *Reconciler) look(ctx context.Context, from *cluster.FenceReader, node string) ([]decision, error) {
	views, err := r.views(ctx, from, node)
	var all []decision
	for _, v := range views {
		all = append(all, decide(v))
	}
	return all, err
}

// patience is when to look again at a node for which there was nothing to do. The
// longer a refusal stands, the longer it is left alone: what settles it mostly is
// an event.
func (r *Reconciler) patience(d decision) time.Duration {
	if !d.Refused {
		r.idle.Delete(d.Facts.Record)
		return d.after()
	}
	since, _ := r.idle.LoadOrStore(d.Facts.Record, d.Facts.Now)
	return min(max(d.after(), d.Facts.Now.Sub(since.(time.Time))), refused)
}

// reports are what the storage itself says of machines that are about to be fenced, by record. It is asked before other nodes
// have to wait for this node. What it does not answer is not checked: fencing goes by the ledger. asked is false
// where nothing is about to be fenced.
func (r *Reconciler) reports(ctx context.Context, live *cluster.FenceReader, node string) (reports map[string]fence.Report, asked bool, err error) {
	if r.Ask == nil {
		return nil, true, nil
	}
	all, err := r.look(ctx, live, node)
	reports = map[string]fence.Report{}
	for _, d := range all {
		if !d.asks() {
			continue
		}
		report, failed := r.Ask(ctx, d.Facts)
		if failed != nil {
			r.log(d).Warn("not all volumes could be checked for who has them open", "checked", len(report.Clients), "error", failed)
		}
		reports[d.Facts.Record], asked = report, true
	}
	return reports, asked, err
}

// incident decides on live reads, one node at a time, and does what is to be done. What is in the whole cluster is read before
// other incidents have to wait for this one.
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
			wait, more, err := r.one(ctx, view, asked, len(views) == 1)
			if err != nil {
				undone = append(undone, err)
			}
			if again = more; again {
				break // what is done, and whose record is made, follows from what is recorded
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

// one machine is decided upon, and what is decided is recorded or done. alone: no other machine has or had its name. It
// tells when to look again, or that all of the name is to be looked at again.
func (r *Reconciler) one(ctx context.Context, view *cluster.FenceView, asked, alone bool) (after time.Duration, again bool, err error) {
	d := decide(view)
	r.sayUndone(&d)
	r.seen(d)
	r.tellKept(d)
	if !asked && d.asks() {
		return behind, false, nil // it was lost just now
	}
	if d.differs() {
		err := r.write(ctx, d)
		if err != nil && !isOvertaken(err) && !apierrors.IsNotFound(err) {
			return 0, true, err
		}
		if err == nil && alone && d.onlySays() && r.mark(ctx, d) == nil {
			return r.patience(d), false, nil // what else there may be to do, the record's event brings
		}
		return 0, true, nil
	}
	if d.rests() && !r.marks(d) {
		return r.patience(d), false, nil
	}
	r.idle.Delete(d.Facts.Record)
	if err := r.do(ctx, d); isOvertaken(err) {
		return 0, true, nil
	} else if err != nil {
		r.undone.Store(d.Facts.Record, err.Error())
		return 0, false, err
	}
	_, was := r.undone.LoadAndDelete(d.Facts.Record) // the record says so no more
	return d.after(), was || d.Forget && d.Facts.Replaced, nil
}

// faster: somebody else has written what was read, so it is looked at again. That
// something is there already is no success: it may say the contrary.
func isOvertaken(err error) bool {
	return apierrors.IsConflict(err) || apierrors.IsAlreadyExists(err)
}

// sayUndone says on the record why what was decided is not done: the API server, a
// quota or another webhook does not let it. Other reasons than that something was asked
// for stay: they are read again, as what is known of the node.
func (r *Reconciler) sayUndone(d *decision) {
	if d.idle() {
		r.undone.Delete(d.Facts.Record)
		return
	}
	problem, ok := r.undone.Load(d.Facts.Record)
	if !ok {
		return
	}
	message := strings.TrimSuffix(d.Status.Message, fence.Link(d.Status.Reason)) + notDone + problem.(string) + " (it is tried again)"
	if d.Status.Reason == fence.ReasonFencing || d.Status.Reason == fence.ReasonUnfencing {
		d.Status.Reason, d.Warning = fence.ReasonWriteFailed, true
	}
	d.Status.Message = fence.Linked(message, d.Status.Reason)
}
