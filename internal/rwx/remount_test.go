package rwx

import (
	"github.com/fairlead-io/fairlead/internal/multus"
)

import (
	"testing"
	"time"

	"github.com/fairlead-io/fairlead/internal/testkit/must"
)

const (
	autoDelete  = "auto-delete-pod-when-volume-detached-unexpectedly"
	deadDetail  = "volume v was mounted before 2026-01-01T12:00:10Z, when the network of the CSI plugin pod on its node was recreated: its NFS mount does not answer"
	askedDetail = "the storage system asks to mount volume v again"

	noController = "; the pod has no controller that would recreate it: delete and create it yourself"
	settingOff   = "; setting " + autoDelete + " is off: delete the pod, or turn it on"
	blacklisted  = " is in blacklist-for-" + autoDelete + ": delete the pod yourself"
)

var (
	rwo     = Mount{Volume: "v", Driver: "driver.longhorn.io"}
	foreign = Mount{Volume: "elsewhere", Driver: "ebs.csi.aws.com", Shared: true, Network: netA}
	plain   = Mount{Volume: "plain", Driver: "driver.longhorn.io", Shared: true} // on the cluster network

	restartsAt60 = Restarts{Driver: "driver.longhorn.io", Enabled: true, Applied: netA, DeadMounts: true, Now: at(60)}
	deadMount    = Verdict{State: Dead, Restart: true, Reason: ReasonDeadMount, Detail: deadDetail}
	notStarted   = Verdict{State: NotYet, Reason: ReasonNotStarted, After: 5 * time.Second}
)

// shared is a mount of an RWX volume that is on its network.
func shared(volume string) Mount {
	return Mount{Volume: volume, Driver: "driver.longhorn.io", Shared: true, Network: netA}
}

// user is a pod of a StatefulSet that mounted its volumes at second 5.
func user(mounts ...Mount) Workload {
	return Workload{
		Namespace: "default", Name: "web-0", UID: "uid-web-0", Owner: Owner{"apps/v1", "StatefulSet", "web", "uid-web"},
		Began: at(3), Mounted: at(5), Mounts: mounts,
	}
}

func refused(reason, detail string) Verdict {
	return Verdict{State: Dead, Reason: reason, Detail: detail}
}

// judgements are rows of a table: the pod mounts volume v of the network, unless mounts are given.
type judgements map[string]struct {
	mounts []Mount
	change func(*Workload, *Restarts)
	want   Verdict
}

// check judges after the network namespace of the client began at second 10.
func (rows judgements) check(t *testing.T, base Restarts) {
	for name, test := range rows {
		t.Run(name, func(t *testing.T) {
			w, r := user(test.mounts...), base
			if test.mounts == nil {
				w = user(shared("v"))
			}
			if test.change != nil {
				test.change(&w, &r)
			}
			must.Equal(t, Judge(w, NetworkNamespace{Identity: "two", Since: at(10), Booted: at(4)}, r), test.want)
		})
	}
}

