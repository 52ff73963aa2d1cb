package apply

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/fairlead-io/fairlead/controllers/kit"
	"github.com/fairlead-io/fairlead/internal/settings/catalog"
	"github.com/fairlead-io/fairlead/internal/settings/plan"
	"github.com/fairlead-io/fairlead/internal/settings/rollout"
)

const (
	// firstRefusal doubles with each refusal of a write, up to mostRefusal: the cause may end at any time.
	firstRefusal = 5 * time.Second
	mostRefusal  = time.Minute
	// workAfterRefusal is when other work goes on.
	workAfterRefusal = time.Second
)

// refusals are the writes that the API server refused lately. They are kept in memory, and written into
// the record for users and for other readers of the roll-out.
type refusals []refused

type refused struct {
	rollout.Refusal
	times int
	next  time.Time
}

// add keeps a refused write, and reports whether the answer is new.
func (l *refusals) add(now time.Time, kind catalog.BlockerKind, name string, err error) (isNew bool) {
	was := l.remove(kind, name)
	refusal := rollout.Refusal{Kind: kind, Name: name, Message: kit.Note(err.Error())}
	times := was.times + 1
	*l = append(*l, refused{refusal, times, now.Add(kit.Backoff(firstRefusal, mostRefusal, times))})
	return refusal != was.Refusal
}

// remove forgets a write that was done, or is not wanted any more.
func (l *refusals) remove(kind catalog.BlockerKind, name string) (was refused) {
	var left refusals
	for _, r := range *l {
		if r.Kind == kind && r.Name == name {
			was = r
		} else {
			left = append(left, r)
		}
	}
	*l = left
	return was
}

// known are the refused writes, and when the next of them is to be tried or forgotten; 0 is never. A write that was due long ago
// is not wanted any more.
func (l *refusals) known(now time.Time) (known []rollout.Refusal, next time.Duration) {
	for _, r := range append(refusals(nil), *l...) {
		left := r.next.Sub(now)
		if left <= 0 {
			left += mostRefusal
		}
		if left <= 0 {
			l.remove(r.Kind, r.Name)
			continue
		}
		known, next = append(known, r.Refusal), kit.Earliest(next, left)
	}
	return known, next
}

// held are the refused writes that are not tried now.
func (l *refusals) held(now time.Time) (held []rollout.Refusal) {
	for _, r := range *l {
		if r.next.After(now) {
			held = append(held, r.Refusal)
		}
	}
	return held
}

// refuse keeps a refused write of an object. The client has reported the answer at the object.
func (r *Reconciler) refuse(kind catalog.BlockerKind, name string, err error) {
	if r.refusals.add(r.Clock.Now(), kind, name, err) {
		r.Log.Warn("a write was refused", "kind", kind, "object", name, "error", err.Error())
	}
}

// backoff delays further changes of a component whose change was undone or refused: Fairlead does
// not fight another writer, and a refusal delays no other component. It is kept in memory.
type backoff map[string]attempt

type attempt struct {
	plan.Hold
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
func (b *backoff) record(work plan.Work, facts plan.Facts, refused error) {
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
		a.Message = fmt.Sprintf("is as it was before Fairlead changed it (%s): something else writes it, like the storage system, an installer or a webhook; tried again at %s",
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
func (b backoff) holds() map[string]plan.Hold {
	held := make(map[string]plan.Hold, len(b))
	for name, a := range b {
		held[name] = a.Hold
	}
	return held
}

func timeOfDay(t time.Time) string { return t.UTC().Format("15:04:05 MST") }
