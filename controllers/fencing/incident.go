package fencing

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"time"

	"golang.org/x/sync/errgroup"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/util/workqueue"

	"github.com/fairlead-io/fairlead/controllers/kit"
	"github.com/fairlead-io/fairlead/internal/reads/fencingreads"
)

// An incident is decided on in rounds: each reads once what all its nodes share, decides on each node, and carries the decisions
// out side by side. A rack that is lost takes little longer than a node.

const (
	// atOnce is how many nodes of a round are read, and written, side by side.
	atOnce = 16
	// mostNodes of a round: its snapshot gets older while it is carried out.
	mostNodes = 64
	// gather is how long a round waits for more nodes: a rack is not lost in one event.
	gather = 20 * time.Millisecond
	// phaseTimeout is for an API server that does not answer. The snapshot of a round has one, and each node has its own.
	phaseTimeout = 30 * time.Second
	// longestRetry is the longest pause after an error.
	longestRetry = 30 * time.Second
)

func newIncidentQueue() workqueue.TypedRateLimitingInterface[string] {
	return workqueue.NewTypedRateLimitingQueueWithConfig(
		workqueue.NewTypedItemExponentialFailureRateLimiter[string](behind, longestRetry), workqueue.TypedRateLimitingQueueConfig[string]{Name: "fencing-incidents"})
}

// runIncidents runs rounds until the context ends.
func (r *Reconciler) runIncidents(ctx context.Context) error {
	go func() { <-ctx.Done(); r.incidents.ShutDown() }()
	for {
		first, ended := r.incidents.Get()
		if ended {
			return nil
		}
		time.Sleep(gather)
		r.roundOf(ctx, first)
	}
}

// outcome of a round for one node.
type outcome struct {
	// after is when to look again; 0: never without an event.
	after time.Duration
	err   error
}

func (o *outcome) add(p outcome) {
	o.after, o.err = kit.Earliest(o.after, p.after), errors.Join(o.err, p.err)
}

// roundOf runs a round for a node and others that are in the queue.
func (r *Reconciler) roundOf(ctx context.Context, first string) map[string]outcome {
	names := []string{first}
	for r.incidents.Len() > 0 && len(names) < mostNodes {
		if name, ended := r.incidents.Get(); !ended {
			names = append(names, name)
		}
	}
	all := r.round(ctx, names)
	for _, name := range names {
		o := all[name]
		switch {
		case errors.Is(o.err, errBehind), errors.Is(o.err, fencingreads.ErrNotSynced):
			o = outcome{after: behind}
			r.incidents.AddAfter(name, behind)
		case o.err != nil:
			if ctx.Err() == nil {
				r.metrics.errors.Inc()
				r.Log.Error("could not decide on a node, or carry the decision out; it is tried again", "node", name, "error", o.err)
			}
			r.incidents.AddRateLimited(name)
		default:
			r.incidents.Forget(name)
			if o.after > 0 && o.after < refresh { // Reconcile looks at least every refresh
				r.incidents.AddAfter(name, o.after)
			}
		}
		r.incidents.Done(name)
		all[name] = o
	}
	return all
}

// round decides on nodes by one snapshot.
func (r *Reconciler) round(ctx context.Context, names []string) map[string]outcome {
	reading, cancel := context.WithTimeout(ctx, phaseTimeout)
	defer cancel()
	var now *fencingreads.FenceReader
	failed := guarded(func() (err error) { now, err = r.Reader.Snapshot(reading, names); return err })
	var group errgroup.Group
	group.SetLimit(atOnce)
	all, taken := make([]outcome, len(names)), newTaken()
	for n, name := range names {
		group.Go(func() error {
			err := failed
			if err == nil {
				err = guarded(func() error { return r.one(ctx, now, name, taken, &all[n]) })
			}
			all[n].add(outcome{err: err})
			return nil
		})
	}
	_ = group.Wait()
	byName := map[string]outcome{}
	for n, name := range names {
		byName[name] = all[n]
	}
	return byName
}

// one decides on the machines of a name, and carries the decisions out.
func (r *Reconciler) one(ctx context.Context, now *fencingreads.FenceReader, name string, taken *taken, o *outcome) error {
	working, cancel := context.WithTimeout(ctx, phaseTimeout)
	defer cancel()
	views, err := r.views(working, now, name)
	if err != nil {
		return err
	}
	for _, view := range views {
		r.requestReports(working, view)
	}
	for _, d := range r.choose(ctx, views, name, taken, o) { // the storage is asked for longer than the round takes
		o.add(r.act(working, d, len(views) == 1))
	}
	return nil
}

// guarded turns a panic into an error: one odd object must not keep other nodes from being fenced.
func guarded(do func() error) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("panic: %v\n%s", p, debug.Stack())
		}
	}()
	return do()
}

// choose decides on the machines of a name, the earliest first, and returns the decisions to record or to carry out. What is
// decided on the later machines depends on the records of the others.
func (r *Reconciler) choose(ctx context.Context, views []*fencingreads.FenceView, name string, taken *taken, o *outcome) (chosen []decision) {
	for _, view := range views {
		d := decide(view)
		if r.Ask != nil {
			view.Facts.Report, view.Facts.Asking = r.asked.about(ctx, r, d)
			d = decide(view)
		}
		r.reportKept(d)
		if d.isSettled() {
			o.after = kit.Earliest(o.after, d.requeueAfter())
			continue
		}
		if !taken.by(name, d.addresses()) {
			o.after = behind
			break
		}
		if chosen = append(chosen, d); d.differs() {
			break
		}
	}
	return chosen
}

// act records a decision, and carries out what then follows from the record. alone: no other machine has or had the name.
func (r *Reconciler) act(ctx context.Context, d decision, alone bool) outcome {
	if d.differs() {
		err := r.write(ctx, d)
		switch {
		case isOvertaken(err), apierrors.IsNotFound(err):
			return outcome{after: behind}
		case err != nil:
			return outcome{err: err}
		case !alone:
			return outcome{after: behind} // the records of the name decide together
		}
		if d = decide(d.FenceView); d.differs() {
			return outcome{after: behind}
		}
	}
	if err := r.do(ctx, d); isOvertaken(err) {
		return outcome{after: behind}
	} else if err != nil {
		return outcome{err: errors.Join(err, r.recordError(ctx, d.FenceView, err))}
	}
	forgot := d.Forget && d.Record != nil && d.Record.DeletionTimestamp == nil
	if d.Status.LastError != "" || forgot && d.Facts.Replaced {
		return outcome{after: behind}
	}
	return outcome{after: d.requeueAfter()}
}

// isOvertaken reports whether another write came first, or the Node has changed. An existing object is no success either:
// it may say the contrary.
func isOvertaken(err error) bool {
	return kit.IsConflict(err) || apierrors.IsAlreadyExists(err) || errors.Is(err, errChanged)
}

// mostError is the longest error that a record keeps, in bytes: a webhook may deny at any length.
const mostError = 1 << 10

// recordError records why the API server, a quota or another webhook refuses the writes of a decision.
func (r *Reconciler) recordError(ctx context.Context, view *fencingreads.FenceView, refused error) error {
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
