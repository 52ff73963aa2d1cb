package rollout

import (
	"testing"
	"time"

	"github.com/fairlead-io/fairlead/internal/settings/catalog"
	"github.com/fairlead-io/fairlead/internal/storage"
)

// night is closed at noon, for eleven hours.
var night = Windows{{Start: 23 * time.Hour, Length: time.Hour, Location: time.UTC}}

func TestWaitingChangeLooksAgainWhenWindowOpens(t *testing.T) {
	r := atRest(netOne)
	r.Desired, r.Windows, r.Volumes = netTwo, night, []storage.Volume{attached("pvc-a", "node-1")}
	r.DaemonSet.Paused, r.Clients[1].Revision = true, "6"
	if s := Next(r); s.Action != Nothing || s.After != 11*time.Hour {
		t.Errorf("%s, looked at again after %v: node-2 restarts when the window opens", s.Action, s.After)
	}
}

// Between the gate and the first restart new volumes would be on the cluster network.
func TestServersStayUntilWindowOpens(t *testing.T) {
	r := atRest(netOne)
	r.Desired, r.Windows = netTwo, night
	s := Next(r)
	if s.Action != Nothing || s.Phase != PhaseWaiting || s.After != 11*time.Hour || len(s.Blockers) != 1 || s.Blockers[0].Kind != catalog.BlockedByTime {
		t.Errorf("outside the window: %+v", s)
	}
	r.Now = noon.Add(11 * time.Hour)
	if s := Next(r); s.Action != RecordServers || !s.Network.IsZero() {
		t.Errorf("in the window: %+v", s)
	}
}

func TestClientsOnlyRestartInWindowAndBrokenOnesAnyTime(t *testing.T) {
	r := enabling()
	r.Windows, r.DaemonSet.MaxUnavailable, r.Clients[1].Ready = night, 2, false
	if s := Next(r); s.Action != RestartClients || s.Clients[0].Node != "node-2" {
		t.Errorf("%+v: the client on node-2 is not Ready, so nothing is disturbed", s)
	}
}

// Nothing but the window's opening wakes the controller for a client that another writer outdated.
func TestClientsOutdatedAtRestAreLookedAtWhenWindowOpens(t *testing.T) {
	r := atRest(netOne)
	r.Windows, r.DaemonSet.Paused, r.Clients[1].Revision = night, true, "6"
	if s := Next(r); s.Action != Nothing || s.After != 11*time.Hour {
		t.Errorf("%s, looked at again after %v: node-2 restarts when the window opens", s.Action, s.After)
	}
}
