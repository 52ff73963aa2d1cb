package apply

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/fairlead-io/fairlead/controllers/kit"
	"github.com/fairlead-io/fairlead/internal/settings/catalog"
	"github.com/fairlead-io/fairlead/internal/settings/planner"
)

// backoff delays further changes of a component whose change was undone or refused: Fairlead does
// not fight another writer, and a refusal delays no other component. It is kept in memory.
type backoff map[string]attempt

type attempt struct {
	planner.Hold
	// values in effect when the change was made
	values            map[catalog.Name]string
	changes, refusals int
	// failed are the refusals of the last change for each setting.
	failed map[catalog.Name]failure
}

// failure is why a change for a value was refused.
type failure struct{ value, message string }

// pauses after the first change, the second and so on. The last pause repeats.
var pauses = []time.Duration{10 * time.Second, time.Minute, 10 * time.Minute, time.Hour}

// afterRefusal is the longest pause after a refusal: the cause may end at any time.
const afterRefusal = time.Minute

// record keeps a piece of work and its result.
func (b *backoff) record(work planner.Work, facts planner.Facts, refused error) {
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
	failed := maps.Clone(a.failed) // other settings keep theirs
	maps.DeleteFunc(failed, func(name catalog.Name, _ failure) bool { _, changed := values[name]; return changed })
	if !overlap(a.Wants, wants) {
		a = attempt{} // another change
	}
	a.Wants, a.values = wants, values
	if refused != nil {
		a.refusals++
		if failed == nil {
			failed = map[catalog.Name]failure{}
		}
		for name, value := range values {
			failed[name] = failure{value, refused.Error()}
		}
		a.Seen, a.Until = "", now.Add(min(pauses[min(a.refusals, len(pauses))-1], afterRefusal))
		a.Message = fmt.Sprintf("can't be changed: %s; tried again at %s", kit.Note(refused.Error()), timeOfDay(a.Until))
	} else {
		a.changes, a.refusals = a.changes+1, 0
		a.Seen, a.Until = work.Component.Seen(), now.Add(pauses[min(a.changes, len(pauses))-1])
		a.Message = fmt.Sprintf("is as it was before Fairlead changed it (%s): something else writes it: the storage system, an installer, a webhook or policy, a LimitRange, or a node selector of the namespace; tried again at %s",
			catalog.Count(a.changes, "time"), timeOfDay(a.Until))
	}
	a.failed = failed
	(*b)[work.Component.Name] = a
}

// forget drops changes for values that are no longer in effect: the storage system may undo them.
func (b backoff) forget(values catalog.Values) {
	maps.DeleteFunc(b, func(_ string, a attempt) bool {
		maps.DeleteFunc(a.failed, func(name catalog.Name, f failure) bool { return values[name].Text != f.value })
		for name, text := range a.values {
			if values[name].Text != text {
				return true
			}
		}
		return false
	})
}

// lastError is why a change for the setting was refused: success at another component, or of another setting, does not
// clear it.
func (b backoff) lastError(setting catalog.Name) string {
	for _, component := range slices.Sorted(maps.Keys(b)) {
		if f, refused := b[component].failed[setting]; refused {
			return f.message
		}
	}
	return ""
}

// overlap reports whether two changes share a trait: part of the first may have lasted.
func overlap(a, b map[catalog.Trait]string) bool {
	for trait, want := range a {
		if other, ok := b[trait]; ok && other == want {
			return true
		}
	}
	return false
}

// holds are the changed components, which the plan leaves alone.
func (b backoff) holds() map[string]planner.Hold {
	held := make(map[string]planner.Hold, len(b))
	for name, a := range b {
		held[name] = a.Hold
	}
	return held
}

func timeOfDay(t time.Time) string { return t.UTC().Format("15:04:05 MST") }
