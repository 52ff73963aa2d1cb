package reads

import (
	"testing"
	"time"

	"github.com/fairlead-io/fairlead/internal/testkit/must"
)

func TestLeaseIsIdle(t *testing.T) {
	now := time.Date(2026, 3, 4, 12, 0, 0, 0, time.UTC)
	for name, test := range map[string]struct {
		lease       Lease
		leads, idle bool
	}{
		"renewed":              {Lease{"a", now.Add(-time.Second)}, true, false},
		"clocks differ":        {Lease{"a", now.Add(30 * time.Second)}, true, false},
		"leader was killed":    {Lease{"a", now.Add(-2 * time.Minute)}, false, true},
		"released at roll-out": {Lease{"", now.Add(-3 * time.Second)}, false, false},
		"scaled to 0":          {Lease{"", now.Add(-20 * time.Second)}, false, true},
		"no leader election":   {Lease{}, false, false},
	} {
		must.Equal(t, test.lease.Leads(now), test.leads, "%s: leads", name)
		must.Equal(t, test.lease.Idle(now), test.idle, "%s: idle", name)
	}
}
