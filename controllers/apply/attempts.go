package apply

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/fairlead-io/fairlead/settings"
)

// attempts remember what was done to components, so that nobody is fought: a
// component that is as before although it was brought in line is left alone for
// longer and longer. It is kept in memory: a new leader begins anew, slowly.
type attempts map[string]attempt

type attempt struct {
	wants string
	uid   string
	count int
	at    time.Time
	pod   bool
}

// pauses before the second attempt, the third and so on; the last for all that follow.
var pauses = []time.Duration{10 * time.Second, time.Minute, 10 * time.Minute, time.Hour}

// standsDownAt is the number of attempts after which somebody else is taken to
// be at it, and it is said.
const standsDownAt = 3

// made remembers a piece of work.
func (a *attempts) made(work settings.Work, now time.Time) {
	if *a == nil {
		*a = attempts{}
	}
	wants := textOf(work.Wants)
	last := (*a)[work.Component.Name]
	if last.wants != wants {
		last = attempt{}
	}
	(*a)[work.Component.Name] = attempt{
		wants: wants, uid: work.Component.UID, count: last.count + 1, at: now,
		pod: work.Action == settings.RestartComponent,
	}
}

// holds are the components to leave alone now, and why. What is in line by now
// is not asked for anything, so a hold on it does no harm; what is gone is forgotten.
func (a attempts) holds(components []settings.Component, now time.Time) map[string]settings.Hold {
	held := map[string]settings.Hold{}
	present := map[string]bool{}
	for _, c := range components {
		present[c.Name] = true
		last, tried := a[c.Name]
		if !tried {
			continue
		}
		until := last.at.Add(pauses[min(last.count, len(pauses))-1])
		message := fmt.Sprintf("%s %s is as it was before Fairlead brought it in line", c.Kind.Noun(), c.Name)
		switch {
		case last.pod && c.UID == last.uid:
			message = fmt.Sprintf("%s %s is being restarted", c.Kind.Noun(), c.Name)
		case last.count >= standsDownAt:
			message += fmt.Sprintf(" %d times: somebody else writes it (the storage system's own controller, an installer, another webhook?); Fairlead stands down there until %s",
				last.count, until.UTC().Format("15:04:05 MST"))
		default:
			message += "; tried again at " + until.UTC().Format("15:04:05 MST")
		}
		if until.After(now) {
			held[c.Name] = settings.Hold{Until: until, Message: message}
		}
	}
	maps.DeleteFunc(a, func(name string, last attempt) bool {
		return !present[name] && now.Sub(last.at) > pauses[len(pauses)-1]
	})
	return held
}

// stoodDown are the components that somebody else writes, with what is told of them.
func (a attempts) stoodDown(held map[string]settings.Hold) map[string]string {
	told := map[string]string{}
	for name, hold := range held {
		if a[name].count >= standsDownAt {
			told[name] = hold.Message
		}
	}
	return told
}

func textOf(wants map[settings.Trait]settings.Want) string {
	var parts []string
	for _, trait := range slices.Sorted(maps.Keys(wants)) {
		parts = append(parts, fmt.Sprintf("%s=%s", trait, wants[trait].Text))
	}
	return strings.Join(parts, "\n")
}
