package storage

import (
	"testing"
	"time"
)

const (
	autoDelete = "auto-delete-pod-when-volume-detached-unexpectedly"
	isDead     = "volume v was mounted before 2026-01-01T12:00:10Z, when the network of the CSI plugin pod on its node was recreated: its NFS mount does not answer"
	isUnsure   = "volume v was mounted about 2026-01-01T12:00:10Z, when the network of the CSI plugin pod on its node was recreated; if it does not answer, delete the pod"
	isAsked    = "the storage system asks to mount volume v again"
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

func TestJudge(t *testing.T) {
	// The client's network namespace began at second 10.
	namespace := NetworkNamespace{"two", at(10)}
	rwo := Mount{Volume: "own", Driver: "driver.longhorn.io"}
	migratable := Mount{Volume: "vm", Driver: "driver.longhorn.io", Migratable: true}
	foreign := Mount{Volume: "elsewhere", Driver: "ebs.csi.aws.com", Shared: true, Network: netA}
	noDriver := Mount{}
	onCluster := Mount{Volume: "plain", Driver: "driver.longhorn.io", Shared: true}
	dead := Verdict{State: Dead, Restart: true, Reason: ReasonDeadMount, Detail: isDead}
	for name, test := range map[string]struct {
		workload Workload
		but      func(*Workload, *Restarts)
		want     Verdict
	}{
		"mounted before the namespace began": {workload: user(shared("v")), want: dead},
		"mounted after it, begun before it: by which client, nobody knows": {
			workload: user(shared("v")), but: func(w *Workload, _ *Restarts) { w.Mounted = at(12) },
			want: Verdict{State: Unsure, Reason: ReasonStartedAbout, Detail: isUnsure},
		},
		"mounted in the same second": {
			workload: user(shared("v")), but: func(w *Workload, _ *Restarts) { w.Mounted = at(10) },
			want: Verdict{State: Unsure, Reason: ReasonStartedAbout, Detail: isUnsure},
		},
		"begun in the same second": {
			workload: user(shared("v")), but: func(w *Workload, _ *Restarts) { w.Began, w.Mounted = at(10), at(12) },
			want: Verdict{State: Unsure, Reason: ReasonStartedAbout, Detail: isUnsure},
		},
		"the second before": {workload: user(shared("v")), but: func(w *Workload, _ *Restarts) { w.Mounted = at(9) }, want: dead},
		"begun after it, Longhorn bug: a pod created after the client's deletion": {
			workload: user(shared("v")), but: func(w *Workload, _ *Restarts) { w.Began, w.Mounted = at(11), at(12) },
			want: Verdict{State: Alive, Reason: ReasonStartedAfter},
		},
		"begun after it, yet to mount": {
			workload: user(shared("v")), but: func(w *Workload, _ *Restarts) { w.Began, w.Mounted = at(11), time.Time{} },
			want: Verdict{State: Alive, Reason: ReasonStartedAfter},
		},
		"not mounted yet: looked at again": {
			workload: user(shared("v")), but: func(w *Workload, _ *Restarts) { w.Mounted = time.Time{} },
			want: Verdict{State: NotYet, Reason: ReasonNotStarted, After: 5 * time.Second},
		},
		"no kubelet has taken it on yet": {
			workload: user(shared("v")), but: func(w *Workload, _ *Restarts) { w.Began, w.Mounted = time.Time{}, time.Time{} },
			want: Verdict{State: NotYet, Reason: ReasonNotStarted, After: 5 * time.Second},
		},
		"restarted since, perhaps with its node": {
			workload: user(shared("v")), but: func(w *Workload, _ *Restarts) { w.Mounted, w.Restarted = at(12), true },
			want: Verdict{State: Alive, Reason: ReasonStartedAfter},
		},
		"restarted, mounted before: what crashes may crash for its dead mount": {
			workload: user(shared("v")), but: func(w *Workload, _ *Restarts) { w.Restarted = true }, want: dead,
		},
		"already terminating": {
			workload: user(shared("v")), but: func(w *Workload, _ *Restarts) { w.Terminating = true },
			want: Verdict{State: NotOurs, Reason: ReasonTerminating},
		},

		"no volume":                      {workload: user(), want: Verdict{State: NotOurs, Reason: ReasonOtherDriver}},
		"a volume of another driver":     {workload: user(foreign), want: Verdict{State: NotOurs, Reason: ReasonOtherDriver}},
		"a volume of no driver":          {workload: user(noDriver), want: Verdict{State: NotOurs, Reason: ReasonOtherDriver}},
		"an RWO volume":                  {workload: user(rwo), want: Verdict{State: NotOurs, Reason: ReasonNotShared}},
		"Longhorn bug: migratable":       {workload: user(migratable), want: Verdict{State: NotOurs, Reason: ReasonMigratable}},
		"a volume off the network":       {workload: user(onCluster), want: Verdict{State: NotOurs, Reason: ReasonClusterNetwork}},
		"an RWO volume of Longhorn last": {workload: user(foreign, rwo), want: Verdict{State: NotOurs, Reason: ReasonNotShared}},
		"RWX beside all of these":        {workload: user(foreign, rwo, shared("v"), migratable, onCluster, noDriver), want: dead},
		"several, sorted, and each once": {
			workload: user(shared("w"), shared("v"), shared("w")),
			want: Verdict{State: Dead, Restart: true, Reason: ReasonDeadMount, Detail: "volume v, w was mounted before 2026-01-01T12:00:10Z, " +
				"when the network of the CSI plugin pod on its node was recreated: its NFS mount does not answer"},
		},
		"clients on the cluster network: mounts live in the node's own": {
			workload: user(shared("v")), but: func(_ *Workload, r *Restarts) { r.Applied = Attachment{} },
			want: Verdict{State: NotOurs, Reason: ReasonNotApplied},
		},

		"no controller": {
			workload: user(shared("v")), but: func(w *Workload, _ *Restarts) { w.Owner = Owner{} },
			want: Verdict{State: Dead, Reason: ReasonNoController, Detail: isDead + "; the pod has no controller that would recreate it: delete and create it yourself"},
		},
		"the setting is off": {
			workload: user(shared("v")), but: func(_ *Workload, r *Restarts) { r.Enabled = false },
			want: Verdict{State: Dead, Reason: ReasonOff, Detail: isDead + "; setting " + autoDelete + " is off: delete the pod, or turn it on"},
		},
		"Longhorn bug: a kind that is blacklisted": {
			workload: user(shared("v")), but: func(_ *Workload, r *Restarts) { r.Blacklist = []string{"apps/DaemonSet", "apps/StatefulSet"} },
			want: Verdict{State: Dead, Reason: ReasonBlacklisted, Detail: isDead + "; apps/StatefulSet is in blacklist-for-" + autoDelete + ": delete the pod yourself"},
		},
		"a kind of that name in another group": {
			workload: user(shared("v")), but: func(_ *Workload, r *Restarts) {
				r.Blacklist = []string{"/StatefulSet", "example.io/StatefulSet", "StatefulSet"}
			}, want: dead,
		},
		"a kind of the core group": {
			workload: user(shared("v")), but: func(w *Workload, r *Restarts) {
				w.Owner.APIVersion, w.Owner.Kind, r.Blacklist = "v1", "ReplicationController", []string{"/ReplicationController"}
			},
			want: Verdict{State: Dead, Reason: ReasonBlacklisted, Detail: isDead + "; /ReplicationController is in blacklist-for-" + autoDelete + ": delete the pod yourself"},
		},
		"opted out": {
			workload: user(shared("v")), but: func(w *Workload, _ *Restarts) { w.OptOut = true },
			want: Verdict{State: Dead, Reason: ReasonLeftAlone, Detail: isDead + "; annotation fairlead.io/opt-out keeps Fairlead off: delete the pod yourself"},
		},
		"of several reasons the first that its owner can do nothing about": {
			workload: user(shared("v")), but: func(w *Workload, r *Restarts) {
				w.Owner, w.OptOut, r.Enabled = Owner{}, true, false
			},
			want: Verdict{State: Dead, Reason: ReasonNoController, Detail: isDead + "; the pod has no controller that would recreate it: delete and create it yourself"},
		},
		"nobody looks for dead mounts": {
			workload: user(shared("v")), but: func(_ *Workload, r *Restarts) { r.DeadMounts = false },
			want: Verdict{State: NotOurs, Reason: ReasonNotRequested},
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := test.workload
			r := Restarts{Driver: "driver.longhorn.io", Enabled: true, Applied: netA, DeadMounts: true, Now: at(60)}
			if test.but != nil {
				test.but(&w, &r)
			}
			if got := Judge(w, namespace, r); got != test.want {
				t.Fatalf("got  %+v\nwant %+v", got, test.want)
			}
		})
	}
}

