package invariants

import (
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
// settings: what was before, and each change.
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
