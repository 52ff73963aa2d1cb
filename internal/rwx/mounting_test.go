package rwx

import (
	"github.com/fairlead-io/fairlead/internal/multus"
)

import (
	"strings"
	"testing"
	"time"

	"github.com/fairlead-io/fairlead/internal/testkit/must"
)

// The mount is older than the client's network namespace, so it is dead if it was
// made in a client. The pod began at second 3 and was mounted by second 5.
func TestJudgeByPlaceOfMount(t *testing.T) {
	longBefore, between, longAfter := at(-60), at(4), at(7)
	for name, test := range map[string]struct {
		mounting       Mounting
		plain, network MountState
	}{
		"nothing is known":                             {Mounting{}, NotOurs, Dead},
		"in clients before the pod began":              {Mounting{Place: InClient, Since: longBefore}, Dead, Dead},
		"in clients again before the pod began":        {Mounting{Place: InClient, Since: longBefore, Before: InHost}, Dead, Dead},
		"in clients since the pod was mounted":         {Mounting{Place: InClient, Since: longAfter, Before: InHost}, NotOurs, Dead},
		"in clients when it was first looked at":       {Mounting{Place: InClient, Since: longAfter}, Unsure, Dead},
		"in clients since the pod was being mounted":   {Mounting{Place: InClient, Since: between, Before: InHost}, Unsure, Dead},
		"on nodes, and never elsewhere":                {Mounting{Place: InHost, Since: longAfter}, NotOurs, Dead},
		"on nodes, and nothing is known of the time":   {Mounting{Place: InHost, Since: longBefore}, NotOurs, Dead},
		"on nodes before the pod began":                {Mounting{Place: InHost, Since: longBefore, Before: InClient}, NotOurs, Unsure},
		"on nodes since the pod was mounted":           {Mounting{Place: InHost, Since: longAfter, Before: InClient}, Unsure, Dead},
		"on nodes since the pod was being mounted":     {Mounting{Place: InHost, Since: between, Before: InClient}, Unsure, Unsure},
		"in clients again, and before the flap":        {Mounting{Place: InClient, Since: longAfter, Before: InHost, BeforeSince: longAfter.Add(-time.Second)}, Unsure, Dead},
		"in clients again, began while on nodes":       {Mounting{Place: InClient, Since: longAfter, Before: InHost, BeforeSince: longBefore}, NotOurs, Dead},
		"on nodes again, and before the flap":          {Mounting{Place: InHost, Since: longAfter, Before: InClient, BeforeSince: longAfter.Add(-time.Second)}, Unsure, Dead},
		"in either before the pod began":               {Mounting{Place: InEither, Since: longBefore, Before: InHost}, Unsure, Dead},
		"in either since the pod was mounted":          {Mounting{Place: InEither, Since: longAfter, Before: InHost}, NotOurs, Dead},
		"in either since it was mounted in the client": {Mounting{Place: InEither, Since: longAfter, Before: InClient}, Unsure, Dead},
	} {
		t.Run(name, func(t *testing.T) {
			r := with(restartsAt60, func(r *Restarts) { r.Mounting = test.mounting })
			for mount, want := range map[Mount]MountState{plain: test.plain, shared("v"): test.network} {
				got := Judge(user(mount), NetworkNamespace{Identity: "two", Since: at(10)}, r)
				must.Check(t, got.State == want && got.Restart == (want == Dead), "volume %s: got %+v, want %s", mount.Volume, got, want)
			}
		})
	}
}

// Clients on the cluster network mount in themselves while the value waits to be applied.
func TestMountOnClusterNetworkDiesBeforeNetworkIsApplied(t *testing.T) {
	r := with(restartsAt60, func(r *Restarts) {
		r.Applied, r.Mounting = multus.Attachment{}, Mounting{Place: InClient, Since: at(-60)}
	})
	if got := Judge(user(plain), NetworkNamespace{Identity: "two", Since: at(10)}, r); got.State != Dead || !got.Restart || !strings.HasPrefix(got.Detail, "volume plain was mounted before") {
		t.Errorf("got %+v", got)
	}
	must.Equal(t, Judge(user(plain), NetworkNamespace{Identity: "two", Since: at(2)}, r).State, Alive, "mounted after")
}

func TestMountingChangesOnlyWithThePlace(t *testing.T) {
	first := Mounting{Place: InHost, Since: at(1)}
	for name, test := range map[string]struct {
		was, want Mounting
		place     MountPlace
	}{
		"first":     {Mounting{}, Mounting{Place: InHost, Since: at(3)}, InHost},
		"the same":  {first, first, InHost},
		"not known": {first, first, ""},
		"changed":   {first, Mounting{Place: InClient, Since: at(3), Before: InHost}, InClient},
		"flap": {
			Mounting{Place: InHost, Since: at(2), Before: InClient}, Mounting{Place: InClient, Since: at(3), Before: InHost, BeforeSince: at(2)}, InClient,
		},
	} {
		must.Equal(t, test.was.Next(test.place, at(3)), test.want, "%s", name)
	}
}

// Times of pods are cut to the second.
func TestMountTimesAreComparedBySeconds(t *testing.T) {
	m := Mounting{Place: InClient, Since: at(5).Add(300 * time.Millisecond), Before: InHost}
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
		must.Check(t, m.after(test.w) == test.after && m.before(test.w) == test.before, "%s: after %v, before %v", name, m.after(test.w), m.before(test.w))
	}
}
