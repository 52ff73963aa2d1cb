package fence

import (
	"fmt"
	"net/netip"
	"slices"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/fairlead-io/fairlead/api/v1alpha1"
	"github.com/fairlead-io/fairlead/internal/testkit/must"
)

var noon = time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)

func at(t time.Time) *metav1.Time { m := metav1.NewTime(t); return &m }

func addr(text string) netip.Addr { return netip.MustParseAddr(text) }

// allFenced is a configuration that protects the drivers of the tests.
func allFenced() Policy {
	return Policy{MaxAge: DefaultMaxAge, ReadyFor: DefaultReadyFor, Storages: func(driver string) (StoragePolicy, bool) {
		return StoragePolicy{Mode: ModeFence}, slices.Contains([]string{rbd, cephFS, other}, driver)
	}}
}

func with(p Policy, s StoragePolicy) Policy {
	p.Storages = func(string) (StoragePolicy, bool) { return s, true }
	return p
}

func readyNamed(name, boot string) Node {
	return Node{
		Name: name, Exists: true, Ready: true, ReadyChanged: noon.Add(-time.Hour), Addresses: []netip.Addr{addr("192.168.1.1")},
		Machine: v1alpha1.MachineIdentity{UID: "uid-1", BootID: boot, SystemUUID: "machine-1"},
	}
}

func identity(driver, clusterID string, cidrs ...string) v1alpha1.StorageIdentity {
	i := v1alpha1.StorageIdentity{Driver: driver, ClusterID: clusterID, Class: "fence-" + driver}
	for _, c := range cidrs {
		i.Addresses = append(i.Addresses, v1alpha1.ClientAddress{CIDR: c, Source: SourceCSIAddonsNode, LastSeen: metav1.NewTime(noon)})
	}
	return i
}

// liveAt is node-7, which works and has an address.
func liveAt(uuid, address string) Other {
	n := readyNamed("node-7", "boot-7")
	n.Machine.SystemUUID, n.Addresses[0] = uuid, addr(address)
	return Other{Record: n.Name, Node: n}
}

// sharing is a node that a fence of the address of node-1 is on record for.
func sharing(name string, phase v1alpha1.NodeFencePhase, state string) Other {
	theirs := v1alpha1.Fence{Name: "of-" + name, Incident: "x", Driver: rbd, ClusterID: "a", CIDRs: []string{"10.0.0.1/32"}, State: state}
	return Other{Record: name, Node: Node{Name: name}, Status: v1alpha1.NodeFenceStatus{Phase: phase, Incident: "x", Fences: []v1alpha1.Fence{theirs}}}
}

// keepsOut is what node-1 says while a node that shares its address is fenced.
func keepsOut(name string) string {
	return "its address 10.0.0.1/32 also keeps out node " + name + ", which may not be readmitted yet; if that machine is known to be off: " + OverrideCommand(name, GateUnfence)
}

// story is one node, its record and its NetworkFences. Its methods return the story, so that a test reads like one.
type story struct {
	*testing.T
	Facts
	step Step
	// created, unfenced and deleted NetworkFences at the last look.
	created, unfenced, deleted []string
	// made objects so far.
	made int
}

// healthy is a node with a volume of RBD, whose ledger has been recorded.
func healthy(t *testing.T) *story {
	s := &story{T: t, Facts: Facts{
		Now: noon, Record: "node-1", Node: readyNamed("node-1", "boot-1"), Policy: allFenced(), Classes: classes("fence-"),
		Ledger:  []v1alpha1.StorageIdentity{identity(rbd, "a", "10.0.0.1/32")},
		Holding: []v1alpha1.HeldVolume{held("pv-1", rbd, "a")},
	}}
	return s.look().wantHealthy()
}

// lost is that node, not Ready a minute later; Fairlead has not looked since.
func lost(t *testing.T) *story { return healthy(t).lose() }

func recordedLoss(t *testing.T) *story { return lost(t).look() }

