package e2e

import (
	"fmt"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"

	"github.com/fairlead-io/fairlead/api/v1alpha1"
	"github.com/fairlead-io/fairlead/e2e/sandbox"
	"github.com/fairlead-io/fairlead/internal/fence"
	"github.com/fairlead-io/fairlead/internal/reads/csiaddons"
)

// protectedDrivers can fence node-1 and node-2.
var protectedDrivers = sandbox.CSIAddonsOptions{Drivers: []sandbox.CSIAddonsDriver{cephDriver(rbd, "node-1", "node-2"), cephDriver(cephfs, "node-1", "node-2")}}

// newFencingCluster has Ceph volumes that Fairlead protects.
func newFencingCluster(t *testing.T, fencing string) (*cluster, *sandbox.CSIAddons) {
	t.Helper()
	c := newControlPlane(t, options{nodes: 6, fastNodeLoss: true, fencing: fencing})
	c.runUntilStopped(c.RunKubelets)
	csi := c.startCSIAddons(protectedDrivers)
	c.apply(cephSecret, rbdFenceClass, cephfsFenceClass)
	c.must(c.Install(t.Context(), sandbox.RookCeph))
	c.must(c.RunFairlead(t.Context(), 1, 1))
	for _, node := range []string{"node-1", "node-2"} {
		c.waitPhase(node, v1alpha1.NodeHealthy)
	}
	return c, csi
}

// waitPhase waits until a node's record has a phase. Fairlead retries a failed fence after 5 s, later every 2 min.
func (c *cluster) waitPhase(node string, phase v1alpha1.NodeFencePhase) (record v1alpha1.NodeFence) {
	c.t.Helper()
	c.eventually(fmt.Sprintf("NodeFence %s in phase %s", node, phase), 2*time.Minute, func() (err error) {
		if record, err = c.recordOf(node); err == nil && record.Status.Phase != phase {
			err = fmt.Errorf("phase %s: %s: %s", record.Status.Phase, record.Status.Reason, record.Status.Message)
		}
		return err
	})
	return record
}

// waitReason waits until a node's record has a phase for a reason, and returns its message.
func (c *cluster) waitReason(node string, phase v1alpha1.NodeFencePhase, reason string) (message string) {
	c.t.Helper()
	c.waitIs("reason of NodeFence "+node, 30*time.Second, reason, func() any {
		s := c.waitPhase(node, phase).Status
		message = s.Message
		return s.Reason
	})
	return message
}

// waitRecorded waits until the record of a healthy node has the volume and the driver's addresses.
func (c *cluster) waitRecorded(node string, d database) {
	c.t.Helper()
	c.eventually("volume on record of "+node, 30*time.Second, func() error {
		record := c.waitPhase(node, v1alpha1.NodeHealthy)
		s := record.Spec
		held := slices.ContainsFunc(s.Volumes, func(v v1alpha1.HeldVolume) bool { return v.PersistentVolume == d.volume() })
		known := slices.ContainsFunc(s.Identities, func(i v1alpha1.StorageIdentity) bool { return i.Driver == d.driver && len(i.Addresses) > 0 })
		if !held || !known || record.Status.Addresses == "" {
			return fmt.Errorf("on record: %+v, %+v, addresses %q", s.Volumes, s.Identities, record.Status.Addresses)
		}
		return nil
	})
}

// lossOf returns the value by which Fairlead marks a Node with its loss.
func lossOf(n *corev1.Node) string {
	i := slices.IndexFunc(n.Status.Conditions, func(c corev1.NodeCondition) bool { return c.Type == corev1.NodeReady })
	return n.Status.NodeInfo.BootID + "@" + n.Status.Conditions[i].LastTransitionTime.UTC().Format(time.RFC3339)
}

// recordOf returns the oldest record of a node's name: of a boot that is over, or of a machine that had the name before.
func (c *cluster) recordOf(node string) (v1alpha1.NodeFence, error) {
	var records v1alpha1.NodeFenceList
	if err := c.Client.List(c.t.Context(), &records); err != nil {
		return v1alpha1.NodeFence{}, err
	}
	records.Items = slices.DeleteFunc(records.Items, func(r v1alpha1.NodeFence) bool { return r.Spec.NodeName != node })
	if len(records.Items) == 0 {
		return v1alpha1.NodeFence{}, fmt.Errorf("node %s has no record", node)
	}
	return slices.MinFunc(records.Items, func(a, b v1alpha1.NodeFence) int { return a.CreationTimestamp.Compare(b.CreationTimestamp.Time) }), nil
}

func (c *cluster) waitBlocked(csi *sandbox.CSIAddons, want int) {
	c.t.Helper()
	c.waitIs("number of blocked addresses", 30*time.Second, want, func() any { return c.blocked(csi) })
}

// blocked counts the addresses that the storage refuses now.
func (c *cluster) blocked(csi *sandbox.CSIAddons) int {
	c.t.Helper()
	list, err := csi.Blocked("rook-ceph")
	c.must(err)
	return len(list)
}

// notReadmitted wants the node to stay blocked for longer than the 3 s that a readmitted node has to be Ready.
func (c *cluster) notReadmitted(csi *sandbox.CSIAddons, node string) {
	c.t.Helper()
	time.Sleep(5 * time.Second) // nothing announces that no readmission follows
	if n, want := c.blocked(csi), len(cidrsOf[node]); n != want {
		c.t.Fatalf("%d addresses of %s are blocked, want %d: it was readmitted", n, node, want)
	}
}

