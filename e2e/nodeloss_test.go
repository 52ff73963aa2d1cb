package e2e

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fairlead-io/fairlead/api/v1alpha1"
	"github.com/fairlead-io/fairlead/e2e/sandbox"
	"github.com/fairlead-io/fairlead/internal/cluster/csiaddons"
	"github.com/fairlead-io/fairlead/internal/fence"
)

// protectedDrivers fence for the nodes that protected volumes are lost with here.
var protectedDrivers = sandbox.CSIAddonsOptions{Drivers: []sandbox.CSIAddonsDriver{
	{
		Name: rbd, ClusterID: "rook-ceph", Client: cephFSID, ControllerNode: "node-3",
		Nodes: map[string][]string{"node-1": {"192.168.50.1/32"}, "node-2": {"192.168.50.2/32", "fd00:50::2/128"}},
	},
	{
		Name: cephfs, ClusterID: "rook-ceph", Client: cephFSID, ControllerNode: "node-3",
		Nodes: map[string][]string{"node-1": {"192.168.50.1/32"}, "node-2": {"192.168.50.2/32", "fd00:50::2/128"}},
	},
}}

// newFencingCluster is one whose Ceph volumes Fairlead protects.
func newFencingCluster(t *testing.T, fencing string) (*cluster, *sandbox.CSIAddons) {
	t.Helper()
	c := newControlPlane(t, options{nodes: 6, fastNodeLoss: true, fencing: fencing})
	c.runKubelets()
	csi := c.startCSIAddons(protectedDrivers)
	c.apply(cephSecret, rbdFenceClass, cephfsFenceClass)
	c.must(c.Install(t.Context(), sandbox.RookCeph))
	c.must(c.RunFairlead(t.Context(), 1, 1))
	for node := range protectedDrivers.Drivers[0].Nodes {
		c.waitPhase(node, v1alpha1.NodeHealthy)
	}
	return c, csi
}

// waitPhase waits until a node's record has come to a phase. A fence that has failed is
// asked for anew after 5 s, and at last every 2 min.
func (c *cluster) waitPhase(node string, phase v1alpha1.NodeFencePhase) v1alpha1.NodeFence {
	c.t.Helper()
	var record v1alpha1.NodeFence
	c.eventually(fmt.Sprintf("nodefence %s is %s", node, phase), 2*time.Minute, func() (err error) {
		if record, err = c.recordOf(node); err != nil {
			return err
		}
		if record.Status.Phase != phase {
			return fmt.Errorf("it is %s: %s: %s", record.Status.Phase, record.Status.Reason, record.Status.Message)
		}
		return nil
	})
	return record
}

// lossOf a node, as Fairlead marks the Node with it.
func lossOf(n *corev1.Node) string {
	for _, c := range n.Status.Conditions {
		if c.Type == corev1.NodeReady {
			return n.Status.NodeInfo.BootID + "@" + c.LastTransitionTime.UTC().Format(time.RFC3339)
		}
	}
	return ""
}

// recordOf returns the record of the machine that has the node's name. Where
// machines before it had the name too, that is the oldest that is still on record.
func (c *cluster) recordOf(node string) (v1alpha1.NodeFence, error) {
	var records v1alpha1.NodeFenceList
	if err := c.Client.List(c.t.Context(), &records); err != nil {
		return v1alpha1.NodeFence{}, err
	}
	records.Items = slices.DeleteFunc(records.Items, func(r v1alpha1.NodeFence) bool { return cmp.Or(r.Status.NodeName, r.Name) != node })
	if len(records.Items) == 0 {
		return v1alpha1.NodeFence{}, fmt.Errorf("node %s has no record", node)
	}
	return slices.MinFunc(records.Items, func(a, b v1alpha1.NodeFence) int {
		return a.CreationTimestamp.Compare(b.CreationTimestamp.Time)
	}), nil
}

// fencing in one line of configuration.
const fencing = `{profiles: [{name: rook-ceph}], returning: {readyFor: 3s}}`

