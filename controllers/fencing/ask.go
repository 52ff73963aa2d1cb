package fencing

import (
	"context"
	"sync"

	"github.com/fairlead-io/fairlead/internal/fence"
)

// askers ask the storage at a time: it may take many seconds to answer, and answers a few questions at once.
const askers = 4

// asked asks the storage about machines that are about to be fenced. No round waits for an answer: the node is in the queue again
// once there is one, and the next round decides with it.
type asked struct {
	running sync.WaitGroup
	turns   chan struct{}

	mu sync.Mutex
	// questions by record: those without an answer, and those whose answer no round has used yet.
	questions map[string]*question
}

// question about one incident, and the storage's answer.
type question struct {
	incident string
	answered bool
	report   fence.Report
}

func newAsked() *asked {
	return &asked{turns: make(chan struct{}, askers), questions: map[string]*question{}}
}

// about returns the storage's report for a decision, which no other decision uses. asking: a fence would be requested, and the
// storage has yet to answer. Without an answer in time, the report is empty, and fencing relies on the ledger.
func (a *asked) about(ctx context.Context, r *Reconciler, d decision) (report fence.Report, asking bool) {
	facts, log := d.Facts, r.log(d) // the round changes the view while the storage is asked
	a.mu.Lock()
	defer a.mu.Unlock()
	q := a.questions[facts.Record]
	if q != nil && q.answered {
		delete(a.questions, facts.Record)
		if q.incident == d.Status.Incident {
			return q.report, false
		}
		q = nil
	}
	if q != nil || !d.requestsFence() {
		return fence.Report{}, d.requestsFence()
	}
	q = &question{incident: d.Status.Incident}
	a.questions[facts.Record] = q
	a.running.Go(func() {
		a.turns <- struct{}{}
		defer func() { <-a.turns }()
		err := guarded(func() (err error) { q.report, err = r.Ask(ctx, facts); return err })
		if err != nil {
			log.Warn("could not check which clients have the volumes open", "checked", len(q.report.Clients), "error", err)
		}
		a.mu.Lock()
		defer a.mu.Unlock()
		q.answered = true
		r.incidents.Add(facts.Node.Name)
	})
	return fence.Report{}, true
}
