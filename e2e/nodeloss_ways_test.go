package e2e

import (
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fairlead-io/fairlead/api/v1alpha1"
	"github.com/fairlead-io/fairlead/e2e/sandbox"
	"github.com/fairlead-io/fairlead/internal/fence"
	"github.com/fairlead-io/fairlead/internal/reads/csiaddons"
)

// TestNodeLossInOtherWays loses nodes in the other ways of the runbook.
func TestNodeLossInOtherWays(t *testing.T) {
	c, csi := newFencingCluster(t, `{profiles: [{name: rook-ceph}], returning: {readyFor: 3s}, tainting: {mode: "on", notReadyFor: 5s, nodeSelector: "tainted-by=fairlead"}}`)
	d := database{name: "db", driver: rbd, clusterID: "rook-ceph", nodes: []string{"node-1", "node-2"}}
	c.runDatabase(d)
	for _, way := range []struct {
		name string
		test func(*cluster, *sandbox.CSIAddons, database)
	}{
		{"Fairlead taints the node and removes the taint", (*cluster).taintedByFairlead},
		{"an operator releases the volumes without a fence", (*cluster).releasedUnfenced},
		{"another machine takes the name of a deleted node", (*cluster).deletedForGood},
	} {
		if !c.run(way.name, func(_ *testing.T, c *cluster) { way.test(c, csi, d) }) {
			return // the next way needs healthy nodes
		}
	}
}

// holder waits until a node has the database's volume on record, and returns the node.
func (c *cluster) holder(d database) string {
	c.t.Helper()
	node := c.waitUp(d, "", time.Minute)
	c.waitRecorded(node, d)
	return node
}

// attachedAfterFence waits until the volume is attached elsewhere, which must come after the node's fence.
func (c *cluster) attachedAfterFence(f *film, d database, node string) {
	c.t.Helper()
	attached := f.wait(c, "attached elsewhere", 3*time.Minute, attachedTo(d.volume(), d.other(node)))
	if fenced := f.wait(c, "fenced", 20*time.Second, fencedOn(node)); attached.revision <= fenced.revision {
		c.t.Error("the volume was attached elsewhere before the fence was in effect")
	}
}

func (c *cluster) taintedByFairlead(csi *sandbox.CSIAddons, d database) {
	node := c.holder(d)
	c.kubectl("label", "node", node, "tainted-by=fairlead")
	f := c.film(&storagev1.VolumeAttachmentList{}, &csiaddons.NetworkFenceList{})
	c.lose(node)
	c.attachedAfterFence(f, d, node)
	taint := func() any {
		for _, t := range c.node(node).Spec.Taints {
			if t.Key == fence.OutOfServiceTaint {
				return t.Value
			}
		}
		return ""
	}
	if value := taint(); value != fence.OwnTaintValue {
		c.t.Errorf("the taint of %s is %q", node, value)
	}
	if record := c.waitPhase(node, v1alpha1.NodeDrained); record.Spec.Tainted == nil {
		c.t.Errorf("NodeFence %s does not say that Fairlead tainted the node", node)
	}
	mark := func() any { return c.node(node).Annotations[fence.RecordedLossAnnotation] }
	c.waitIs("mark of a recorded loss", 20*time.Second, lossOf(c.node(node)), mark)
	c.must(c.SwitchOn(c.t.Context(), node, true))
	c.waitIs("taint of the returned node", time.Minute, "", taint)
	c.waitPhase(node, v1alpha1.NodeHealthy)
	c.waitIs("mark of the returned node", 20*time.Second, "", mark)
	c.waitBlocked(csi, 0)
	c.kubectl("label", "node", node, "tainted-by-")
}

func (c *cluster) releasedUnfenced(csi *sandbox.CSIAddons, d database) {
	node := c.holder(d)
	c.must(csi.Fail("fence", "the mons are gone for good"))
	f := c.film(&storagev1.VolumeAttachmentList{})
	c.lose(node)
	c.taint(node)
	c.waitPhase(node, v1alpha1.NodeFencing)
	time.Sleep(5 * time.Second) // nothing announces that no attachment follows
	if m, ok := f.find(attachedTo(d.volume(), d.other(node))); ok {
		c.t.Fatalf("attached elsewhere: %+v", m.object)
	}
	record := c.waitPhase(node, v1alpha1.NodeFencing).Name
	override := []string{"annotate", "nodefence", record, fence.OverrideAnnotation + "=attach: powered off by hand"}
	c.has(c.refused(append([]string{"--as=jane", "--as-group=system:authenticated"}, override...)...), "orbidden")
	c.kubectl(override...)
	f.wait(c, "attached elsewhere", 3*time.Minute, attachedTo(d.volume(), d.other(node)))
	c.waitUp(d, node, time.Minute)
	c.must(csi.Heal())
	c.waitPhase(node, v1alpha1.NodeDrained) // the node is fenced nevertheless
	c.readmit(csi, node)
}

