package workloads

import (
	"testing"
	"time"

	"github.com/fairlead-io/fairlead/api/v1alpha1"
	"github.com/fairlead-io/fairlead/internal/storage"
)

// notApplied is a cluster whose network setting is off, and clients on the cluster network.
func notApplied(w *world) {
	w.mountIn(false)
	rollout := storageObjects()[0].(*v1alpha1.NetworkRollout)
	rollout.Status.Clients.Network, rollout.Status.Servers.Network = "", ""
	w.put(rollout)
	for _, s := range w.slots {
		s.claims, s.byValue = []string{"plain"}, true
	}
}

func (w *world) mounts() v1alpha1.ClientMounts {
	w.Helper()
	if m := w.rollout().Status.Clients.Mounts; m != nil {
		return *m
	}
	return v1alpha1.ClientMounts{}
}

// The value of the setting is in force for mounts at once, whatever it waits for.
func TestMountOnClusterNetworkDiesWhileTheSettingWaits(t *testing.T) {
	w := atRest(t, stateful(2), notApplied)
	if got := w.mounts(); got.Place != string(storage.InHost) || got.Before != "" {
		t.Fatalf("noted %+v", got)
	}
	w.newSandbox("node-1")
	w.look()
	w.mustLeave() // mounts of the node live on

	w.mountIn(true)
	w.look()
	if got := w.mounts(); got.Place != string(storage.InClient) || got.Before != string(storage.InHost) {
		t.Fatalf("noted %+v", got)
	}
	w.now = w.now.Add(2 * time.Second)
	w.podUp(w.slot("s1-0"), func(able []*netns) *netns { return able[0] }, true)
	w.now = w.now.Add(2 * time.Second)
	w.restart() // what was noted is known to the next leader
	w.newSandbox("node-1")
	w.look()
	w.mustLeave("s1-0")
	if told := w.events[w.slot("s0-0").pod.uid]; told != nil {
		t.Fatalf("of the mount of the node is said %q", told)
	}
}

// Installed where the setting is on already: no pod is restarted on suspicion.
func TestMountFromBeforeFairleadIsUnsure(t *testing.T) {
	w := atRest(t, stateful(1), notApplied, func(w *world) { w.mountIn(true) })
	w.events = map[string][]string{}
	w.newSandbox("node-1")
	w.look()
	w.mustLeave()
	if told := w.events[w.slot("s0-0").pod.uid]; len(told) != 1 || told[0] != "MountUnsure" {
		t.Fatalf("told %q", told)
	}
}

// Taken back before it was applied: what is mounted in clients is not restarted, and told.
func TestRevertedSettingLeavesMountsUnsure(t *testing.T) {
	w := atRest(t, stateful(1), notApplied)
	w.mountIn(true)
	w.look()
	w.now = w.now.Add(2 * time.Second)
	w.podUp(w.slot("s0-0"), func(able []*netns) *netns { return able[0] }, true)
	w.now = w.now.Add(2 * time.Second)
	w.mountIn(false)
	w.look()
	w.now = w.now.Add(2 * time.Second)
	w.newSandbox("node-1")
	w.look()
	w.mustLeave()
	if told := w.events[w.slot("s0-0").pod.uid]; len(told) != 1 || told[0] != "MountUnsure" {
		t.Fatalf("told %q", told)
	}
}
