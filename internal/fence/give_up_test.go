package fence

import (
	"strings"
	"testing"
	"time"

	"github.com/fairlead-io/fairlead/api/v1alpha1"
)

// goneMachine is fenced, nothing is left on it, and its Node is deleted.
func goneMachine(t *testing.T, g GiveUp) *story {
	s := fenced(t)
	s.Policy.GiveUp = g
	return s.deleteNode().look().wantGone()
}

func TestGoneMachineIsGivenUpByConfiguration(t *testing.T) {
	taken, after := GiveUp{AddressTaken: true}, GiveUp{After: time.Hour}
	const byNode7, longAgo = "its address 10.0.0.1 is one of node node-7 now", "it was lost more than 1h0m0s ago"
	wait := func(d time.Duration) func(*story) { return func(s *story) { s.pass(d) } }
	node7 := func(uuid string) func(*story) { return func(s *story) { s.beside(liveAt(uuid, "10.0.0.1")) } }
	recorded := func(isEarlier bool) func(*story) {
		o := liveAt("machine-7", "192.168.1.7")
		o.Status.Identities = list(identity(rbd, "a", "10.0.0.1/32"))
		o.Status.Identities[0].Addresses[0].Earlier = isEarlier
		return func(s *story) { s.beside(o) }
	}
	for name, c := range map[string]struct {
		when    GiveUp
		happens func(*story)
		because string // empty: it stays fenced
	}{
		"address taken":                  {taken, node7("machine-7"), byNode7},
		"address taken by a record":      {taken, recorded(false), byNode7},
		"lost long ago":                  {after, wait(time.Hour), longAgo},
		"address taken is no proof":      {after, node7("machine-7"), ""},
		"time is no proof":               {taken, wait(1000 * time.Hour), ""},
		"lost recently":                  {after, wait(59 * time.Minute), ""},
		"taken by the machine itself":    {taken, node7("machine-1"), ""},
		"taken by an unknown machine":    {taken, node7(""), ""},
		"taken by a lost node":           {taken, func(s *story) { s.do(node7("machine-7")).Others[0].Node.Ready = false }, ""},
		"former address of another node": {taken, recorded(true), ""},
		"former address of the machine":  {taken, func(s *story) { s.do(node7("machine-7")).Status.Identities[0].Addresses[0].Earlier = true }, ""},
		"pods are left":                  {after, func(s *story) { s.pass(time.Hour).Left = []string{"pod default/db"} }, ""},
		"failed fence":                   {after, func(s *story) { s.csiFails("no quorum").look().pass(time.Hour) }, ""},
		"Node exists": {after, func(s *story) {
			s.Node = readyNamed("node-1", "boot-1")
			s.pass(time.Hour).taint(true).Node.Ready = false
		}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			s := goneMachine(t, c.when).do(c.happens).look()
			if c.because == "" {
				s.wantThat(s.Status.Reason != ReasonOverridden && len(s.unfenced) == 0 && s.Status.Phase != v1alpha1.NodeUnfencing, "the machine stays fenced")
				return
			}
			s.want(v1alpha1.NodeUnfencing, ReasonOverridden, `unfencing the node: fencing.giveUp says "`+c.because+`"`)
			s.wantObjects(unfencedOf1)
			s.wantVolumes(0).answers(2).wantObjects().wantForgotten()
		})
	}
}

// The deletion of a Node during its unfencing is another loss, and no proof that the machine is off.
func TestMachineDeletedWhileUnfencingIsNotGivenUp(t *testing.T) {
	s := fenced(t)
	s.Policy.GiveUp = GiveUp{AddressTaken: true}
	s.bootUntainted("boot-2").wantUnfencing().dropNode().beside(liveAt("machine-7", "10.0.0.1")).look()
	s.wantThat(s.Status.Phase != v1alpha1.NodeUnfencing, "the machine is not given up")
}

func TestLookIsDueWhenMachineMayBeGivenUp(t *testing.T) {
	s := goneMachine(t, GiveUp{After: time.Hour})
	s.wantAfter(s.Status.LostSince.Add(time.Hour).Sub(s.Now))
}

// Unfencing waits for another fenced machine of the same address; the volumes are released at once.
func TestVolumesOfMachineGivenUpAreFreeAtOnce(t *testing.T) {
	s := goneMachine(t, GiveUp{After: time.Hour})
	s.beside(sharing("node-2", v1alpha1.NodeDrained, v1alpha1.FenceFenced)).pass(time.Hour).look()
	s.wantReason(ReasonSharedAddress).wantVolumes(0).wantThat(strings.Contains(s.Status.Message, "node-2"), "the message names node-2")
}

// The new owner of the address is not Ready for a moment.
func TestGivingUpThatHasBegunIsFinished(t *testing.T) {
	s := goneMachine(t, GiveUp{AddressTaken: true}).beside(liveAt("machine-7", "10.0.0.1"))
	s.look().wantObjects(unfencedOf1)
	s.Others[0].Node.Ready = false
	s.look().wantObjects(unfencedOf1).answers(2).wantObjects().wantForgotten()
}
