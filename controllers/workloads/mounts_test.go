package workloads

import (
	"testing"
	"time"

	"github.com/fairlead-io/fairlead/api/v1alpha1"
	"github.com/fairlead-io/fairlead/internal/rwx"
	"github.com/fairlead-io/fairlead/internal/testkit/must"
)

// notApplied is a cluster whose network setting is off, with clients and servers on the cluster network.
func notApplied(w *world) {
	w.mountIn(false)
	rollout := w.rollout()
	rollout.Status.Clients.Network, rollout.Status.Servers.Network = "", ""
	w.put(rollout)
	for _, s := range w.slots {
		s.claims = []string{"plain"}
	}
}

func (w *world) wantMounts(place, before rwx.MountPlace) {
	w.Helper()
	var got v1alpha1.ClientMounts
	if m := w.rollout().Status.Clients.Mounts; m != nil {
		got = *m
	}
	must.True(w, got.Place == string(place) && got.Before == string(before), "recorded %+v, want %s after %q", got, place, before)
}

// A value of the setting is in effect for new mounts before the setting is applied.
func TestMountOnClusterNetworkDiesWhileTheSettingWaits(t *testing.T) {
	w := atRest(t, stateful(2), notApplied)
	w.wantMounts(rwx.InHost, "")
	w.newSandbox("node-1")
	w.wantRestarted() // mounts of the node live on

	w.mountIn(true)
	w.reconcile()
	w.wantMounts(rwx.InClient, rwx.InHost)
	w.Step(2 * time.Second)
	w.replacePod(w.slot("s1-0"), newest, true)
	w.Step(2 * time.Second)
	w.restart() // the next leader reads the record
	w.newSandbox("node-1")
	w.wantRestarted("s1-0")
	w.wantReasons(w.slot("s0-0").pod.uid)
}

// All containers of the client restarted one by one, and Multus reports an interface later.
func TestAddedInterfaceIsNoNewNamespace(t *testing.T) {
	w := atRest(t, stateful(1))
	c := w.clients["node-1"]
	c.containers = [2]time.Time{w.Now(), w.Now()}
	w.report(c)
	w.reconcile()
	c.ns.extra = true
	w.multus(c)
	w.wantRestarted()
	w.wantReasons(w.slot("s0-0").pod.uid)
}

// All sandboxes of a node die. The kubelet keeps the mounts, and the pod's new sandbox is as new as the client's.
func TestMountThatOutlivesItsSandboxIsReported(t *testing.T) {
	w := atRest(t, stateful(1))
	w.Step(2 * time.Second)
	w.killRuntime("node-1")
	p := w.slot("s0-0").pod
	w.reportWorkload(p)
	w.Step(2 * time.Second)
	w.newSandbox("node-1")
	for w.stepWorkload(p, newest) {
	}
	w.reportWorkload(p)
	w.restart() // the next leader reads the note
	w.wantRestarted()
	w.wantReasons(p.uid, "MountUnsure")
	w.Step(leftDead)
	w.wantRestarted()
	w.wantReasons(p.uid, "MountUnsure") // once
}

func TestPodsAfterARebootAreAlive(t *testing.T) {
	w := atRest(t, stateful(1))
	w.Step(2 * time.Second)
	w.reboot("node-1")
	w.Step(2 * time.Second)
	w.newSandbox("node-1")
	for p := w.slot("s0-0").pod; w.stepWorkload(p, newest); w.reportWorkload(p) {
	}
	w.wantRestarted()
	w.wantEvents()
}

// Fairlead was installed while the setting was on: no pod is restarted on suspicion.
func TestMountFromBeforeFairleadIsUnsure(t *testing.T) {
	w := atRest(t, stateful(1), notApplied, func(w *world) { w.mountIn(true) })
	w.newSandbox("node-1")
	w.wantRestarted()
	w.wantReasons(w.slot("s0-0").pod.uid, "MountUnsure")
}

// The setting is turned off and on again while it waits. Mounts from before were made in the plugin pod.
func TestMountFromBeforeAFlapIsReported(t *testing.T) {
	w := atRest(t, stateful(1), notApplied)
	w.mountIn(true)
	w.reconcile()
	w.Step(2 * time.Second)
	w.replacePod(w.slot("s0-0"), newest, true)
	for _, on := range []bool{false, true} {
		w.Step(2 * time.Second)
		w.mountIn(on)
		w.reconcile()
	}
	w.restart() // the next leader reads the record
	w.newSandbox("node-1")
	w.wantRestarted()
	w.wantReasons(w.slot("s0-0").pod.uid, "MountUnsure")
}

// The API server refuses the record while the setting is off. The pod is mounted through the node then.
func TestFlapThatCouldNotBeRecordedIsRecordedLater(t *testing.T) {
	w := atRest(t, stateful(1), notApplied)
	w.mountIn(true)
	w.reconcile()
	w.Step(2 * time.Second)
	w.failing = "before"
	w.mountIn(false)
	w.deliver(len(w.lag))
	w.work()
	w.replacePod(w.slot("s0-0"), newest, true)
	w.Step(2 * time.Second)
	w.failing = ""
	w.mountIn(true)
	w.newSandbox("node-1")
	w.wantRestarted()
	w.wantMounts(rwx.InClient, rwx.InHost)
}

// The setting changes twice before the API server takes a record. The pod is mounted through the node, after the second change.
func TestFlapsThatCouldNotBeRecordedLeaveMountsUnsure(t *testing.T) {
	w := atRest(t, stateful(1), notApplied)
	w.mountIn(false)
	w.reconcile()
	w.failing = "before"
	for _, inClient := range []bool{true, false} {
		w.Step(2 * time.Second)
		w.mountIn(inClient)
		w.deliver(len(w.lag))
		w.queue["node-1"] = true
		w.work()
	}
	w.Step(2 * time.Second)
	w.replacePod(w.slot("s0-0"), newest, true)
	w.Step(2 * time.Second)
	w.failing = ""
	w.mountIn(true)
	w.newSandbox("node-1")
	w.wantRestarted() // checkEviction fails if the pod is evicted
	w.wantMounts(rwx.InClient, rwx.InEither)
	w.wantReasons(w.slot("s0-0").pod.uid, "MountUnsure")
}

func TestRevertedSettingLeavesMountsUnsure(t *testing.T) {
	w := atRest(t, stateful(1), notApplied)
	w.mountIn(true)
	w.reconcile()
	w.Step(2 * time.Second)
	w.replacePod(w.slot("s0-0"), newest, true)
	w.Step(2 * time.Second)
	w.mountIn(false)
	w.reconcile()
	w.Step(2 * time.Second)
	w.newSandbox("node-1")
	w.wantRestarted()
	w.wantReasons(w.slot("s0-0").pod.uid, "MountUnsure")
}