// requested is that node, out of service, and its fence not confirmed.
func requested(t *testing.T) *story { return healthy(t).loseTainted() }

func fenced(t *testing.T) *story { return requested(t).answer().wantDrained() }

func (s *story) lose() *story {
	s.pass(time.Minute)
	s.Node.Ready, s.Node.ReadyChanged, s.Ledger = false, s.Now, nil
	return s
}

// loseTainted: the node is lost, and an operator says so.
func (s *story) loseTainted() *story { s.Helper(); return s.lose().taint(true).look() }

// loseWith a volume of another storage identity.
func (s *story) loseWith(driver, clusterID, cidr string) *story {
	s.Helper()
	s.Ledger, s.Holding = append(s.Ledger, identity(driver, clusterID, cidr)), append(s.Holding, held("pv-2", driver, clusterID))
	return s.look().loseTainted()
}

// returnSameBoot: the node is Ready again without a reboot.
func (s *story) returnSameBoot() *story {
	s.pass(time.Minute)
	s.Node.Ready, s.Node.ReadyChanged = true, s.Now
	return s.report(identity(rbd, "a", "10.0.0.1/32"))
}

func (s *story) boot(id string) *story {
	s.Helper()
	s.returnSameBoot()
	if s.Node.Machine.BootID = id; len(s.Status.Fences) > 0 {
		s.look() // from here on its readiness counts
	}
	return s
}

// bootUntainted: the node has rebooted, and nothing but Fairlead keeps it out any more.
func (s *story) bootUntainted(id string) *story {
	s.Helper()
	return s.boot(id).taint(false).pass(time.Minute).look()
}

func (s *story) pass(d time.Duration) *story                { s.Now = s.Now.Add(d); return s }
func (s *story) taint(on bool) *story                       { s.Node.OutOfService = on; return s }
func (s *story) hold(volumes ...v1alpha1.HeldVolume) *story { s.Holding = volumes; return s }
func (s *story) report(identities ...v1alpha1.StorageIdentity) *story {
	s.Ledger = identities
	return s
}
func (s *story) beside(others ...Other) *story      { s.Machines = others; return s }
func (s *story) objects(all ...NetworkFence) *story { s.Fences = all; return s }
func (s *story) store(p StoragePolicy) *story       { s.Policy = with(s.Policy, p); return s }
func (s *story) mode(m Mode) *story                 { return s.store(StoragePolicy{Mode: m}) }

// dropNode: Fairlead sees the Node until its deletion.
func (s *story) dropNode() *story { return s.drop(s.Node.Machine.BootID).look().pass(deletedFor) }

// dropNodeUnseen: Fairlead was away until after the deletion.
func (s *story) dropNodeUnseen() *story { return s.drop("").look().pass(deletedFor) }

// drop the Node a moment ago.
func (s *story) drop(lastBoot string) *story {
	s.LastBoot, s.Node = lastBoot, Node{Name: "node-1"}
	return s
}

// deleteNode: the Node and what the cluster shows on it go.
func (s *story) deleteNode() *story { return s.dropNode().hold() }

// look until there is nothing to do, as the controller does: what is recorded
// first, then what follows from it.
func (s *story) look() *story {
	s.Helper()
	s.created, s.unfenced, s.deleted = nil, nil, nil
	for range 20 {
		s.step = Next(s.Facts)
		if !equality.Semantic.DeepEqual(s.step.Status, s.Status) {
			s.Status = s.step.Status
			if s.Override.Scope != Scope(s.Status) {
				s.Override = Override{} // it was of another incident
			}
			continue
		}
		for _, n := range s.step.Create {
			_, there := s.object(n.Name)
			must.True(s, !there, "NetworkFence %s exists already", n.Name)
			s.made++
			n.UID, n.ResourceVersion = types.UID(fmt.Sprint("uid-", s.made)), "1"
			s.Fences, s.created = append(s.Fences, n), append(s.created, n.Name)
		}
		for _, n := range s.step.Unfence {
			s.change(n.Name, func(n *NetworkFence) { n.Unfenced = true })
			s.unfenced = append(s.unfenced, n.Name)
		}
		for _, n := range s.step.Delete {
			s.change(n.Name, func(n *NetworkFence) { n.Deleting = true })
			s.deleted = append(s.deleted, n.Name)
		}
		if len(s.step.Create)+len(s.step.Unfence)+len(s.step.Delete) == 0 {
			return s
		}
	}
	s.Fatalf("there is no end, at %+v", s.step)
	return s
}

