package health

import (
	"fmt"

	"github.com/fairlead-io/fairlead/internal/nfs"
)

// Guard is the rule that keeps some backends in use, and its present effect.
type Guard struct {
	// Total backends; Down are out; Failing fail too and stay in use.
	Total, Down, Failing int
	// MaxDown is how many may be Down at once.
	MaxDown int
}

// Guard returns how many backends are out, and how many the guard keeps in use.
func (t *Table) Guard() Guard {
	g := Guard{Total: len(t.records), MaxDown: t.settings.maxDown(len(t.records))}
	for _, r := range t.records {
		switch r.Health {
		case nfs.Down:
			g.Down++
		case nfs.Failing:
			g.Failing++
		}
	}
	return g
}

// Active reports whether backends that fail stay in use. It is a condition, an event and a metric.
func (g Guard) Active() bool { return g.Failing > 0 }

// Message names the backends kept in use and what to do; empty if the guard is not active.
func (g Guard) Message() string {
	switch {
	case !g.Active():
		return ""
	case g.Total == 1:
		return "The only backend fails its probes and stays in use: no other can take over. Check the server, or add backends."
	default:
		return fmt.Sprintf("%d of %d backends fail their probes, and at most %d may be out at once: %d of them stay in use. "+
			"So many failures at once suggest a fault of the prober or its network. Check both, then the servers.",
			g.Down+g.Failing, g.Total, g.MaxDown, g.Failing)
	}
}