// What came to the node after the namespace was looked at first is judged with none.
func TestJudgeWithoutANamespaceRestartsNobody(t *testing.T) {
	r := Restarts{Driver: "driver.longhorn.io", Enabled: true, Applied: netA, DeadMounts: true, Now: at(60)}
	if got, want := Judge(user(shared("v")), NetworkNamespace{}, r), (Verdict{State: Alive, Reason: ReasonStartedAfter}); got != want {
		t.Fatalf("got %+v, want %+v", got, want)
	}
	starting := with(user(shared("v")), func(w *Workload) { w.Began, w.Mounted = time.Time{}, time.Time{} })
	if got, want := Judge(starting, NetworkNamespace{}, r), (Verdict{State: NotYet, Reason: ReasonNotStarted, After: 5 * time.Second}); got != want {
		t.Fatalf("got %+v, want %+v", got, want)
	}
}

func TestJudgeAnswersRequestsToRemount(t *testing.T) {
	asked := func(m Mount, when time.Time) Mount { return with(m, func(m *Mount) { m.RemountRequested = when }) }
	rwo := Mount{Volume: "v", Driver: "driver.longhorn.io"}
	restart := Verdict{State: Dead, Restart: true, Reason: ReasonRemountRequested, Detail: isAsked}
	nothing := Verdict{State: NotOurs, Reason: ReasonNotRequested}
	for name, test := range map[string]struct {
		workload Workload
		but      func(*Workload, *Restarts)
		want     Verdict
	}{
		"nobody asked":             {workload: user(shared("v")), want: nothing},
		"asked, and long ago":      {workload: user(asked(shared("v"), at(20))), want: restart},
		"an RWO volume just so":    {workload: user(asked(rwo, at(20))), want: restart},
		"a migratable one just so": {workload: user(asked(with(rwo, func(m *Mount) { m.Migratable = true }), at(20))), want: restart},
		"one of several":           {workload: user(rwo, shared("w"), asked(rwo, at(20))), want: restart},
		"asked just now: others may be asked for in a moment": {
			workload: user(asked(rwo, at(57))),
			want:     Verdict{State: Dead, Reason: ReasonRemountRequested, Detail: isAsked, After: 2 * time.Second},
		},
		"the delay is over to the moment": {workload: user(asked(rwo, at(55))), want: restart},
		"a clock that is behind": {
			workload: user(asked(rwo, at(100))),
			want:     Verdict{State: Dead, Reason: ReasonRemountRequested, Detail: isAsked, After: 45 * time.Second},
		},
		"the pod began after it was asked for":     {workload: user(asked(rwo, at(2))), want: nothing},
		"the pod began in that second":             {workload: user(asked(rwo, at(3))), want: nothing},
		"a pod that no kubelet has taken on":       {workload: with(user(asked(rwo, at(20))), func(w *Workload) { w.Began = time.Time{} }), want: nothing},
		"a pod that is yet to mount":               {workload: with(user(asked(rwo, at(20))), func(w *Workload) { w.Mounted = time.Time{} }), want: restart},
		"a volume of another driver":               {workload: user(asked(with(rwo, func(m *Mount) { m.Driver = "ebs.csi.aws.com" }), at(20))), want: nothing},
		"clients on the cluster network, the same": {workload: user(asked(rwo, at(20))), but: func(_ *Workload, r *Restarts) { r.Applied = Attachment{} }, want: restart},
		"terminating": {
			workload: user(asked(rwo, at(20))), but: func(w *Workload, _ *Restarts) { w.Terminating = true },
			want: Verdict{State: NotOurs, Reason: ReasonTerminating},
		},
		"requests are not answered here": {workload: user(asked(rwo, at(20))), but: func(_ *Workload, r *Restarts) { r.OnRequest = false }, want: nothing},
		"the setting is off, and then there is nothing to wait for": {
			workload: user(asked(rwo, at(57))), but: func(_ *Workload, r *Restarts) { r.Enabled = false },
			want: Verdict{State: Dead, Reason: ReasonOff, Detail: isAsked + "; setting " + autoDelete + " is off: delete the pod, or turn it on"},
		},
		"a kind that is blacklisted": {
			workload: user(asked(rwo, at(20))), but: func(_ *Workload, r *Restarts) { r.Blacklist = []string{"apps/StatefulSet"} },
			want: Verdict{State: Dead, Reason: ReasonBlacklisted, Detail: isAsked + "; apps/StatefulSet is in blacklist-for-" + autoDelete + ": delete the pod yourself"},
		},
		"asked for, and dead as well: one reason is enough": {
			workload: user(asked(shared("v"), at(20))), but: func(_ *Workload, r *Restarts) { r.DeadMounts = true }, want: restart,
		},
		"dead, and another volume was asked for before the pod began": {
			workload: user(shared("v"), asked(rwo, at(2))), but: func(_ *Workload, r *Restarts) { r.DeadMounts = true },
			want: Verdict{State: Dead, Restart: true, Reason: ReasonDeadMount, Detail: isDead},
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := test.workload
			r := Restarts{Driver: "driver.longhorn.io", Enabled: true, Applied: netA, OnRequest: true, Now: at(60)}
			if test.but != nil {
				test.but(&w, &r)
			}
			if got := Judge(w, NetworkNamespace{"two", at(10)}, r); got != test.want {
				t.Fatalf("got  %+v\nwant %+v", got, test.want)
			}
		})
	}
}