func (c *cluster) deletedForGood(csi *sandbox.CSIAddons, d database) {
	node := c.holder(d)
	object := c.node(node)
	f := c.film(&storagev1.VolumeAttachmentList{}, &corev1.PodList{}, &csiaddons.NetworkFenceList{})
	c.must(csi.Delay("fence", 6*time.Second)) // the attachment is asked for before the fence, and waits for it
	c.lose(node)
	probe := c.startProbe()
	c.taint(node)
	// The pod garbage collector is slow. kubectl may take the next pod of the same name for the deleted pod, so it does not wait.
	c.kubectl("delete", "pod", d.pod().Name, "--force", "--grace-period=0", "--ignore-not-found", "--wait=false")
	c.attachedAfterFence(f, d, node)
	c.must(csi.Heal())
	c.attachedAtOnce(f, d, node, probe.end())
	c.waitPhase(node, v1alpha1.NodeDrained)
	c.kubectl("delete", "node", node)
	c.waitReason(node, v1alpha1.NodeDrained, fence.ReasonNodeDeleted)
	record := c.waitPhase(node, v1alpha1.NodeDrained).Name
	c.has(c.refused("delete", "nodefence", record), node)
	// Another machine of the same name says nothing about the fenced one.
	object.ResourceVersion, object.UID = "", ""
	object.Status.NodeInfo.SystemUUID = "another machine"
	object.Status.VolumesInUse, object.Status.VolumesAttached, object.Spec.Taints = nil, nil, nil
	status := object.Status
	c.must(c.create(object))
	created := object.DeepCopy()
	object.Status = status
	c.must(c.Client.Status().Patch(c.t.Context(), object, client.MergeFrom(created))) // Kubernetes writes the Node at the same time
	c.must(c.SwitchOn(c.t.Context(), node, true))                                     // it has a boot and plugin pods of its own
	c.waitReady(node, true)
	c.waitReason(node, v1alpha1.NodeDrained, fence.ReasonAddressInUse) // the new machine's clients have the old addresses
	c.notReadmitted(csi, node)
	c.waitReason(node, v1alpha1.NodeDrained, fence.ReasonAddressInUse)
	c.has(c.refused("delete", "nodefence", record), node)
	c.kubectl("annotate", "nodefence", record, fence.OverrideAnnotation+"=unfence: scrapped")
	c.eventually("a Healthy record of the other machine alone", time.Minute, func() error {
		var records v1alpha1.NodeFenceList
		if err := c.Client.List(c.t.Context(), &records, client.MatchingLabels{fence.NodeLabel: node}); err != nil {
			return err
		}
		err := c.Client.Get(c.t.Context(), client.ObjectKey{Name: record}, &v1alpha1.NodeFence{})
		if !apierrors.IsNotFound(err) || len(records.Items) != 1 {
			return fmt.Errorf("record of the deleted machine: %v; other records: %d", err, len(records.Items))
		}
		if r := records.Items[0]; r.Status.Phase != v1alpha1.NodeHealthy || r.Spec.Boot.SystemUUID != "another machine" || len(r.Spec.Fences) > 0 {
			return fmt.Errorf("phase %s, boot %+v, fences %+v", r.Status.Phase, r.Spec.Boot, r.Spec.Fences)
		}
		return nil
	})
	c.waitBlocked(csi, 0)
}

// attachedAtOnce wants the attachment elsewhere soon after its last precondition: the fence, the end of the old attachment, the
// node of the next pod. Usually that takes about a second. On a busy machine the fence may be recorded after the request has
// waited for it, and Kubernetes tries again some seconds later.
func (c *cluster) attachedAtOnce(f *film, d database, node string, meanwhile pulse) {
	c.t.Helper()
	var free time.Time
	last := ""
	for what, is := range map[string]func(moment) bool{
		"fenced": fencedOn(node), "detached": detachedFrom(d.volume(), node), "scheduled": scheduledTo(d, d.other(node)),
	} {
		if m := f.wait(c, what, 20*time.Second, is); m.at.After(free) {
			free, last = m.at, what
		}
	}
	late := f.wait(c, "attached elsewhere", 20*time.Second, attachedTo(d.volume(), d.other(node))).at.Sub(free)
	c.t.Logf("attached %s after the last precondition (%s); %s", late.Round(time.Millisecond), last, meanwhile)
	if late > 6*time.Second+meanwhile.slowest {
		c.t.Errorf("attached only %s after the last precondition (%s)", late, last)
	}
}
