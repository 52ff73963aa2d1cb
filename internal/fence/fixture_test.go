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

const (
	cephFS = "rook-ceph.cephfs.csi.ceph.com"
	other  = "other.rbd.csi.ceph.com"

	fencedOf1   = "Fenced [10.0.0.1/32] fence-" + rbd
	unfencedOf1 = "Unfenced [10.0.0.1/32] fence-" + rbd
	deletingOf1 = "Deleting [10.0.0.1/32] fence-" + rbd
)

var (
	noon    = time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	record1 = RecordName("node-1", bootOf("machine-1", "boot-1"))
)

func at(t time.Time) *metav1.Time { m := metav1.NewTime(t); return &m }

func addr(text string) netip.Addr { return netip.MustParseAddr(text) }

func bootOf(machine, boot string) v1alpha1.Boot {
	return v1alpha1.Boot{SystemUUID: machine, BootID: boot}
}

func pv(name, driver, clusterID string, modes ...string) Volume {
	return Volume{Name: name, Driver: driver, Handle: "image of " + name, ClusterID: clusterID, AccessModes: modes}
}

func held(name, driver, clusterID string) v1alpha1.HeldVolume {
	return pv(name, driver, clusterID).Held()
}

// allFenced is a configuration that protects the drivers of the tests.
func allFenced() Policy {
	return Policy{MaxAge: DefaultMaxAge, ReadyFor: DefaultReadyFor, Storages: func(driver string) (StoragePolicy, bool) {
		return StoragePolicy{Mode: ModeFence}, slices.Contains([]string{rbd, cephFS, other}, driver)
	}}
}

func readyNode(name, machine, boot, address string) Node {
	return Node{Name: name, Exists: true, UID: "uid-1", Boot: bootOf(machine, boot), Ready: true, ReadyChanged: noon.Add(-time.Hour), Addresses: []netip.Addr{addr(address)}}
}

func identity(driver, clusterID string, cidrs ...string) v1alpha1.StorageIdentity {
	i := v1alpha1.StorageIdentity{Driver: driver, ClusterID: clusterID, Class: "fence-" + driver}
	for _, c := range cidrs {
		i.Addresses = append(i.Addresses, v1alpha1.ClientAddress{CIDR: c, Source: SourceCSIAddonsNode, LastSeen: metav1.NewTime(noon)})
	}
	return i
}

func earlier(i v1alpha1.StorageIdentity, cidrs ...string) v1alpha1.StorageIdentity {
	for _, c := range cidrs {
		i.Addresses = append(i.Addresses, v1alpha1.ClientAddress{CIDR: c, Source: SourceCSIAddonsNode, LastSeen: metav1.NewTime(noon), Earlier: true})
	}
	return i
}

func list(identities ...v1alpha1.StorageIdentity) []v1alpha1.StorageIdentity { return identities }

// liveAt is node-7, which works and has an address.
func liveAt(address string) Other {
	return Other{Record: "node-7", Node: readyNode("node-7", "machine-7", "boot-7", address)}
}

// sharing is a lost node that a fence of the address of node-1 is on record for.
func sharing(name, state string) Other {
	theirs := v1alpha1.Fence{Name: "of-" + name, Driver: rbd, ClusterID: "a", CIDRs: []string{"10.0.0.1/32"}, State: state}
	return Other{Record: name, Node: Node{Name: name}, Spec: v1alpha1.NodeFenceSpec{Fences: []v1alpha1.Fence{theirs}}}
}

// story is one node name, its boots and the NetworkFences. Its methods return the story, so that a test reads like one.
type story struct {
	*testing.T
	// Facts of the boot that the story is about. Holding is what the cluster shows under the name, and Node what has it now.
	Facts
	Status     v1alpha1.NodeFenceStatus
	rest       []Record // of other boots
	neighbours []Other  // of other names
	last       Deletion // of a Node that is gone, if that was seen
	forgotten  bool
	step       Step
	void       *v1alpha1.Act // at the last look
	// created, unfenced and deleted NetworkFences at the last look.
	created, unfenced, deleted []string
	// made objects so far.
	made int
}

