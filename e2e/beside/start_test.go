package beside

import "testing"

// TestSharedVolumeIsServed takes an RWX volume through its life on the cluster network.
func TestSharedVolumeIsServed(t *testing.T) {
	eachWay(t, func(s scene) {
		s.volume("pvc-life", "rwx")
		s.must(s.Eventually(s.ctx, "the volume to be mountable", attachTimeout, func() error { return s.Mountable(s.ctx, "pvc-life") }))
		s.must(s.Manager.Restart(s.ctx))
		s.must(s.Mountable(s.ctx, "pvc-life"))
		s.release("pvc-life")
		s.must(s.DeleteVolume(s.ctx, "pvc-life"))
	})
}
