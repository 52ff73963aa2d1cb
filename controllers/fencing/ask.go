package fencing

import (
	"context"
	"fmt"
	"sync"

	"github.com/fairlead-io/fairlead/internal/fence"
)

// askers ask the storage at a time: it may take many seconds to answer, and answers a few questions at once.
const askers = 4

// asked asks the storage about machines that are about to be fenced. No look waits for an answer: the node is in the queue again
// once there is one, and the next look decides with it.
type asked struct {
	running sync.WaitGroup
	turns   chan struct{}

	mu sync.Mutex
	// questions by record: those without an answer, and those whose answer no look has used yet.
	questions map[string]*question
}

// question about one request, and the storage's answer.
type question struct {
	requests int64
	answered bool
	report   fence.Report
}

func newAsked() *asked {
	return &asked{turns: make(chan struct{}, askers), questions: map[string]*question{}}
}

// about returns the storage's report for a decision, which no other decision uses. asking: a fence would be requested, and the
// storage has yet to answer. Without an answer in time, the report is empty, and fencing relies on the ledger.
func (a *asked) about(ctx context.Context, r *Reconciler, d decision) (report fence.Report, asking bool) {
	facts, log := d.Facts, r.log(d) // the view changes while the storage is asked
	a.mu.Lock()
	defer a.mu.Unlock()
	q := a.questions[facts.Record]
	if q != nil && q.answered {
		delete(a.questions, facts.Record)
		if q.requests == d.Spec.Requests {
			return q.report, false
		}
		q = nil
	}
	if q != nil || !d.requestsFence() {
		return fence.Report{}, d.requestsFence()
	}
	q = &question{requests: d.Spec.Requests}
	a.questions[facts.Record] = q
	a.running.Go(func() {
		a.turns <- struct{}{}
		defer func() { <-a.turns }()
		report, err := r.ask(ctx, facts)
		if q.report = report; err != nil {
			log.Warn("could not check which clients have the volumes open", "checked", len(q.report.Clients), "error", err)
		}
		a.mu.Lock()
		defer a.mu.Unlock()
		q.answered = true
		r.lookAt(facts.Node.Name)
	})
	return fence.Report{}, true
}

// ask turns a panic into an error: controller-runtime does so only within Reconcile.
func (r *Reconciler) ask(ctx context.Context, facts fence.Facts) (report fence.Report, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("panic: %v", p)
		}
	}()
	return r.Ask(ctx, facts)
}