func (s *story) change(name string, how func(*NetworkFence)) *story {
	s.Helper()
	i := slices.IndexFunc(s.Fences, func(n NetworkFence) bool { return n.Name == name })
	must.True(s, i >= 0, "there is no NetworkFence %s", name)
	s.Fences = slices.Clone(s.Fences)
	how(&s.Fences[i])
	return s
}

func (s *story) changeFirst(how func(*NetworkFence)) *story {
	s.Helper()
	return s.change(s.Fences[0].Name, how)
}

func deleting(n *NetworkFence)  { n.Deleting = true }
func succeeded(n *NetworkFence) { n.Result, n.Message = resultSucceeded, fencedMessage }

// csi is csi-addons having done all that is requested.
func (s *story) csi() *story { return s.csiSays(resultSucceeded, "") }

func (s *story) csiFails(message string) *story { return s.csiSays(resultFailed, message) }

func (s *story) csiSays(result, message string) *story {
	s.Fences = slices.DeleteFunc(slices.Clone(s.Fences), func(n NetworkFence) bool { return n.Deleting })
	for i := range s.Fences {
		n := &s.Fences[i]
		switch n.Result, n.Message = result, message; {
		case result == resultSucceeded && n.Unfenced:
			n.Message = unfencedMessage
		case result == resultSucceeded:
			n.Message = fencedMessage
		}
	}
	return s
}

// answer: csi-addons does what is requested, and Fairlead sees that.
func (s *story) answer() *story { s.Helper(); return s.csi().look() }

func (s *story) answers(times int) *story {
	s.Helper()
	for range times {
		s.answer()
	}
	return s
}

// withdraw until no fence is left; none may be in effect meanwhile.
func (s *story) withdraw() *story {
	s.Helper()
	for range 4 {
		for _, n := range s.Fences {
			must.True(s, n.Unfenced || n.Deleting, "NetworkFence %s blocks the node", n.Name)
		}
		s.answer()
	}
	s.wantObjects()
	must.True(s, len(s.Status.Fences) == 0, "still on record: %+v", s.Status.Fences)
	return s
}

func (s *story) override(gate string) *story {
	s.Override = Override{Gate: gate, By: "alice", Reason: "it is off", Scope: Scope(s.Status), At: s.Now}
	return s
}

func (s *story) want(phase v1alpha1.NodeFencePhase, reason, message string) *story {
	s.Helper()
	if got := s.Status; got.Phase != phase || got.Reason != reason || got.Message != message {
		s.Fatalf("got\n%s (%s): %s\nwant\n%s (%s): %s", got.Phase, got.Reason, got.Message, phase, reason, message)
	}
	return s
}

func (s *story) wantPhase(phase v1alpha1.NodeFencePhase, reason string) *story {
	s.Helper()
	return s.want(phase, reason, s.Status.Message)
}

func (s *story) wantReason(reason string) *story {
	s.Helper()
	return s.wantPhase(s.Status.Phase, reason)
}

func (s *story) wantHealthy() *story {
	s.Helper()
	return s.want(v1alpha1.NodeHealthy, ReasonReady, "")
}

func (s *story) wantFencing() *story {
	s.Helper()
	return s.want(v1alpha1.NodeFencing, ReasonFencing, "waiting for NetworkFence "+s.Fences[0].Name)
}

func (s *story) wantDrained() *story {
	s.Helper()
	return s.want(v1alpha1.NodeDrained, ReasonDrained, "fenced, and its pods and attachments are gone; reboot it to bring it back")
}

