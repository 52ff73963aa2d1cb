package beside

import (
	"bytes"
	"testing"

	"github.com/fairlead-io/fairlead/e2e/sandbox"
)

// TestFairleadInstalledAndRemovedUnderAnAttachedVolume has Longhorn on the network before
// Fairlead comes, and after it has gone.
func TestFairleadInstalledAndRemovedUnderAnAttachedVolume(t *testing.T) {
	s := without(t)
	s.set(StorageNetwork, NetworkA)
	s.set(StorageNetworkForRWX, "true")
	s.must(s.waitNetworks(s.On(NetworkA), OnStorage(NetworkA), false))
	s.volume("pvc-there", "rwx")
	s.must(s.mountable("pvc-there"))

	start := s.mark()
	s.change(true)
	s.must(s.waitNetworks(s.On(NetworkA), OnStorage(NetworkA), true))
	s.must(s.mountable("pvc-there"))
	s.neverEmptied("pvc-there", start)
	s.failOver("pvc-there")
	s.must(s.mountable("pvc-there"))

	s.waitSilent()
	start = s.mark()
	s.change(false)
	s.must(s.mountable("pvc-there"))
	s.neverEmptied("pvc-there", start)
	s.failOver("pvc-there")
	s.must(s.mountable("pvc-there"))
}

// neverEmptied wants that no write of Fairlead's took all addresses from a volume.
func (s scene) neverEmptied(volume string, from Mark) {
	s.Helper()
	for _, w := range s.since(from, ByFairlead) {
		if w.Object() == "endpoints/"+volume && w.Code < 300 && w.Verb != "create" && !containsAddress(w) {
			s.Errorf("the addresses of an attached volume were taken away: %s", w)
		}
	}
}

func containsAddress(w sandbox.Write) bool {
	return w.Verb != "delete" && bytes.Contains(w.Response, []byte(`"addresses":[`))
}