func TestJudge(t *testing.T) {
	migratable := Mount{Volume: "vm", Driver: "driver.longhorn.io", Migratable: true}
	unsure := Verdict{State: Unsure, Reason: ReasonStartedAbout,
		Detail: "volume v was mounted about 2026-01-01T12:00:10Z, when the network of the CSI plugin pod on its node was recreated; if it does not answer, delete the pod"}
	alive := Verdict{State: Alive, Reason: ReasonStartedAfter}
	notOurs := func(reason string) Verdict { return Verdict{State: NotOurs, Reason: reason} }
	times := func(began, mounted time.Time) func(*Workload, *Restarts) {
		return func(w *Workload, _ *Restarts) { w.Began, w.Mounted = began, mounted }
	}
	restarted := with(unsure, func(v *Verdict) {
		v.Reason, v.Detail = ReasonRestarted, "volume v was mounted before 2026-01-01T12:00:10Z, when the network of the CSI plugin pod on its node was recreated; "+
			"the pod has restarted since, and keeps that mount unless the kubelet restarted too; if it does not answer, delete the pod"
	})
	restarts := func(mounted, last float64) func(*Workload, *Restarts) {
		return func(w *Workload, _ *Restarts) {
			w.Mounted, w.Restarted, w.Starts = at(mounted), true, []time.Time{at(mounted), at(last)}
		}
	}
	const movedDetail = "volume v was mounted before its server moved from 10.0.0.1 to 10.0.0.2"
	moved := with(shared("v"), func(m *Mount) { m.ServerMove = ServerMove{From: "10.0.0.1", To: "10.0.0.2"} })
	const placeDetail = "whether volume plain is mounted in the network of the node or of the CSI plugin pod, which was recreated at 2026-01-01T12:00:10Z, can't be told; if the volume does not answer, delete the pod"
	judgements{
		"mounted before the namespace began":              {want: deadMount},
		"mounted one second before":                       {change: times(at(3), at(9)), want: deadMount},
		"mounted in the same second":                      {change: times(at(3), at(10)), want: unsure},
		"mounted after, begun before":                     {change: times(at(3), at(12)), want: unsure},
		"begun in the same second":                        {change: times(at(10), at(12)), want: unsure},
		"Longhorn bug: pod created after client delete":   {change: times(at(11), at(12)), want: alive},
		"begun after, not mounted":                        {change: times(at(11), time.Time{}), want: alive},
		"not mounted":                                     {change: times(at(3), time.Time{}), want: notStarted},
		"no kubelet has the pod":                          {change: times(time.Time{}, time.Time{}), want: notStarted},
		"restarted since, perhaps with its node":          {change: func(w *Workload, _ *Restarts) { w.Mounted, w.Restarted = at(12), true }, want: alive},
		"restarted with its sandbox":                      {change: restarts(12, 6), want: restarted},
		"restarted twice with its sandbox":                {change: restarts(13, 12), want: alive},
		"restarted with its node":                         {change: restarts(12, 2), want: alive},
		"not restarted, an init container started before": {change: func(w *Workload, _ *Restarts) { w.Mounted, w.Starts = at(12), []time.Time{at(6), at(12)} }, want: unsure},
		"restarted, place not known": {mounts: []Mount{plain}, change: func(w *Workload, r *Restarts) {
			restarts(12, 6)(w, r)
			r.Mounting = Mounting{Place: InClient, Since: at(20)}
		}, want: with(restarted, func(v *Verdict) { v.Reason, v.Detail = ReasonPlaceNotKnown, placeDetail })},
		"restarted, mounted before": {change: func(w *Workload, _ *Restarts) { w.Restarted = true }, want: deadMount},
		"terminating":               {change: func(w *Workload, _ *Restarts) { w.Terminating = true }, want: notOurs(ReasonTerminating)},

		"no volume":                {mounts: []Mount{}, want: notOurs(ReasonOtherDriver)},
		"volume of another driver": {mounts: []Mount{foreign}, want: notOurs(ReasonOtherDriver)},
		"volume without driver":    {mounts: []Mount{{}}, want: notOurs(ReasonOtherDriver)},
		"RWO volume":               {mounts: []Mount{foreign, rwo}, want: notOurs(ReasonNotShared)},
		"Longhorn bug: migratable": {mounts: []Mount{migratable}, want: notOurs(ReasonMigratable)},
		"cluster network":          {mounts: []Mount{plain}, want: notOurs(ReasonClusterNetwork)},
		"RWX beside all others":    {mounts: []Mount{foreign, rwo, shared("v"), migratable, plain, {}}, want: deadMount},
		"several are sorted":       {mounts: []Mount{shared("w"), shared("v"), shared("w")}, want: with(deadMount, func(v *Verdict) { v.Detail = "volume v, w" + deadDetail[len("volume v"):] })},
		"network not applied":      {change: func(_ *Workload, r *Restarts) { r.Applied = multus.Attachment{} }, want: notOurs(ReasonNotApplied)},
		"dead mounts are off":      {change: func(_ *Workload, r *Restarts) { r.DeadMounts = false }, want: notOurs(ReasonNotRequested)},

		"its server has moved":           {mounts: []Mount{shared("u"), moved}, change: times(at(11), at(12)), want: Verdict{State: Dead, Restart: true, Reason: ReasonServerMoved, Detail: movedDetail + ": its NFS mount does not answer"}},
		"moved, and not to be restarted": {mounts: []Mount{moved}, change: func(_ *Workload, r *Restarts) { r.Enabled = false }, want: refused(ReasonOff, movedDetail+": its NFS mount does not answer"+settingOff)},
		"moved, and restarted since": {mounts: []Mount{with(moved, func(m *Mount) { m.ServerMove.Unsure = true })}, change: times(at(11), at(12)),
			want: Verdict{State: Unsure, Reason: ReasonRestarted, Detail: movedDetail + "; the pod has restarted since, and keeps that mount unless its node rebooted; if it does not answer, delete the pod"}},
		"moved, of another driver":       {mounts: []Mount{with(moved, func(m *Mount) { m.Driver = "other" })}, want: notOurs(ReasonOtherDriver)},
		"moved, and dead mounts are off": {mounts: []Mount{moved}, change: func(_ *Workload, r *Restarts) { r.DeadMounts = false }, want: notOurs(ReasonNotRequested)},

		"no controller":    {change: func(w *Workload, _ *Restarts) { w.Owner = Owner{} }, want: refused(ReasonNoController, deadDetail+noController)},
		"setting off":      {change: func(_ *Workload, r *Restarts) { r.Enabled = false }, want: refused(ReasonOff, deadDetail+settingOff)},
		"kind blacklisted": {change: func(_ *Workload, r *Restarts) { r.Blacklist = []string{"apps/DaemonSet", "apps/StatefulSet"} }, want: refused(ReasonBlacklisted, deadDetail+"; apps/StatefulSet"+blacklisted)},
		"kind of other groups": {change: func(_ *Workload, r *Restarts) {
			r.Blacklist = []string{"/StatefulSet", "example.io/StatefulSet", "StatefulSet"}
		}, want: deadMount},
		"opted out": {change: func(w *Workload, _ *Restarts) { w.OptOut = true }, want: refused(ReasonLeftAlone, deadDetail+"; annotation fairlead.io/opt-out keeps Fairlead off: delete the pod yourself")},
		"paused": {change: func(_ *Workload, r *Restarts) { r.Paused = true },
			want: refused(ReasonPaused, deadDetail+"; restarts are paused: remove annotation fairlead.io/workload-restarts from the NetworkRollout, or delete the pod yourself")},
		"first of several reasons": {change: func(w *Workload, r *Restarts) { w.Owner, w.OptOut, r.Enabled = Owner{}, true, false }, want: refused(ReasonNoController, deadDetail+noController)},
	}.check(t, restartsAt60)
}

