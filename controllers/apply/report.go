package apply

import (
	"context"
	"errors"
	"time"

	"github.com/fairlead-io/fairlead/controllers/kit"
	"github.com/fairlead-io/fairlead/internal/settings/catalog"
	"github.com/fairlead-io/fairlead/internal/settings/planner"
	"github.com/fairlead-io/fairlead/internal/settings/rollout"
)

// report writes the plan to Fairlead's own settings and to metrics, and confirms on
// the storage system's settings what is applied. An error at one setting stops no other.
func (r *Reconciler) report(ctx context.Context, facts planner.Facts, made planner.Plan) reporting {
	plans := map[catalog.Name]planner.SettingPlan{}
	for _, s := range made.Settings {
		if !r.Applies {
			s = guarded(s)
		}
		plans[s.Name] = s
	}
	for _, d := range catalog.All() {
		if !d.DangerZone {
			plans[d.Name] = planner.SettingPlan{Name: d.Name, Value: facts.Values[d.Name], Applied: true, Phase: rollout.PhaseApplied, Message: "in effect"}
		}
	}
	var t reporting
	r.reportOwn(ctx, facts, made, plans, &t)
	step := made.Network
	if r.Applies {
		r.reportSystem(ctx, facts, plans, &t)
	} else {
		step = followed(facts.Rollout, step)
	}
	r.metrics.network(facts.Rollout, step.Phase)
	t.add(r.reportNetwork(ctx, facts.Rollout, step))
	return t
}

// reporting is the result of the reports of all settings.
type reporting struct {
	// behind: the cache is stale, and its update is an event.
	behind bool
	errs   []error
}

func (t *reporting) add(err error) {
	switch {
	case kit.IsConflict(err):
		t.behind = true
	case err != nil:
		t.errs = append(t.errs, err)
	}
}

func (t *reporting) err() error { return errors.Join(t.errs...) }

// guarded is the report if the storage system applies settings by itself.
func guarded(s planner.SettingPlan) planner.SettingPlan {
	switch {
	case s.Phase == rollout.PhaseInvalid:
	case s.Applied:
		s.Message = "applied by the storage system"
	default:
		s.Phase, s.Message = rollout.PhaseWaiting, "waiting for the storage system to apply it; "+s.Message
	}
	return s
}

// What a setting waits for changes with every attachment. A new phase is reported at once; changes
// within a phase are reported at intervals.
const (
	// eventEvery is for events, and for refused writes to the storage system's own settings:
	// each write wakes every manager.
	eventEvery = 30 * time.Second
	// statusEvery is for the status of Fairlead's own settings.
	statusEvery = 2 * time.Second
)

// lastWrites are kept in memory: a new leader writes at once.
type lastWrites map[string]lastWrite

type lastWrite struct {
	head string
	at   time.Time
}

// mayWrite reports whether to write now: at once if the head has changed, else at intervals. Otherwise the next look is
// scheduled for the end of the interval.
func (r *Reconciler) mayWrite(what, head string, every time.Duration) bool {
	now := r.Clock.Now()
	last, written := r.lastWrites[what]
	if left := last.at.Add(every).Sub(now); written && last.head == head && left > 0 {
		r.wakeIn(left)
		return false
	}
	if r.lastWrites == nil {
		r.lastWrites = lastWrites{}
	}
	r.lastWrites[what] = lastWrite{head, now}
	return true
}