func (s *story) wantGone() *story {
	s.Helper()
	return s.want(v1alpha1.NodeDrained, ReasonNodeDeleted, stayingFenced)
}

func (s *story) wantTainted() *story {
	s.Helper()
	return s.want(v1alpha1.NodeReturned, ReasonTainted, "the node has rebooted; to readmit the node: kubectl taint nodes node-1 node.kubernetes.io/out-of-service-")
}

func (s *story) wantSettling() *story {
	s.Helper()
	return s.want(v1alpha1.NodeReturned, ReasonSettling, "the node has rebooted; it is readmitted once it has been Ready for 1m0s")
}

func (s *story) wantUnfencing() *story {
	s.Helper()
	return s.want(v1alpha1.NodeUnfencing, ReasonUnfencing, "unfencing the node")
}

// wantObjects compares the NetworkFences as "state CIDRs class".
func (s *story) wantObjects(want ...string) *story {
	s.Helper()
	var got []string
	for _, n := range s.Fences {
		state := "Fenced"
		if n.Unfenced {
			state = "Unfenced"
		}
		if n.Deleting {
			state = "Deleting"
		}
		got = append(got, fmt.Sprintf("%s %v %s", state, n.CIDRs, n.Class))
	}
	must.True(s, slices.Equal(got, want), "got NetworkFences %q, want %q", got, want)
	return s
}

// attach asks the gate for the volume of the story, on another node.
func (s *story) attach() *Held {
	v := pv("pv-1", rbd, "h-1", "a", "ReadWriteOnce")
	return Attach(v, "node-2", []Holder{{Node: s.Node, Status: s.Status, Override: s.Override}, {Node: readyNamed("node-2", "boot-2")}}, s.Policy)
}

func (s *story) wantHeld(held bool) *story {
	s.Helper()
	got := s.attach()
	must.True(s, (got != nil) == held, "in phase %s (%s), the gate says %+v", s.Status.Phase, s.Status.Reason, got)
	return s
}

func (s *story) wantForgotten() *story {
	s.Helper()
	return s.wantThat(s.step.Forget, "the record is forgotten")
}
func (s *story) wantWarning() *story {
	s.Helper()
	return s.wantThat(s.step.Warning, "an operator is warned")
}

func (s *story) wantAfter(d time.Duration) *story {
	s.Helper()
	return s.wantThat(s.step.After == d, fmt.Sprint("the next look is after ", d))
}

func (s *story) wantThat(is bool, what string) *story {
	s.Helper()
	must.True(s, is, "not so: %s: %+v\n%+v", what, s.step, s.Status)
	return s
}

func (s *story) do(how func(*story)) *story { s.Helper(); how(s); return s }

func (s *story) own(own bool) *story { s.Node.OwnTaint = own; return s }

func (s *story) wantRemovesTaint() *story {
	s.Helper()
	return s.wantThat(s.step.RemoveTaint, "Fairlead removes its taint")
}

func (s *story) wantVolumes(count int) *story {
	s.Helper()
	return s.wantThat(len(s.Status.Volumes) == count, fmt.Sprintf("it holds %d of %v", count, s.Status.Volumes))
}

// take the node's name, as another machine.
func (s *story) take(machine, address string) *story {
	s.pass(time.Minute)
	n := readyNamed("node-1", "boot-of-"+machine)
	n.Machine.UID, n.Machine.SystemUUID = "uid-of-"+n.Machine.UID, machine
	n.ReadyChanged, n.Addresses[0] = s.Now, addr(address)
	s.Replaced, s.Machines = true, append(s.Machines, Other{Record: "node-1-0", Node: n})
	return s.drop(s.Node.Machine.BootID).hold().report()
}

// classes of the drivers of the stories and of the models.
func classes(prefix string) (all []Class) {
	for _, driver := range []string{rbd, cephFS, other} {
		for _, cluster := range []string{"a", "b"} {
			all = append(all, Class{prefix + driver, driver, cluster})
		}
	}
	return all
}
