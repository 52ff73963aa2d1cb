package beside

import (
	"fmt"
	"testing"
	"time"

	"github.com/fairlead-io/fairlead/e2e/eventually"
	"github.com/fairlead-io/fairlead/e2e/sandbox"
)

// mountable waits until a volume can be mounted on the workloads' node.
func (s scene) mountable(volume string) error {
	return eventually.Until(s.ctx, volume+" to be mountable", attachTimeout, func() error { return s.Mountable(s.ctx, volume) })
}

// expectMountable wants a volume to be mountable on the workloads' node. Longhorn alone is only looked at.
func (s scene) expectMountable(volume string) {
	s.Helper()
	s.expectMountableOn(volume, s.Manager.pod.Spec.NodeName)
}

func (s scene) expectMountableOn(volume, node string) {
	s.Helper()
	within := attachTimeout
	if !one.installed {
		within = lookTimeout
	}
	err := eventually.Until(s.ctx, volume+" to be mountable on "+node, within, func() error { return s.MountableOn(s.ctx, volume, node) })
	if err != nil {
		s.report(err)
	}
}

// lookTimeout is what Longhorn takes to attach a volume whose workload is there: it does not watch its
// attachments for share managers, and looks every 30 s (v1.7.2, controller/share_manager_controller.go).
const lookTimeout = 45 * time.Second

// TestVolumeCreatedWhileEnablingWaitsIsMountable has another attached volume keep the
// networks from being applied.
func TestVolumeCreatedWhileEnablingWaitsIsMountable(t *testing.T) {
	eachWay(t, func(s scene) {
		s.volume("pvc-first", "rwx")
		s.must(s.mountable("pvc-first"))
		s.set(StorageNetwork, NetworkA)
		s.set(StorageNetworkForRWX, "true")
		if one.installed {
			s.waitPhase("Waiting")
		}
		s.must(s.mountable("pvc-first"))
		s.must(s.CreateVolume(s.ctx, "pvc-second", "rwx"))
		s.must(s.Use(s.ctx, "pvc-second"))
		s.expectMountable("pvc-second")
		if one.installed {
			rollout, err := s.rollout()
			s.must(err)
			s.Logf("it waits for: %s", rollout.Status.Message)
		}
		s.release("pvc-first")
		s.release("pvc-second")
		s.lookAgain()
		s.must(s.waitNetworks(s.On(NetworkA), OnStorage(NetworkA), one.installed))
		s.must(s.Use(s.ctx, "pvc-second"))
		s.must(s.mountable("pvc-second"))
		if err := s.servedOn("pvc-second", s.On(NetworkA)); err != nil {
			s.report(err)
		}
	})
}

// lookAgain has Longhorn alone look at its settings, which it would do within the hour:
// that a volume is detached does not wake it. Fairlead does.
func (s scene) lookAgain() {
	s.Helper()
	if !one.installed {
		s.must(s.Manager.Restart(s.ctx))
	}
}

// report is an error with Fairlead. Longhorn alone is only looked at.
func (s scene) report(err error) {
	s.Helper()
	if one.installed {
		s.Error(err)
	} else {
		s.Logf("Longhorn alone: %v", err)
	}
}

func (s scene) servedOn(volume, network string) error {
	server, err := s.Server(s.ctx, volume)
	if err == nil && Requested(server.Annotations) != network {
		err = fmt.Errorf("the server of %s asks for %q, want %q", volume, Requested(server.Annotations), network)
	}
	return err
}

// TestServerFailsOverWhileEnablingWaits deletes the server of the volume that is waited for.
func TestServerFailsOverWhileEnablingWaits(t *testing.T) {
	eachWay(t, func(s scene) {
		s.volume("pvc-moves", "rwx")
		s.must(s.mountable("pvc-moves"))
		s.set(StorageNetwork, NetworkA)
		s.set(StorageNetworkForRWX, "true")
		if one.installed {
			s.waitPhase("Waiting")
		}
		s.failOver("pvc-moves")
		s.expectMountable("pvc-moves")
		s.must(s.Manager.Restart(s.ctx))
		s.expectMountable("pvc-moves")
	})
}

// failOver deletes the server and waits for its successor to run.
func (s scene) failOver(volume string) {
	s.Helper()
	before, err := s.Server(s.ctx, volume)
	s.must(err)
	s.must(s.Client.Delete(s.ctx, before))
	s.must(eventually.Until(s.ctx, "another server of "+volume, attachTimeout, func() error {
		now, err := s.Server(s.ctx, volume)
		if err == nil && (now.UID == before.UID || !sandbox.IsReady(now)) {
			err = fmt.Errorf("pod %s of before is there, or not Ready", now.UID)
		}
		return err
	}))
	s.must(s.WaitServed(s.ctx, volume))
}