// healthy is a node with a volume of RBD, whose ledger has been recorded.
func healthy(t *testing.T) *story {
	s := &story{T: t, Facts: Facts{Now: noon, Node: readyNode("node-1", "machine-1", "boot-1", "192.168.1.1"), Policy: allFenced(), HeardSince: noon.Add(-time.Hour)}, forgotten: true}
	for _, driver := range []string{rbd, cephFS, other} {
		s.Classes = append(s.Classes, Class{"fence-" + driver, driver, "a"}, Class{"fence-" + driver, driver, "b"})
	}
	return s.report(identity(rbd, "a", "10.0.0.1/32")).hold(held("pv-1", rbd, "a")).look().follow().is(saysHealthy)
}

// lost is that node, not Ready a minute later; Fairlead has not looked since.
func lost(t *testing.T) *story { return healthy(t).lose() }

func recordedLoss(t *testing.T) *story { return lost(t).look() }

// requested is that node, out of service, and its fence not confirmed.
func requested(t *testing.T) *story { return healthy(t).loseTainted() }

func fenced(t *testing.T) *story { return requested(t).answer().is(saysDrained) }

func (s *story) lose() *story {
	s.pass(time.Minute)
	s.Node.Ready, s.Node.ReadyChanged = false, s.Now
	return s
}

// loseTainted: the node is lost, and a person says so.
func (s *story) loseTainted() *story { s.Helper(); return s.lose().taint(true).look() }

// loseWith a volume of another storage identity.
func (s *story) loseWith(driver, clusterID, cidr string) *story {
	s.Helper()
	s.Ledger = append(s.Ledger, identity(driver, clusterID, cidr))
	return s.hold(append(s.Holding, held("pv-2", driver, clusterID))...).look().loseTainted()
}

// comeBack in the same boot.
func (s *story) comeBack() *story {
	s.pass(time.Minute)
	s.Node.Ready, s.Node.ReadyChanged = true, s.Now
	return s.report(identity(rbd, "a", "10.0.0.1/32"))
}

// boot again, with nothing mounted.
func (s *story) boot(id string) *story {
	s.Helper()
	s.Node.Boot.BootID = id
	return s.hold().comeBack().look()
}

// bootUntainted: the node has rebooted, and nothing but Fairlead keeps it out any more.
func (s *story) bootUntainted(id string) *story {
	s.Helper()
	return s.boot(id).taint(false).look().pass(DefaultReadyFor).look()
}

// register again, in a boot.
func (s *story) register(boot string) *story {
	s.pass(time.Minute)
	s.Node = readyNode("node-1", "machine-1", boot, "192.168.1.1")
	s.Node.UID, s.Node.ReadyChanged = "uid-2", s.Now
	return s.hold(s.Holding...).report(identity(rbd, "a", "10.0.0.1/32"))
}

// replace the machine: another one takes the node's name.
func (s *story) replace(machine, address string, cidrs ...string) *story {
	s.pass(time.Minute)
	s.Node = readyNode("node-1", machine, "boot-of-"+machine, address)
	s.Node.UID, s.Node.ReadyChanged = "uid-2", s.Now
	return s.hold().report(identity(rbd, "a", cidrs...))
}

// drop the Node a moment ago. Fairlead saw that.
func (s *story) drop() *story {
	s.last, s.Node = Deletion{UID: s.Node.UID, Boot: s.Node.Boot, ReadyChanged: s.Node.ReadyChanged, At: s.Now}, Node{Name: "node-1"}
	return s
}

func (s *story) dropNode() *story { s.Helper(); return s.drop().look().pass(deletedFor) }

// dropUnseen: Fairlead was away until after the deletion.
func (s *story) dropUnseen() *story {
	s.Helper()
	s.drop().last = Deletion{}
	return s.look().pass(deletedFor)
}

// deleteNode: the Node and what the cluster shows on it go.
func (s *story) deleteNode() *story { s.Helper(); return s.dropNode().hold() }

func (s *story) pass(d time.Duration) *story { s.Now = s.Now.Add(d); return s }
func (s *story) taint(on bool) *story        { s.Node.OutOfService, s.Node.OwnTaint = on, false; return s }
func (s *story) ownTaint() *story            { s.Node.OutOfService, s.Node.OwnTaint = true, true; return s }
func (s *story) do(how func(*story)) *story  { s.Helper(); how(s); return s }