// A pod that came to the node after the namespace was first checked is judged with the zero namespace.
func TestJudgeWithoutNamespaceRestartsNoPod(t *testing.T) {
	must.Equal(t, Judge(user(shared("v")), NetworkNamespace{}, restartsAt60), Verdict{State: Alive, Reason: ReasonStartedAfter})
	starting := with(user(shared("v")), func(w *Workload) { w.Began, w.Mounted = time.Time{}, time.Time{} })
	must.Equal(t, Judge(starting, NetworkNamespace{}, restartsAt60), notStarted)
}

func TestJudgeAnswersRequestsToRemount(t *testing.T) {
	asked := func(m Mount, when time.Time, changes ...func(*Mount)) []Mount {
		m.RemountRequested = when
		for _, change := range changes {
			change(&m)
		}
		return []Mount{m}
	}
	restart := Verdict{State: Dead, Restart: true, Reason: ReasonRemountRequested, Detail: askedDetail}
	after := func(seconds time.Duration) Verdict {
		return with(restart, func(v *Verdict) { v.Restart, v.After = false, seconds*time.Second })
	}
	nothing := Verdict{State: NotOurs, Reason: ReasonNotRequested}
	judgements{
		"not requested":                      {want: nothing},
		"RWX":                                {mounts: asked(shared("v"), at(20)), want: restart},
		"RWO":                                {mounts: asked(rwo, at(20)), want: restart},
		"migratable":                         {mounts: asked(rwo, at(20), func(m *Mount) { m.Migratable = true }), want: restart},
		"last of several":                    {mounts: append([]Mount{rwo, shared("w")}, asked(rwo, at(20))...), want: restart},
		"just now":                           {mounts: asked(rwo, at(57)), want: after(2)},
		"the delay has just ended":           {mounts: asked(rwo, at(55)), want: restart},
		"the clock is behind":                {mounts: asked(rwo, at(100)), want: after(45)},
		"before the pod began":               {mounts: asked(rwo, at(2)), want: nothing},
		"in the second that the pod began":   {mounts: asked(rwo, at(3)), want: nothing},
		"no kubelet has the pod":             {mounts: asked(rwo, at(20)), change: func(w *Workload, _ *Restarts) { w.Began = time.Time{} }, want: nothing},
		"not mounted":                        {mounts: asked(rwo, at(20)), change: func(w *Workload, _ *Restarts) { w.Mounted = time.Time{} }, want: restart},
		"volume of another driver":           {mounts: asked(foreign, at(20)), want: nothing},
		"clients on the cluster network":     {mounts: asked(rwo, at(20)), change: func(_ *Workload, r *Restarts) { r.Applied = multus.Attachment{} }, want: restart},
		"terminating":                        {mounts: asked(rwo, at(20)), change: func(w *Workload, _ *Restarts) { w.Terminating = true }, want: Verdict{State: NotOurs, Reason: ReasonTerminating}},
		"requests are off":                   {mounts: asked(rwo, at(20)), change: func(_ *Workload, r *Restarts) { r.OnRequest = false }, want: nothing},
		"setting off has no delay":           {mounts: asked(rwo, at(57)), change: func(_ *Workload, r *Restarts) { r.Enabled = false }, want: refused(ReasonOff, askedDetail+settingOff)},
		"kind of the core group blacklisted": {mounts: asked(rwo, at(20)), change: blacklistController, want: refused(ReasonBlacklisted, askedDetail+"; /ReplicationController"+blacklisted)},
		"dead as well":                       {mounts: asked(shared("v"), at(20)), change: func(_ *Workload, r *Restarts) { r.DeadMounts = true }, want: restart},
		"dead, other requested before":       {mounts: append(asked(rwo, at(2)), shared("v")), change: func(_ *Workload, r *Restarts) { r.DeadMounts = true }, want: deadMount},
	}.check(t, with(restartsAt60, func(r *Restarts) { r.DeadMounts, r.OnRequest = false, true }))
}

func blacklistController(w *Workload, r *Restarts) {
	w.Owner.APIVersion, w.Owner.Kind, r.Blacklist = "v1", "ReplicationController", []string{"/ReplicationController"}
}

func TestWorkloadUsesTheVolumesItMounts(t *testing.T) {
	w := user(shared("v"), Mount{Volume: "own", Driver: "driver.longhorn.io"})
	for volume, want := range map[string]bool{"v": true, "own": true, "w": false, "": false} {
		must.Equal(t, w.Uses(volume), want, "%q", volume)
	}
}
