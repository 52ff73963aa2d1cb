package beside

import (
	"fmt"
	"testing"
)

// TestVolumeCreatedWhileClientsRollIsMountable makes Multus late on the network, so that
// the clients' roll-out lasts, and creates and uses a volume in the midst of it.
func TestVolumeCreatedWhileClientsRollIsMountable(t *testing.T) {
	s := with(t)
	s.delayNetwork("3s")
	defer s.delayNetwork("")
	s.set(StorageNetwork, NetworkA)
	s.set(StorageNetworkForRWX, "true")
	s.waitPhase("RollingClients")
	s.must(s.CreateVolume(s.ctx, "pvc-midst", "rwx"))
	s.must(s.Use(s.ctx, "pvc-midst"))
	rollout, err := s.rollout()
	s.must(err)
	s.Logf("used while the roll-out was at %s: %s", rollout.Status.Phase, rollout.Status.Message)
	s.expectMountable("pvc-midst")
	s.must(s.waitAttachment("pvc-midst", true)) // as in volume
	s.must(s.Manager.Restart(s.ctx))
	s.failOver("pvc-midst")
	s.expectMountable("pvc-midst")
	s.release("pvc-midst")
	s.must(s.waitNetworks(s.On(NetworkA), OnStorage(NetworkA), true))
}

// delayNetwork has Multus attach pods to NetworkA only after a while.
func (s scene) delayNetwork(delay string) {
	s.Helper()
	value := "null"
	if delay != "" {
		value = fmt.Sprintf("%q", delay)
	}
	out, err := s.Kubectl(s.ctx, "", "-n", "kube-system", "patch", "network-attachment-definitions", "storage-net", "--type=merge",
		"-p", fmt.Sprintf(`{"metadata":{"annotations":{"simulator.fairlead.io/delay":%s}}}`, value))
	if err != nil {
		s.Fatalf("%v: %s", err, out)
	}
}
