package fence

import (
	"testing"
	"time"

	"github.com/fairlead-io/fairlead/api/v1alpha1"
)

// Weeks later another machine may have its address, and its volumes be anywhere.
func TestMachineLostWhileSwitchedOffIsForgotten(t *testing.T) {
	s := lostStory(t)
	off := with(s.Policy, StoragePolicy{Mode: ModeOff})
	on := s.Policy
	s.Policy = off
	s.look()
	s.want(v1alpha1.NodeLost, ReasonNothingHeld, "the node is not Ready; no protected volume is on it")
	s.Policy = on
	s.look()
	s.wantHeld(true) // its object is there: it may come back with what it had
	s.Policy = off
	s.look()
	s.deleteNode().look()
	if len(s.Status.Volumes) > 0 || !s.step.Forget {
		t.Fatalf("it is remembered with %v", s.Status.Volumes)
	}
	s.Policy = on
	s.pass(30 * 24 * time.Hour).look()
	s.wantObjects()
	s.wantForgotten()
}

// What is fenced for a volume is taken back by what is on record of it.
func TestFencedMachineIsKeptWhileSwitchedOff(t *testing.T) {
	s := fenced(t)
	s.Policy = with(s.Policy, StoragePolicy{Mode: ModeOff})
	s.deleteNode().look()
	if len(s.Status.Volumes) != 1 || len(s.Status.Fences) != 1 || s.step.Forget {
		t.Fatalf("on record are %v and %v", s.Status.Volumes, s.Status.Fences)
	}
	s.wantObjects(fencedOf1)
}
