package apply

import (
	"time"

	"github.com/fairlead-io/fairlead/controllers/kit"
	"github.com/fairlead-io/fairlead/internal/settings/catalog"
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
