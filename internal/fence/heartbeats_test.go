package fence

import (
	"testing"
	"time"

	"github.com/fairlead-io/fairlead/internal/testkit/must"
)

// The times in a Lease are of the node's clock, which may be hours off: here it stands at an hour that the leader has not reached.
func TestHeartbeats(t *testing.T) {
	type look struct{ after, renewed time.Duration }
	steady := func(n int) (looks []look) {
		for i := range n {
			looks = append(looks, look{20 * time.Second, time.Duration(i) * 20 * time.Second})
		}
		return looks
	}
	for name, c := range map[string]struct {
		looks []look
		want  time.Duration // since the last look; -1: not heard
	}{
		"one look proves nothing":                 {steady(1), -1},
		"the Lease was renewed between two looks": {steady(2), 0},
		"ever since":                           {steady(17), 300 * time.Second},
		"not renewed yet, for less than a gap": {append(steady(17), look{20 * time.Second, 16 * 20 * time.Second}), 320 * time.Second},
		"silent":                               {append(steady(17), look{41 * time.Second, 16 * 20 * time.Second}), -1},
		"silent, then back":                    {append(steady(17), look{41 * time.Second, 16 * 20 * time.Second}, look{time.Second, time.Hour}), 0},
		"Fairlead did not look for longer than a gap": {append(steady(17), look{time.Minute, time.Hour}), 0},
		"its clock goes back":                         {append(steady(17), look{20 * time.Second, -time.Hour}), 320 * time.Second},
		"never renewed":                               {[]look{{0, 0}, {time.Minute, 0}, {time.Minute, 0}}, -1},
	} {
		t.Run(name, func(t *testing.T) {
			var h Heartbeats
			now, node := noon, noon.Add(30*time.Hour)
			for _, l := range c.looks {
				now = now.Add(l.after)
				h = h.See(node.Add(l.renewed), now)
			}
			if c.want < 0 {
				must.True(t, h.Since.IsZero(), "heard since %s", h.Since)
				return
			}
			must.Equal(t, now.Sub(h.Since), c.want)
		})
	}
}
