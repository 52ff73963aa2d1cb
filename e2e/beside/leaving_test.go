package beside

import (
	"fmt"
	"testing"
	"time"

	"github.com/fairlead-io/fairlead/e2e/eventually"
)

// TestServerFailsOverWhileLeavingTheNetwork moves the server of an attached volume, and
// restarts the manager, in both phases of leaving. It takes two minutes.
//
// Once the value is off, Longhorn mounts from the host's network, applied or not. So what
// counts is that the mounts that are there stay in reach until the volume is detached.
func TestServerFailsOverWhileLeavingTheNetwork(t *testing.T) {
	eachWay(t, func(s scene) {
		node := s.Manager.pod.Spec.NodeName
		s.set(StorageNetwork, NetworkA)
		s.set(StorageNetworkForRWX, "true")
		s.must(s.waitNetworks(s.On(NetworkA), OnStorage(NetworkA), one.installed))
		s.volume("pvc-leaves", "rwx")
		s.must(s.mountable("pvc-leaves"))
		s.set(StorageNetworkForRWX, "false")
		if one.installed {
			s.waitPhase("Waiting")
		}
		stays := func(when string) {
			s.Helper()
			err := eventually.Until(s.ctx, "the mounts of pvc-leaves to be in reach", 25*time.Second, func() error { return s.ReachedOn(s.ctx, "pvc-leaves", node) })
			if err != nil {
				s.report(fmt.Errorf("%s: %w", when, err))
			}
		}
		s.failOver("pvc-leaves")
		stays("failed over")
		if !one.installed {
			s.release("pvc-leaves")
			s.lookAgain()
			return
		}
		s.must(s.Manager.Restart(s.ctx))
		stays("the manager restarted")
		s.failOver("pvc-leaves")
		stays("failed over once more")
		s.volume("pvc-new", "rwx")
		s.must(s.mountable("pvc-new"))
		s.release("pvc-new")

		s.release("pvc-leaves")
		s.waitPhase("RollingClients")
		s.must(s.Use(s.ctx, "pvc-leaves"))
		s.must(s.mountable("pvc-leaves"))
		s.must(s.servedOn("pvc-leaves", ""))
		s.failOver("pvc-leaves")
		s.must(s.mountable("pvc-leaves"))
		s.must(s.Manager.Restart(s.ctx))
		s.must(s.mountable("pvc-leaves"))
		s.release("pvc-leaves")
		s.must(s.waitNetworks("", OnStorage(NetworkA), true))
	})
}
