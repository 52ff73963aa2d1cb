package storage

import (
	"strings"
	"testing"
	"time"
)

// The mount is older than the client's network namespace, so it is dead if it was
// made in a client. The pod began at second 3 and was mounted by second 5.
func TestJudgeByPlaceOfMount(t *testing.T) {
	plain := Mount{Volume: "plain", Driver: "driver.longhorn.io", Shared: true} // on the cluster network
	longBefore, between, longAfter := at(-60), at(4), at(7)
	for name, test := range map[string]struct {
		mounting       Mounting
		plain, network MountState
	}{
		"nothing is known":                             {Mounting{}, NotOurs, Dead},
		"in clients before the pod began":              {Mounting{InClient, longBefore, ""}, Dead, Dead},
		"in clients again before the pod began":        {Mounting{InClient, longBefore, InHost}, Dead, Dead},
		"in clients since the pod was mounted":         {Mounting{InClient, longAfter, InHost}, NotOurs, Dead},
		"in clients when it was first looked at":       {Mounting{InClient, longAfter, ""}, Unsure, Dead},
		"in clients since the pod was being mounted":   {Mounting{InClient, between, InHost}, Unsure, Dead},
		"on nodes, and never elsewhere":                {Mounting{InHost, longAfter, ""}, NotOurs, Dead},
		"on nodes, and nothing is known of the time":   {Mounting{InHost, longBefore, ""}, NotOurs, Dead},
		"on nodes before the pod began":                {Mounting{InHost, longBefore, InClient}, NotOurs, Unsure},
		"on nodes since the pod was mounted":           {Mounting{InHost, longAfter, InClient}, Unsure, Dead},
		"on nodes since the pod was being mounted":     {Mounting{InHost, between, InClient}, Unsure, Unsure},
		"in either before the pod began":               {Mounting{InEither, longBefore, InHost}, Unsure, Dead},
		"in either since the pod was mounted":          {Mounting{InEither, longAfter, InHost}, NotOurs, Dead},
		"in either since it was mounted in the client": {Mounting{InEither, longAfter, InClient}, Unsure, Dead},
	} {
		t.Run(name, func(t *testing.T) {
			r := Restarts{Driver: "driver.longhorn.io", Enabled: true, Applied: netA, DeadMounts: true, Mounting: test.mounting, Now: at(60)}
			namespace := NetworkNamespace{"two", at(10)}
			for what, got := range map[string]Verdict{"cluster network": Judge(user(plain), namespace, r), "network": Judge(user(shared("v")), namespace, r)} {
				want := test.network
				if what == "cluster network" {
					want = test.plain
				}
				if got.State != want || got.Restart != (want == Dead) {
					t.Errorf("volume on the %s: got %+v, want %s", what, got, want)
				}
			}
		})
	}
}

// Clients on the cluster network mount in themselves while the value waits to be applied.
func TestMountOnClusterNetworkDiesBeforeNetworkIsApplied(t *testing.T) {
	plain := Mount{Volume: "plain", Driver: "driver.longhorn.io", Shared: true}
	r := Restarts{Driver: "driver.longhorn.io", Enabled: true, DeadMounts: true, Mounting: Mounting{InClient, at(-60), ""}, Now: at(60)}
	if got := Judge(user(plain), NetworkNamespace{"two", at(10)}, r); got.State != Dead || !got.Restart || !strings.HasPrefix(got.Detail, "volume plain was mounted before") {
		t.Errorf("got %+v", got)
	}
	if got := Judge(user(plain), NetworkNamespace{"two", at(2)}, r); got.State != Alive {
		t.Errorf("mounted after: got %+v", got)
	}
}

func TestPausedRestartsLeaveDeadMounts(t *testing.T) {
	r := Restarts{Driver: "driver.longhorn.io", Enabled: true, Applied: netA, DeadMounts: true, Paused: true, Now: at(60)}
	got := Judge(user(shared("v")), NetworkNamespace{"two", at(10)}, r)
	if got.State != Dead || got.Restart || got.Reason != ReasonPaused || !strings.Contains(got.Detail, "remove annotation fairlead.io/workload-restarts") {
		t.Errorf("got %+v", got)
	}
}

func TestMountingChangesWithThePlaceOnly(t *testing.T) {
	first := Mounting{}.Next(InHost, at(1))
	if want := (Mounting{Place: InHost, Since: at(1)}); first != want {
		t.Errorf("at first: got %+v", first)
	}
	if got := first.Next(InHost, at(2)); got != first {
		t.Errorf("the same: got %+v", got)
	}
	if got := first.Next("", at(2)); got != first {
		t.Errorf("not known: got %+v", got)
	}
	if got, want := first.Next(InClient, at(3)), (Mounting{InClient, at(3), InHost}); got != want {
		t.Errorf("changed: got %+v", got)
	}
}

// Times of pods are cut to the second.
func TestMountingIsToldBySeconds(t *testing.T) {
	m := Mounting{InClient, at(5).Add(300 * time.Millisecond), InHost}
	for name, test := range map[string]struct {
		w             Workload
		after, before bool
	}{
		"began in the same second":         {Workload{Began: at(5), Mounted: at(6)}, false, false},
		"began in the next second":         {Workload{Began: at(6), Mounted: at(7)}, true, false},
		"mounted in the same second":       {Workload{Began: at(3), Mounted: at(5)}, false, false},
		"mounted in the second before":     {Workload{Began: at(3), Mounted: at(4)}, false, true},
		"not known to have begun":          {Workload{}, false, false},
		"began before, not mounted yet":    {Workload{Began: at(3)}, false, false},
		"began before, mounted long after": {Workload{Began: at(3), Mounted: at(9)}, false, false},
	} {
		if m.after(test.w) != test.after || m.before(test.w) != test.before {
			t.Errorf("%s: after %v, before %v", name, m.after(test.w), m.before(test.w))
		}
	}
}
