package rollout

import (
	"testing"
	"time"

	"github.com/fairlead-io/fairlead/internal/rwx"
	"github.com/fairlead-io/fairlead/internal/settings/catalog"
	"github.com/fairlead-io/fairlead/internal/testkit/must"
)

func TestWindowsClosed(t *testing.T) {
	berlin, err := time.LoadLocation("Europe/Berlin")
	must.Do(t, err)
	at := func(text string) time.Time {
		moment, err := time.Parse(time.RFC3339, text)
		must.Do(t, err)
		return moment
	}
	saturdays := Window{Days: []time.Weekday{time.Saturday}, Start: 22 * time.Hour, Length: 4 * time.Hour, Location: time.UTC}
	nights := Window{Start: time.Hour, Length: 2 * time.Hour, Location: time.UTC}
	for name, test := range map[string]struct {
		windows Windows
		now     string
		want    time.Duration
	}{
		"no window":                        {nil, "2026-01-01T12:00:00Z", 0},
		"opens now":                        {Windows{saturdays}, "2026-01-03T22:00:00Z", 0},
		"shortly before":                   {Windows{saturdays}, "2026-01-03T21:59:00Z", time.Minute},
		"open past midnight":               {Windows{saturdays}, "2026-01-04T01:59:59Z", 0},
		"just over":                        {Windows{saturdays}, "2026-01-04T02:00:00Z", 6*24*time.Hour + 20*time.Hour},
		"every day":                        {Windows{nights}, "2026-01-01T04:00:00Z", 21 * time.Hour},
		"the first of two":                 {Windows{saturdays, nights}, "2026-01-03T21:00:00Z", time.Hour},
		"local time":                       {Windows{{Start: time.Hour, Length: time.Hour, Location: berlin}}, "2026-01-01T00:30:00Z", 0},
		"local time in summer":             {Windows{{Start: time.Hour, Length: time.Hour, Location: berlin}}, "2026-07-01T00:30:00Z", 22*time.Hour + 30*time.Minute},
		"a week long, opened six days ago": {Windows{{Days: []time.Weekday{time.Sunday}, Length: 7 * 24 * time.Hour, Location: time.UTC}}, "2026-01-03T12:00:00Z", 0},
	} {
		must.Equal(t, test.windows.Closed(at(test.now)), test.want, "%s", name)
	}
}

// night opens eleven hours after noon.
var night = Windows{{Start: 23 * time.Hour, Length: time.Hour, Location: time.UTC}}

func checkWaitsForWindow(t *testing.T, s Step) {
	t.Helper()
	must.Check(t, s.Action == Nothing && s.After == 11*time.Hour, "%s, after %v: node-2 restarts when the window opens", s.Action, s.After)
}

func TestWaitingChangeIsDecidedAgainWhenWindowOpens(t *testing.T) {
	r := onOne()
	r.Desired, r.Windows, r.Volumes = netTwo, night, []rwx.Volume{attached("pvc-a", "node-1")}
	r.DaemonSet.Paused, r.Clients[1].Revision = true, "6"
	checkWaitsForWindow(t, Next(r))
}

// Otherwise new volumes would be on the cluster network until the first restart.
func TestServersStayUntilWindowOpens(t *testing.T) {
	r := onOne()
	r.Desired, r.Windows = netTwo, night
	s := Next(r)
	checkWaitsForWindow(t, s)
	must.Check(t, s.Phase == PhaseWaiting && len(s.Blockers) == 1 && s.Blockers[0].Kind == catalog.BlockedByTime, "outside the window: %+v", s)
	r.Now = noon.Add(11 * time.Hour)
	if s := Next(r); s.Action != RecordServers || !s.Network.IsZero() {
		t.Errorf("in the window: %+v", s)
	}
	r.Now, r.Clients[0].Ready, r.Clients[1].Ready = noon, false, false
	must.Equal(t, Next(r).Action, RecordServers, "no client is Ready, so no restart disturbs a mount")
}

func TestSoonerWait(t *testing.T) {
	for _, test := range [][3]time.Duration{{0, 1, 1}, {1, 0, 1}, {1, 2, 1}, {2, 1, 1}} {
		must.Equal(t, sooner(test[0], test[1]), test[2], "%v", test)
	}
}

func TestUnreadyClientRestartsOutsideWindows(t *testing.T) {
	r := enabling()
	r.Windows, r.DaemonSet.MaxUnavailable, r.Clients[1].Ready = night, 2, false
	s := Next(r)
	must.Check(t, s.Action == RestartClients && s.Clients[0].Node == "node-2", "%+v: the client on node-2 is not Ready, so its restart disturbs no mount", s)
}

// No event wakes the controller for a client that another writer outdated.
func TestOutdatedClientsRestartWhenWindowOpens(t *testing.T) {
	r := onOne()
	r.Windows, r.DaemonSet.Paused, r.Clients[1].Revision = night, true, "6"
	checkWaitsForWindow(t, Next(r))
}
