package invariants

import (
	"fmt"
	"slices"
	"time"

	"github.com/fairlead-io/fairlead/api/v1alpha1"
	"github.com/fairlead-io/fairlead/e2e/sandbox"
)

// Progress is how far a setting of Longhorn's was from a time on.
type Progress struct {
	At time.Time
	// By wrote what made it so.
	By    string
	Value string
	// Applied is what settings.longhorn.io says, Reported what settings.fairlead.io says of the value.
	Applied, Reported bool
	// Missing says which pods are not built with the value.
	Missing []string
}

// Replay follows settings through the API server's record, with Fairlead and without.
type Replay struct {
	state *state
	read  int
}

// NewReplay begins at the API server's start.
func NewReplay() *Replay { return &Replay{state: newState()} }

// Follow replays the writes that it has not seen, of all of them, and returns the progress of
// settings: the state before, and each change.
func (r *Replay) Follow(writes []sandbox.Write, settings ...string) map[string][]Progress {
	progress := map[string][]Progress{}
	look := func(by string) {
		for _, name := range settings {
			now := r.state.progress(name)
			now.By = by
			if all := progress[name]; len(all) == 0 || !all[len(all)-1].same(now) {
				progress[name] = append(all, now)
			}
		}
	}
	look("")
	for _, e := range inOrder(writes[r.read:]) {
		r.state.now = maxTime(r.state.now, e.At)
		r.state.apply(e)
		look(e.Writer())
	}
	r.read = len(writes)
	return progress
}

func (p Progress) same(o Progress) bool {
	return p.Value == o.Value && p.Applied == o.Applied && p.Reported == o.Reported && slices.Equal(p.Missing, o.Missing)
}

func (s *state) progress(name string) Progress {
	p := Progress{At: s.now}
	p.Value, p.Applied = s.value(name)
	if own := get[*v1alpha1.Setting](s, v1alpha1.GroupVersion.Group+"/settings", name); own != nil {
		p.Reported = own.Status.Applied && own.Status.EffectiveValue == p.Value
	}
	p.Missing = s.incomplete(name, p.Value)
	return p
}

// Early returns how long and where a setting was reported as applied though updates were missing. With issued, Longhorn may
// write `applied` once it has issued all updates: that is counted as early, and not as wrong.
func Early(name string, progress []Progress, issued bool) (early time.Duration, wrong []string) {
	for i, p := range progress {
		if i == 0 || len(p.Missing) == 0 {
			continue
		}
		before := progress[i-1]
		turned := p.Applied && !before.Applied && p.Value == before.Value
		if turned && issued && p.By == names.ServiceAccount {
			early = max(early, completed(progress[i:]).Sub(p.At))
		} else if turned || p.Reported && !before.Reported {
			wrong = append(wrong, fmt.Sprintf("%s: %s wrote that %s=%q is applied, but %v", p.At.Format("15:04:05.000"), p.By, name, p.Value, p.Missing))
		}
	}
	return early, wrong
}

// completed is when nothing was missing any more.
func completed(progress []Progress) time.Time {
	i := slices.IndexFunc(progress, func(p Progress) bool { return len(p.Missing) == 0 })
	if i < 0 {
		i = len(progress) - 1
	}
	return progress[i].At
}
