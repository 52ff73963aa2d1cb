package fence

import (
	"testing"
	"time"

	"github.com/fairlead-io/fairlead/internal/testkit/must"
)

// The times in a Lease are of the node's clock, which may be hours off: here it stands at an hour that the leader has not reached.
func TestHeartbeats(t *testing.T) {
	type look struct{ after, renewed time.Duration }
	steady := func(n int, more ...look) (looks []look) {
		for i := range n {
			looks = append(looks, look{20 * time.Second, time.Duration(i) * 20 * time.Second})
		}
		return append(looks, more...)
	}
	const last = 16 * 20 * time.Second // renewal of steady(17)
	for name, c := range map[string]struct {
		looks []look
		want  time.Duration // since the last look; -1: not heard
		lasts time.Duration // the Lease
	}{
		"one look proves nothing":                 {looks: steady(1), want: -1},
		"the Lease was renewed between two looks": {looks: steady(2), want: 0},
		"ever since":                           {looks: steady(17), want: 300 * time.Second},
		"not renewed yet, for less than a gap": {looks: steady(17, look{20 * time.Second, last}), want: 320 * time.Second},
		"silent":                               {looks: steady(17, look{56 * time.Second, last}), want: -1},
		"silent, then back":                    {looks: steady(17, look{56 * time.Second, last}, look{time.Second, time.Hour}), want: 0},
		"Fairlead did not look for longer than a gap": {looks: steady(17, look{time.Minute, time.Hour}), want: 0},
		"a Lease that lasts longer":                   {looks: steady(17, look{2 * time.Minute, time.Hour}), want: 420 * time.Second, lasts: 160 * time.Second},
		"its clock goes back":                         {looks: steady(17, look{20 * time.Second, -time.Hour}), want: 320 * time.Second},
		"never renewed":                               {looks: []look{{0, 0}, {time.Minute, 0}, {time.Minute, 0}}, want: -1},
	} {
		t.Run(name, func(t *testing.T) {
			var h Heartbeats
			now, node := noon, noon.Add(30*time.Hour)
			for _, l := range c.looks {
				now = now.Add(l.after)
				h = h.See(node.Add(l.renewed), c.lasts, now)
			}
			if c.want < 0 {
				must.True(t, h.Since.IsZero(), "heard since %s", h.Since)
				return
			}
			must.Equal(t, now.Sub(h.Since), c.want)
		})
	}
	heard := Heartbeats{renewed: noon, seen: noon, Since: noon}
	must.Equal(t, heard.See(time.Time{}, 0, noon.Add(time.Second)), heard, "a Lease that is gone is no renewal")
}
