package fence

import (
	"strings"
	"testing"
	"time"

	"github.com/fairlead-io/fairlead/api/v1alpha1"
)

// goneMachine is fenced, nothing is left on it, and its Node is deleted.
func goneMachine(t *testing.T) *story {
	s := fenced(t)
	s.Policy.GiveUpAfter = time.Hour
	return s.deleteNode().look().wantGone()
}

func TestGoneMachineIsGivenUpByConfiguration(t *testing.T) {
	for name, c := range map[string]struct {
		happens func(*story)
		givenUp bool
	}{
		"lost long ago":     {func(s *story) { s.pass(time.Hour) }, true},
		"lost recently":     {func(s *story) { s.pass(59 * time.Minute) }, false},
		"its address taken": {func(s *story) { s.beside(liveAt("machine-7", "10.0.0.1")) }, false},
		"pods are left":     {func(s *story) { s.pass(time.Hour).Left = []string{"pod default/db"} }, false},
		"failed fence":      {func(s *story) { s.csiFails("no quorum").look().pass(time.Hour) }, false},
		"Node exists": {func(s *story) {
			s.Node = readyNamed("node-1", "boot-1")
			s.pass(time.Hour).taint(true).Node.Ready = false
		}, false},
	} {
		t.Run(name, func(t *testing.T) {
			s := goneMachine(t).do(c.happens).look()
			if !c.givenUp {
				s.wantThat(s.Status.Reason != ReasonOverridden && len(s.unfenced) == 0 && s.Status.Phase != v1alpha1.NodeUnfencing, "the machine stays fenced")
				return
			}
			s.want(v1alpha1.NodeUnfencing, ReasonOverridden, `unfencing the node: fencing.giveUp says "it was lost more than 1h0m0s ago"`)
			s.wantObjects(unfencedOf1)
			s.wantVolumes(0).answers(2).wantObjects().wantForgotten()
		})
	}
}

// The deletion of a Node during its unfencing is another loss, and no proof that the machine is off.
func TestMachineDeletedWhileUnfencingIsNotGivenUp(t *testing.T) {
	s := fenced(t)
	s.Policy.GiveUpAfter = time.Hour
	s.bootUntainted("boot-2").wantUnfencing().dropNode().look()
	s.wantThat(s.Status.Phase != v1alpha1.NodeUnfencing, "the machine is not given up")
}

func TestGoneMachineStaysFencedByDefault(t *testing.T) {
	s := goneMachine(t)
	s.Policy.GiveUpAfter = 0
	s.pass(1000 * time.Hour).look().wantGone().wantAfter(0)
}

func TestLookIsDueWhenMachineMayBeGivenUp(t *testing.T) {
	s := goneMachine(t)
	s.wantAfter(s.Status.LostSince.Add(time.Hour).Sub(s.Now))
}

// Unfencing waits for another fenced machine of the same address; the volumes are released at once.
func TestVolumesOfMachineGivenUpAreFreeAtOnce(t *testing.T) {
	s := goneMachine(t)
	s.beside(sharing("node-2", v1alpha1.NodeDrained, v1alpha1.FenceFenced)).pass(time.Hour).look()
	s.wantReason(ReasonSharedAddress).wantVolumes(0).wantThat(strings.Contains(s.Status.Message, "node-2"), "the message names node-2")
}

// A pod of the machine is shown for a moment.
func TestGivingUpThatHasBegunIsFinished(t *testing.T) {
	s := goneMachine(t).pass(time.Hour).look().wantObjects(unfencedOf1)
	s.Left = []string{"pod default/db"}
	s.look().wantObjects(unfencedOf1).answers(2).wantObjects().wantForgotten()
}