// TestNodeLoss loses two nodes, each with a database on an RWO volume, at the same
// moment: one that Fairlead protects, and one where an operator sets the taint and
// nothing fences. It prints the two side by side, and goes on with the first one
// until its node is back. What Kubernetes does without either takes minutes: see
// TestForcedDetachGivesTwoWriters.
func TestNodeLoss(t *testing.T) {
	c, csi := newFencingCluster(t, fencing)
	safe := database{name: "safe", driver: rbd, clusterID: "rook-ceph", nodes: []string{"node-1", "node-2"}}
	tainted := database{name: "tainted", driver: "other.csi.example.com", clusterID: "x", nodes: []string{"node-3", "node-4"}}
	lost := map[string]string{}
	for _, d := range []database{safe, tainted} {
		lost[d.name] = c.runDatabase(d)
	}
	node := lost[safe.name]
	c.eventually("its volume is in the ledger", 30*time.Second, func() error {
		record := c.waitPhase(node, v1alpha1.NodeHealthy)
		if !slices.ContainsFunc(record.Status.Volumes, func(v v1alpha1.HeldVolume) bool { return v.PersistentVolume == safe.volume() }) || record.Status.Addresses == "" {
			return fmt.Errorf("it has %+v, addresses %q", record.Status.Volumes, record.Status.Addresses)
		}
		return nil
	})
	t.Log("\n" + c.kubectl("get", "nodefences"))

	f := c.film(&storagev1.VolumeAttachmentList{}, &corev1.PodList{}, &csiaddons.NetworkFenceList{})
	c.must(csi.Fail("fence", "the mons are away")) // so that the attachment is tried before the fence stands
	f.began = time.Now()
	for _, n := range lost {
		c.must(c.SwitchOff(t.Context(), n))
	}
	for _, n := range lost {
		c.waitReady(n, false)
	}
	notReady := time.Now()
	c.taint(node)
	c.taint(lost[tainted.name])

	t.Run("the volume is held, and its user is told why", func(t *testing.T) {
		c := &cluster{Sandbox: c.Sandbox, t: t}
		c.eventually("told in the pod's events", time.Minute, func() error {
			out := c.kubectl("describe", "pod", safe.pod().Name)
			for _, words := range []string{"FailedAttachVolume", "is lost and not fenced", node, "kubectl describe nodefence " + node} {
				if !strings.Contains(out, words) {
					return fmt.Errorf("it does not say %q:\n%s", words, out)
				}
			}
			return nil
		})
		if blocked, err := csi.Blocked("rook-ceph"); err != nil || len(blocked) > 0 {
			t.Errorf("%v is blocked: %v", blocked, err)
		}
		c.eventually("its record says what the driver says", 30*time.Second, func() error {
			if record := c.waitPhase(node, v1alpha1.NodeFencing); record.Status.Reason != fence.ReasonDriverFailed || !strings.Contains(record.Status.Message, "the mons are away") {
				return fmt.Errorf("it says %s: %s", record.Status.Reason, record.Status.Message)
			}
			return nil
		})
		t.Log("\n" + c.kubectl("get", "nodefences", "-o", "wide"))
		t.Log(lastEvent(c.kubectl("describe", "pod", safe.pod().Name)))
	})
	healed := time.Now()
	c.must(csi.Heal())
	fenced := f.wait(c, "fenced", 2*time.Minute, fencedOn(node))
	attached := f.wait(c, "attached elsewhere", 2*time.Minute, attachedTo(safe.volume(), safe.other(node)))
	up := f.wait(c, "up elsewhere", time.Minute, upOn(safe, safe.other(node)))
	if attached.revision <= fenced.revision {
		t.Errorf("it was attached to %s at revision %d, before the fence stood at %d", safe.other(node), attached.revision, fenced.revision)
	}
	// It was refused before. Kubernetes waits twice as long after each refusal, so about as long as it has tried.
	if late := attached.at.Sub(fenced.at); late > 2*time.Second+fenced.at.Sub(notReady) {
		t.Errorf("it was attached only %s after the fence stood, which was %s after the node was lost", late, fenced.at.Sub(notReady))
	}
	c.waitPhase(node, v1alpha1.NodeDrained)
	unsafe := f.wait(c, "the other one, without a fence", time.Minute, attachedTo(tainted.volume(), tainted.other(lost[tainted.name])))
	unsafeUp := f.wait(c, "the other one is up", time.Minute, upOn(tainted, tainted.other(lost[tainted.name])))

	t.Run("not let in before it has booted anew", func(t *testing.T) { c.comesBack(t, csi, f, safe, node) })

	since := func(at time.Time) string { return at.Sub(f.began).Round(10 * time.Millisecond).String() }
	t.Logf(`since the nodes were switched off:
                                     with Fairlead   taint alone
  Kubernetes says it is not Ready    %-15s %s
  tainted                            %-15s %s
  the storage can fence again        %-15s
  fenced                             %-15s never
  attached to another node           %-15s %s
  up on another node                 %-15s %s
  two writers possible until         never           for ever
attached %s after the fence stood`,
		since(notReady), since(notReady), since(notReady), since(notReady), since(healed),
		since(fenced.at), since(attached.at), since(unsafe.at), since(up.at), since(unsafeUp.at),
		attached.at.Sub(fenced.at).Round(time.Millisecond))
}

