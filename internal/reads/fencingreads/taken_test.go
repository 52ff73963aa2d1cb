package fencingreads

import (
	"testing"

	"github.com/fairlead-io/fairlead/internal/testkit/must"
)

// Two nodes with one address are not decided about by snapshots of which the second may lack the first decision.
func TestOneDecisionAboutAnAddressAtATime(t *testing.T) {
	type then func(all *taken, done func()) (snapshot int64)
	other := []string{"10.0.0.1", "10.0.0.9"}
	for name, c := range map[string]struct {
		then      then
		node      string
		addresses []string
		want      bool
	}{
		"one snapshot":                        {func(*taken, func()) int64 { return 2 }, "node-2", other, false},
		"one snapshot, and the first is done": {func(_ *taken, done func()) int64 { done(); return 2 }, "node-2", other, false},
		"an earlier snapshot":                 {func(*taken, func()) int64 { return 1 }, "node-2", other, false},
		"a snapshot that was begun before the first was on record": {func(all *taken, done func()) int64 { n := all.begin(); done(); return n }, "node-2", other, false},
		"a later snapshot, and the first is not on record yet":     {func(all *taken, _ func()) int64 { return all.begin() }, "node-2", other, false},
		"a later snapshot": {func(all *taken, done func()) int64 { done(); return all.begin() }, "node-2", other, true},
		"the same node":    {func(*taken, func()) int64 { return 2 }, "node-1", other, true},
		"another address":  {func(*taken, func()) int64 { return 2 }, "node-2", []string{"10.0.0.9"}, true},
		"no address":       {func(*taken, func()) int64 { return 2 }, "node-2", nil, true},
		"two steps of the same one": {func(all *taken, done func()) int64 {
			again, _ := all.take(2, "node-1", other)
			again()
			return all.begin()
		}, "node-2", other, false},
	} {
		t.Run(name, func(t *testing.T) {
			all := &taken{}
			all.begin()
			done, ok := all.take(all.begin(), "node-1", []string{"10.0.0.1"})
			must.True(t, ok, "the first is refused")
			_, ok = all.take(c.then(all, done), c.node, c.addresses)
			must.Equal(t, ok, c.want)
		})
	}
}