// readmit reboots a fenced node, removes the operator's taint and waits until the node is healthy and unblocked.
func (c *cluster) readmit(csi *sandbox.CSIAddons, node string) {
	c.t.Helper()
	c.must(c.SwitchOn(c.t.Context(), node, true))
	c.waitPhase(node, v1alpha1.NodeReturned)
	if n, want := c.blocked(csi), len(cidrsOf[node]); n != want {
		c.t.Fatalf("%d addresses of %s are blocked, want %d: it was readmitted with its taint", n, node, want)
	}
	c.kubectl("taint", "nodes", node, fence.OutOfServiceTaint+"-")
	c.waitPhase(node, v1alpha1.NodeHealthy)
	c.waitBlocked(csi, 0)
}

// fencing in one line of configuration.
const fencing = `{profiles: [{name: rook-ceph}], returning: {readyFor: 3s}}`

// TestNodeLoss loses two nodes at once, each with a database on an RWO volume. Fairlead protects one; the other has
// an operator's taint alone. The first node then returns, and is lost once more by the documented commands.
// TestForcedDetachGivesTwoWriters shows what Kubernetes does without fence and taint.
func TestNodeLoss(t *testing.T) {
	c, csi := newFencingCluster(t, fencing)
	safe := database{name: "safe", driver: rbd, clusterID: "rook-ceph", nodes: []string{"node-1", "node-2"}}
	tainted := database{name: "tainted", driver: "other.csi.example.com", clusterID: "x", nodes: []string{"node-3", "node-4"}}
	node, second := c.runDatabase(safe), c.runDatabase(tainted)
	c.waitRecorded(node, safe)

	f := c.film(&storagev1.VolumeAttachmentList{}, &corev1.PodList{}, &csiaddons.NetworkFenceList{})
	c.must(csi.Fail("fence", "the mons are away")) // the attachment is tried before the fence is in effect
	f.began = time.Now()
	for _, n := range []string{node, second} {
		c.must(c.SwitchOff(t.Context(), n))
	}
	for _, n := range []string{node, second} {
		c.waitReady(n, false)
	}
	notReady := time.Now()
	c.taint(node)
	c.taint(second)

	c.run("pod events explain why the volume is held", func(t *testing.T, c *cluster) {
		c.waitPrints(time.Minute, []string{"describe", "pod", safe.pod().Name}, "FailedAttachVolume", "is lost and not fenced", node, "kubectl describe nodefence "+node+"-")
		c.waitBlocked(csi, 0)
		c.has(c.waitReason(node, v1alpha1.NodeFencing, fence.ReasonDriverFailed), "the mons are away")
		t.Log("\n" + c.kubectl("get", "nodefences", "-o", "wide"))
	})
	healed := time.Now()
	c.must(csi.Heal())
	fenced := f.wait(c, "fenced", 2*time.Minute, fencedOn(node))
	attached := f.wait(c, "attached elsewhere", 2*time.Minute, attachedTo(safe.volume(), safe.other(node)))
	up := f.wait(c, "up elsewhere", time.Minute, upOn(safe, safe.other(node)))
	if attached.revision <= fenced.revision {
		t.Errorf("attached to %s at revision %d, before the fence at %d", safe.other(node), attached.revision, fenced.revision)
	}
	// The attachment was refused before. Kubernetes doubles its wait after each refusal, so it waits about as long as it has tried.
	if late := attached.at.Sub(fenced.at); late > 2*time.Second+fenced.at.Sub(notReady) {
		t.Errorf("attached %s after the fence, which came %s after the node was lost", late, fenced.at.Sub(notReady))
	}
	c.waitPhase(node, v1alpha1.NodeDrained)
	unsafe := f.wait(c, "unprotected volume attached elsewhere", time.Minute, attachedTo(tainted.volume(), tainted.other(second)))
	unsafeUp := f.wait(c, "unprotected database up", time.Minute, upOn(tainted, tainted.other(second)))

	c.run("a node returns only after a reboot", func(_ *testing.T, c *cluster) { c.returnsAfterReboot(csi, safe, node) })

	since := func(at time.Time) string { return at.Sub(f.began).Round(10 * time.Millisecond).String() }
	t.Logf(`since the nodes were switched off:
                                     with Fairlead   taint alone
  not Ready, tainted                 %-15s %s
  the storage can fence again        %-15s
  fenced                             %-15s never
  attached to another node           %-15s %s
  up on another node                 %-15s %s
attached %s after the fence`,
		since(notReady), since(notReady), since(healed), since(fenced.at), since(attached.at), since(unsafe.at), since(up.at), since(unsafeUp.at),
		attached.at.Sub(fenced.at).Round(time.Millisecond))
	c.run("the documented commands", func(t *testing.T, c *cluster) { c.followRunbook(t, safe) })
}

// returnsAfterReboot brings the node back without a reboot, then with one.
func (c *cluster) returnsAfterReboot(csi *sandbox.CSIAddons, d database, node string) {
	c.must(c.SwitchOn(c.t.Context(), node, false))
	c.waitReady(node, true)
	c.waitReason(node, v1alpha1.NodeFenced, fence.ReasonNotRebooted)
	c.has(c.refused("taint", "nodes", node, fence.OutOfServiceTaint+"-"), "has not booted since")
	c.notReadmitted(csi, node)
	c.must(c.SwitchOff(c.t.Context(), node))
	c.waitReady(node, false)
	c.readmit(csi, node)
	var left csiaddons.NetworkFenceList
	c.must(c.Client.List(c.t.Context(), &left))
	if len(left.Items) > 0 {
		c.t.Errorf("NetworkFences remain: %+v", left.Items)
	}
	// The node serves again: the pod moves back when the other node is drained.
	c.kubectl("cordon", d.other(node))
	c.kubectl("delete", "pod", d.pod().Name, "--wait=false") // the StatefulSet creates a pod of the same name
	if back := c.waitUp(d, d.other(node), time.Minute); back != node {
		c.t.Errorf("up on %s", back)
	}
	c.kubectl("uncordon", d.other(node))
}
