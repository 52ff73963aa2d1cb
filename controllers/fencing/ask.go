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
	// asking are the records with an open question, and answers those that no round has used yet.
	asking  map[string]bool
	answers map[string]answer
}

// answer of the storage about one incident.
type answer struct {
	incident string
	report   fence.Report
}

func newAsked() *asked {
	return &asked{turns: make(chan struct{}, askers), asking: map[string]bool{}, answers: map[string]answer{}}
}

// about returns the storage's report for a decision, which no other decision uses. asking: a fence would be requested, and the
// storage has yet to answer. Without an answer in time, the report is empty, and fencing relies on the ledger.
func (a *asked) about(ctx context.Context, r *Reconciler, d decision) (report fence.Report, asking bool) {
	facts, log := d.Facts, r.log(d) // the round changes the view while the storage is asked
	a.mu.Lock()
	defer a.mu.Unlock()
	got, answered := a.answers[facts.Record]
	delete(a.answers, facts.Record)
	switch {
	case answered && got.incident == d.Status.Incident:
		return got.report, false
	case !d.requestsFence():
		return fence.Report{}, false
	case a.asking[facts.Record]:
		return fence.Report{}, true
	}
	a.asking[facts.Record] = true
	a.running.Go(func() {
		a.turns <- struct{}{}
		defer func() { <-a.turns }()
		got := answer{incident: d.Status.Incident}
		err := guarded(func() (err error) { got.report, err = r.Ask(ctx, facts); return err })
		if err != nil {
			log.Warn("could not check which clients have the volumes open", "checked", len(got.report.Clients), "error", err)
		}
		a.mu.Lock()
		defer a.mu.Unlock()
		delete(a.asking, facts.Record)
		a.answers[facts.Record] = got
		r.incidents.Add(facts.Node.Name)
	})
	return fence.Report{}, true
}