// comesBack brings the node back twice: as it was, and booted anew.
func (c *cluster) comesBack(t *testing.T, csi *sandbox.CSIAddons, f *film, d database, node string) {
	c = &cluster{Sandbox: c.Sandbox, t: t}
	blocked := func() int {
		list, err := csi.Blocked("rook-ceph")
		c.must(err)
		return len(list)
	}
	addresses := len(protectedDrivers.Drivers[0].Nodes[node])
	c.must(c.SwitchOn(t.Context(), node, false))
	c.waitReady(node, true)
	c.eventually("its record says that it has not booted", 30*time.Second, func() error {
		if record := c.waitPhase(node, v1alpha1.NodeFenced); record.Status.Reason != fence.ReasonNotRebooted {
			return fmt.Errorf("it says %s: %s", record.Status.Reason, record.Status.Message)
		}
		return nil
	})
	if out := c.refused("taint", "nodes", node, fence.OutOfServiceTaint+"-"); !strings.Contains(out, "has not booted since") {
		t.Errorf("taking the taint away: %s", out)
	}
	time.Sleep(5 * time.Second) // longer than it would have to be Ready
	if n := blocked(); n != addresses {
		t.Fatalf("%d addresses are blocked, want %d: it was let in without having booted", n, addresses)
	}

	c.must(c.SwitchOff(t.Context(), node))
	c.waitReady(node, false)
	c.must(c.SwitchOn(t.Context(), node, true))
	c.waitPhase(node, v1alpha1.NodeReturned)
	if n := blocked(); n != addresses {
		t.Fatalf("%d addresses are blocked, want %d: it was let in with its taint", n, addresses)
	}
	c.kubectl("taint", "nodes", node, fence.OutOfServiceTaint+"-")
	c.waitPhase(node, v1alpha1.NodeHealthy)
	if n := blocked(); n != 0 {
		t.Errorf("%d addresses are still blocked", n)
	}
	var left csiaddons.NetworkFenceList
	c.must(c.Client.List(t.Context(), &left))
	if len(left.Items) > 0 {
		t.Errorf("NetworkFences are left: %+v", left.Items)
	}
	// And it serves again: the pod moves back when the other node is drained.
	c.kubectl("cordon", d.other(node))
	c.kubectl("delete", "pod", d.pod().Name, "--wait=false") // another of its name comes
	if back := c.waitUp(d, d.other(node), time.Minute); back != node {
		t.Errorf("it is up on %s", back)
	}
	c.kubectl("uncordon", d.other(node))
}

// upOn fits the pod running with its volume on a node.
func upOn(d database, node string) func(moment) bool {
	return func(m moment) bool {
		pod, ok := m.object.(*corev1.Pod)
		return ok && m.what == watch.Modified && client.ObjectKeyFromObject(pod) == d.pod() && pod.Spec.NodeName == node && ready(pod)
	}
}

// lastEvent is the last line of what kubectl describes.
func lastEvent(described string) string {
	lines := strings.Split(strings.TrimSpace(described), "\n")
	return lines[len(lines)-1]
}