// hold volumes: they are attached and in use.
func (s *story) hold(volumes ...v1alpha1.HeldVolume) *story {
	s.Holding, s.Node.InUse, s.Node.Attached = volumes, nil, nil
	for _, v := range volumes {
		s.Node.InUse = append(s.Node.InUse, UniqueName(v.Driver, v.VolumeHandle))
	}
	s.Node.Attached = slices.Clone(s.Node.InUse)
	return s
}

func (s *story) report(all ...v1alpha1.StorageIdentity) *story { s.Ledger = all; return s }
func (s *story) beside(others ...Other) *story                 { s.neighbours = others; return s }
func (s *story) objects(all ...NetworkFence) *story            { s.Fences = all; return s }
func (s *story) mode(m Mode) *story                            { return s.store(StoragePolicy{Mode: m}) }
func (s *story) store(p StoragePolicy) *story {
	s.Policy.Storages = func(string) (StoragePolicy, bool) { return p, true }
	return s
}

func (s *story) request(gate string) *story {
	s.Request = Request{Gate: gate, By: "alice", Reason: "it is off", At: s.Now}
	return s
}

// act: a person asks, and Fairlead carries it out.
func (s *story) act(gate string) *story { s.Helper(); return s.request(gate).look() }

func (s *story) namesakes() Namesakes {
	n := Namesakes{Node: s.Node, Last: s.last, Shown: s.Holding, Records: slices.Clone(s.rest)}
	if s.Node.Exists {
		n.Last = Deletion{}
	}
	if !s.forgotten {
		n.Records = append(n.Records, Record{s.Record, s.RecordUID, s.Spec, s.Status, s.Request})
	}
	return n
}

// look until there is nothing to do, as the controller does: what is recorded first, then what follows from it.
func (s *story) look() *story {
	s.Helper()
	s.void, s.created, s.unfenced, s.deleted = nil, nil, nil, nil
	for range 50 {
		if !s.round() {
			return s
		}
	}
	s.Fatalf("there is no end, at %+v", s.step)
	return s
}

func (s *story) round() (did bool) {
	s.Helper()
	n := s.namesakes()
	if f, missing := n.Missing(s.Now, s.Policy); missing {
		s.made++
		s.rest = append(s.rest, Record{Name: f.Record, UID: fmt.Sprint("record-", s.made), Spec: f.Spec})
		return true
	}
	for i, r := range n.Records {
		f, own := n.Of(i), i == len(s.rest)
		f.Now, f.Started, f.Policy, f.Classes, f.Fences, f.Ledger = s.Now, s.Started, s.Policy, s.Classes, s.Fences, s.Ledger
		if f.HeardSince = s.HeardSince; !s.Started.IsZero() {
			f.HeardSince = s.Started // no leader has looked for longer
		}
		f.Left, f.OldAttachments, f.OldPods, f.Servers, f.Report = s.Left, s.OldAttachments, s.OldPods, s.Servers, s.Report
		f.SelfFencing, f.NoCSIAddons, f.SilentManager, f.Asking = s.SelfFencing, s.NoCSIAddons, s.SilentManager, s.Asking
		f.Machines = append(Machines(map[string]*Namesakes{n.Node.Name: &n}), s.neighbours...)
		step := Next(f)
		writes := step.Consumed || !equality.Semantic.DeepEqual(step.Spec, r.Spec)
		if own {
			s.step, s.Spec, s.Status = step, step.Spec, step.Status
			if s.Machines = f.Machines; step.Consumed {
				s.Request, s.void = Request{}, step.Void
			}
		} else if s.rest[i].Spec, s.rest[i].Status = step.Spec, step.Status; step.Consumed {
			s.rest[i].Request = Request{}
		}
		switch {
		case writes || s.carryOut(step):
			return true
		case step.Forget && own:
			s.forgotten = true
			return true
		case step.Forget:
			s.rest = slices.Delete(slices.Clone(s.rest), i, i+1)
			return true
		}
	}
	return false
}

func (s *story) carryOut(step Step) bool {
	s.Helper()
	for _, n := range step.Create {
		_, there := s.object(n.Name)
		must.True(s, !there, "NetworkFence %s exists already", n.Name)
		s.made++
		n.UID, n.ResourceVersion = types.UID(fmt.Sprint("fence-", s.made)), "1"
		s.Fences, s.created = append(s.Fences, n), append(s.created, n.Name)
	}
	for _, n := range step.Unfence {
		s.change(n.Name, func(n *NetworkFence) { n.Unfenced = true })
		s.unfenced = append(s.unfenced, n.Name)
	}
	for _, n := range step.Delete {
		s.change(n.Name, deleting)
		s.deleted = append(s.deleted, n.Name)
	}
	return len(step.Create)+len(step.Unfence)+len(step.Delete) > 0
}

