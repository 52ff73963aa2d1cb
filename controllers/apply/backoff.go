package apply

import (
	"fmt"
	"maps"
	"time"

	"github.com/fairlead-io/fairlead/controllers/kit"
	"github.com/fairlead-io/fairlead/internal/settings/catalog"
	"github.com/fairlead-io/fairlead/internal/settings/plan"
)

// backoff keeps components from being changed again soon when a change did not
// last or was refused: whoever undoes it is not fought, and a refusal keeps no other
// component from its turn. It is kept in memory: a new leader starts slowly again.
type backoff map[string]attempt

type attempt struct {
	plan.Hold
	// values in effect that it was made for
	values            map[catalog.Name]string
	changes, refusals int
}

// pauses after the first change, the second and so on; the last for all that follow.
var pauses = []time.Duration{10 * time.Second, time.Minute, 10 * time.Minute, time.Hour}

// afterRefusal is the longest pause after a refusal: the cause may be mended any time.
const afterRefusal = time.Minute

// made remembers a piece of work, and how it went.
func (b *backoff) made(work plan.Work, facts plan.Facts, refused error) {
	now := facts.Now
	if *b == nil {
		*b = backoff{}
	}
	maps.DeleteFunc(*b, func(_ string, a attempt) bool { return now.Sub(a.Until) > pauses[len(pauses)-1] })
	wants, values := map[catalog.Trait]string{}, map[catalog.Name]string{}
	for trait, want := range work.Wants {
		wants[trait], values[want.Setting] = want.Text, facts.Values[want.Setting].Text
	}
	a := (*b)[work.Component.Name]
	if !overlap(a.Wants, wants) {
		a = attempt{} // the change is another one
	}
	a.Wants, a.values = wants, values
	if refused != nil {
		a.refusals++
		a.Seen, a.Until = "", now.Add(min(pauses[min(a.refusals, len(pauses))-1], afterRefusal))
		a.Message = fmt.Sprintf("can't be changed: %s; tried again at %s", kit.Note(refused.Error()), timeOfDay(a.Until))
	} else {
		a.changes, a.refusals = a.changes+1, 0
		a.Seen, a.Until = work.Component.Seen(), now.Add(pauses[min(a.changes, len(pauses))-1])
		a.Message = fmt.Sprintf("is as it was before Fairlead changed it (%s): something else writes it, like the storage system, an installer or a webhook; tried again at %s",
			catalog.Count(a.changes, "time"), timeOfDay(a.Until))
	}
	(*b)[work.Component.Name] = a
}

// forget drops what was done for a value that is no longer in effect. The storage system may undo
// such a change without Fairlead, and does not fight it by that.
func (b backoff) forget(values catalog.Values) {
	maps.DeleteFunc(b, func(_ string, a attempt) bool {
		for name, text := range a.values {
			if values[name].Text != text {
				return true
			}
		}
		return false
	})
}

// overlap tells whether two changes have one in common: a part of the first may have lasted.
func overlap(a, b map[catalog.Trait]string) bool {
	for trait, want := range a {
		if other, ok := b[trait]; ok && other == want {
			return true
		}
	}
	return false
}

// holds are the components that were changed, for the plan to leave alone.
func (b backoff) holds() map[string]plan.Hold {
	held := make(map[string]plan.Hold, len(b))
	for name, a := range b {
		held[name] = a.Hold
	}
	return held
}

func timeOfDay(t time.Time) string { return t.UTC().Format("15:04:05 MST") }
