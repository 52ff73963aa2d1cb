package apply

import (
	"fmt"
	"maps"
	"strings"
	"time"

	"github.com/fairlead-io/fairlead/settings"
)

// attempts remember what was done to components, so that nobody is fought: a
// component that is as before although it was brought in line is left alone for
// longer and longer. It is kept in memory: a new leader begins anew, slowly.
type attempts map[string]attempt

type attempt struct {
	wants map[settings.Trait]settings.Want
	uid   string
	count int
	at    time.Time
	// action that was done, or refused
	action settings.WorkAction
	// told that Fairlead stands down there
	told bool
	// refusals since it last went well, and the last: they are nobody's writing it otherwise.
	refusals int
	refused  error
}

// pauses before the second attempt, the third and so on; the last for all that follow.
var pauses = []time.Duration{10 * time.Second, time.Minute, 10 * time.Minute, time.Hour}

// afterRefusal is the longest pause after a refusal: the policy may be mended any time.
const afterRefusal = time.Minute

// standsDownAt is the number of attempts after which somebody else is taken to
// be at it, and it is said.
const standsDownAt = 3

// forgotten is an attempt that nobody has undone for long: the next is the first again.
var forgotten = 2 * pauses[len(pauses)-1]

// made remembers a piece of work, and how it went: one that is refused must not
// keep all others from their turn.
func (a *attempts) made(work settings.Work, now time.Time, refused error) {
	if *a == nil {
		*a = attempts{}
	}
	last := (*a)[work.Component.Name]
	if !overlaps(last.wants, work.Wants) {
		last = attempt{} // it is about something else
	}
	this := attempt{
		wants: work.Wants, uid: work.Component.UID, count: last.count + 1, at: now,
		action: work.Action, told: last.told,
	}
	if refused != nil {
		this.count, this.refusals, this.refused = last.count, last.refusals+1, refused
	}
	(*a)[work.Component.Name] = this
}

// pause until the next.
func (a attempt) pause() time.Duration {
	if a.refused != nil {
		return min(pauses[min(a.refusals, len(pauses))-1], afterRefusal)
	}
	return pauses[min(a.count, len(pauses))-1]
}

// holds are the components to leave alone now, and why.
func (a attempts) holds(f settings.Facts) map[string]settings.Hold {
	maps.DeleteFunc(a, func(_ string, last attempt) bool { return f.Now.Sub(last.at) > forgotten })
	held := map[string]settings.Hold{}
	for _, c := range f.Components {
		last, tried := a[c.Name]
		if !tried {
			continue
		}
		wanted := settings.Wanted(f.Values, f.SystemValues, f.Applied, c, f.Nodes)
		if !overlaps(last.wants, wanted) {
			delete(a, c.Name) // nobody wants it any more: when somebody does again, that is the first time
			continue
		}
		if !last.undone(c, wanted) {
			continue
		}
		until := last.at.Add(last.pause())
		if !until.After(f.Now) {
			continue
		}
		hold := settings.Hold{Until: until, Message: fmt.Sprintf("%s %s is as it was before Fairlead brought it in line", c.Kind.Noun(), c.Name)}
		switch {
		case last.refused != nil:
			hold.Message = fmt.Sprintf("%s %s can't be brought in line: %s; tried again at %s", c.Kind.Noun(), c.Name, clipped(last.refused.Error()), until.UTC().Format("15:04:05 MST"))
		case last.action != settings.UpdateComponent && c.UID == last.uid:
			hold.Leaving = true
			hold.Message = fmt.Sprintf("%s %s is being %s", c.Kind.Noun(), c.Name, strings.ToLower(pastTense[last.action]))
		case last.count >= standsDownAt:
			hold.Message += fmt.Sprintf(" %d times: somebody else writes it (the storage system's own controller, an installer, another webhook?); Fairlead stands down there until %s",
				last.count, until.UTC().Format("15:04:05 MST"))
		default:
			hold.Message += "; tried again at " + until.UTC().Format("15:04:05 MST")
		}
		held[c.Name] = hold
	}
	return held
}

// undone tells whether a component is again otherwise than it was brought,
// although that is still wanted. What is wanted beside or since is no question of it.
func (a attempt) undone(c settings.Component, wanted map[settings.Trait]settings.Want) bool {
	for trait, want := range a.wants {
		if built, exists := c.Built[trait]; exists && built != want.Text && wanted[trait].Text == want.Text {
			return true
		}
	}
	return false
}

// overlaps tells whether something is wanted in both: a part of what was
// wanted may have come about.
func overlaps(a, b map[settings.Trait]settings.Want) bool {
	for trait, want := range a {
		if other, ok := b[trait]; ok && other.Text == want.Text {
			return true
		}
	}
	return false
}