// tale is what happens in a story, and what is wanted then.
type tale[T any] struct {
	happens func(*story)
	want    T
}

// tales of one beginning: each is a subtest.
func tales[T any](t *testing.T, begins func(*testing.T) *story, all map[string]tale[T], check func(*story, T)) {
	t.Helper()
	for name, c := range all {
		t.Run(name, func(t *testing.T) { check(begins(t).do(c.happens), c.want) })
	}
}

// follow the boot that the Node shows.
func (s *story) follow() *story {
	s.Helper()
	n := s.namesakes()
	i := n.present()
	must.True(s, i >= 0, "there is no record of boot %s", s.Node.Boot.BootID)
	r := n.Records[i]
	s.rest = slices.Delete(n.Records, i, i+1)
	s.forgotten, s.Record, s.RecordUID, s.Spec, s.Status, s.Request = false, r.Name, r.UID, r.Spec, r.Status, r.Request
	return s.look()
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

// withdraw until no fence is left; none may be in effect meanwhile.
func (s *story) withdraw() *story {
	s.Helper()
	for range 4 {
		for _, n := range s.Fences {
			must.True(s, n.Unfenced || n.Deleting, "NetworkFence %s blocks the node", n.Name)
		}
		s.answer()
	}
	return s.wantObjects().wantThat(len(s.Spec.Fences) == 0, "no fence is on record")
}

// saying is what a record says.
type saying struct {
	phase           v1alpha1.NodeFencePhase
	reason, message string
}

var (
	saysHealthy   = saying{v1alpha1.NodeHealthy, ReasonReady, ""}
	saysDrained   = saying{v1alpha1.NodeDrained, ReasonDrained, "fenced, and its pods and attachments are gone; reboot it to bring it back"}
	saysGone      = saying{v1alpha1.NodeDrained, ReasonNodeDeleted, stayingFenced}
	saysUnfencing = saying{v1alpha1.NodeUnfencing, ReasonUnfencing, "unfencing the node"}
)

func (s *story) is(want saying) *story {
	s.Helper()
	return s.want(want.phase, want.reason, want.message)
}

func (s *story) want(phase v1alpha1.NodeFencePhase, reason, message string) *story {
	s.Helper()
	got := saying{s.Status.Phase, s.Status.Reason, s.Status.Message}
	must.True(s, got == saying{phase, reason, message}, "got\n%+v\nwant\n%+v", got, saying{phase, reason, message})
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

func (s *story) wantFencing() *story {
	s.Helper()
	return s.want(v1alpha1.NodeFencing, ReasonFencing, "waiting for NetworkFence "+s.Fences[0].Name)
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
	v := pv("pv-1", rbd, "a", "ReadWriteOnce")
	elsewhere := Holder{Node: readyNode("node-2", "machine-2", "boot-2", "192.168.1.2")}
	return Attach(v, "node-2", append(s.namesakes().Holders(v), elsewhere), s.Policy)
}

func (s *story) wantHeld(held bool) *story {
	s.Helper()
	got := s.attach()
	must.True(s, (got != nil) == held, "in phase %s (%s), the gate says %+v", s.Status.Phase, s.Status.Reason, got)
	return s
}

func (s *story) wantWarning() *story {
	s.Helper()
	return s.wantThat(s.step.Warning, "a person is warned")
}
func (s *story) wantForgotten() *story { s.Helper(); return s.wantThat(s.forgotten, "it is forgotten") }

func (s *story) wantAfter(d time.Duration) *story {
	s.Helper()
	return s.wantThat(s.step.After == d, fmt.Sprint("the next look is after ", d))
}

func (s *story) wantVolumes(n int) *story {
	s.Helper()
	return s.wantThat(len(s.Spec.Volumes) == n, fmt.Sprint("volumes on record: ", n))
}

func (s *story) wantThat(is bool, what string) *story {
	s.Helper()
	must.True(s, is, "not so: %s; it is %s (%s): %s; volumes %+v, fences %+v", what, s.Status.Phase, s.Status.Reason, s.Status.Message, s.Spec.Volumes, s.Spec.Fences)
	return s
}