func TestOwnerGroupKindIsWrittenAsInLonghornsBlacklist(t *testing.T) {
	for want, owner := range map[string]Owner{
		"apps/StatefulSet":                {APIVersion: "apps/v1", Kind: "StatefulSet"},
		"batch/Job":                       {APIVersion: "batch/v1", Kind: "Job"},
		"/ReplicationController":          {APIVersion: "v1", Kind: "ReplicationController"},
		"kubevirt.io/VirtualMachine":      {APIVersion: "kubevirt.io/v1alpha3", Kind: "VirtualMachine"},
		"/":                               {},
		"a.very.long.group.example/Thing": {APIVersion: "a.very.long.group.example/v1beta2", Kind: "Thing"},
	} {
		if got := owner.GroupKind(); got != want {
			t.Errorf("%+v: got %q, want %q", owner, got, want)
		}
	}
}

func TestAWorkloadUsesTheVolumesThatItMounts(t *testing.T) {
	w := user(shared("v"), Mount{Volume: "own", Driver: "driver.longhorn.io"})
	for volume, want := range map[string]bool{"v": true, "own": true, "w": false, "": false} {
		if got := w.Uses(volume); got != want {
			t.Errorf("%q: got %v", volume, got)
		}
	}
	if !(Owner{}).IsZero() || w.Owner.IsZero() {
		t.Error("a pod without a controller and one with one are not told apart")
	}
}
