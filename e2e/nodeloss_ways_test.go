package e2e

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fairlead-io/fairlead/api/v1alpha1"
	"github.com/fairlead-io/fairlead/e2e/sandbox"
	"github.com/fairlead-io/fairlead/internal/cluster/csiaddons"
	"github.com/fairlead-io/fairlead/internal/fence"
)

// TestNodeLossInOtherWays loses nodes in the ways that the runbook tells of beside
// the plain one.
func TestNodeLossInOtherWays(t *testing.T) {
	c, csi := newFencingCluster(t, `{profiles: [{name: rook-ceph}], returning: {readyFor: 3s}, tainting: {mode: "on", notReadyFor: 5s, nodeSelector: "tainted-by=fairlead"}}`)
	d := database{name: "db", driver: rbd, clusterID: "rook-ceph", nodes: []string{"node-1", "node-2"}}
	c.runDatabase(d)
	for _, way := range []struct {
		name string
		test func(*cluster, *sandbox.CSIAddons, database)
	}{
		{"Fairlead taints it and takes the taint away", (*cluster).taintedByItself},
		{"an operator lets its volumes go without a fence", (*cluster).letGo},
		{"its object is deleted, another machine takes its name, and an operator gives it up", (*cluster).deletedForGood},
		{"with volumes that are not attached", (*cluster).gated},
	} {
		if !t.Run(way.name, func(t *testing.T) { way.test(&cluster{Sandbox: c.Sandbox, t: t}, csi, d) }) {
			return // what is left behind would have the next one fail too
		}
	}
}

// holds waits until the node is known to hold the database's volume, and returns the node.
func (c *cluster) holds(d database) string {
	c.t.Helper()
	node := c.waitUp(d, "", time.Minute)
	c.eventually("its volume is on record", 30*time.Second, func() error {
		record := c.waitPhase(node, v1alpha1.NodeHealthy)
		if !slices.ContainsFunc(record.Status.Volumes, func(v v1alpha1.HeldVolume) bool { return v.PersistentVolume == d.volume() }) {
			return fmt.Errorf("on record is %+v", record.Status.Volumes)
		}
		return nil
	})
	return node
}

func (c *cluster) blockedAre(csi *sandbox.CSIAddons, want int) {
	c.t.Helper()
	c.eventually(fmt.Sprintf("%d addresses are blocked", want), 30*time.Second, func() error {
		got, err := csi.Blocked("rook-ceph")
		if err != nil || len(got) != want {
			return fmt.Errorf("%v are: %v", got, err)
		}
		return nil
	})
}

func outOfService(node *corev1.Node) string {
	for _, t := range node.Spec.Taints {
		if t.Key == fence.OutOfServiceTaint {
			return t.Value
		}
	}
	return ""
}

func (c *cluster) taintedByItself(csi *sandbox.CSIAddons, d database) {
	node := c.holds(d)
	c.kubectl("label", "node", node, "tainted-by=fairlead")
	f := c.film(&storagev1.VolumeAttachmentList{}, &csiaddons.NetworkFenceList{})
	c.lose(node)
	attached := f.wait(c, "attached elsewhere", 2*time.Minute, attachedTo(d.volume(), d.other(node)))
	fenced := f.wait(c, "fenced", 20*time.Second, fencedOn(node))
	if attached.revision <= fenced.revision {
		c.t.Error("it was attached before the fence stood")
	}
	var lost corev1.Node
	c.must(c.Client.Get(c.t.Context(), client.ObjectKey{Name: node}, &lost))
	if value := outOfService(&lost); value != fence.OwnTaintValue {
		c.t.Errorf("its taint is %q", value)
	}
	if record := c.waitPhase(node, v1alpha1.NodeDrained); record.Status.Tainted == nil {
		c.t.Error("its record does not say that Fairlead tainted it")
	}
	marked := func() string {
		var now corev1.Node
		c.must(c.Client.Get(c.t.Context(), client.ObjectKey{Name: node}, &now))
		return now.Annotations[fence.RecordedLossAnnotation]
	}
	c.eventually("it is marked that its loss is on record", 20*time.Second, func() error {
		if got, want := marked(), lossOf(&lost); got != want {
			return fmt.Errorf("marked is %q, its loss is %q", got, want)
		}
		return nil
	})
	c.must(c.SwitchOn(c.t.Context(), node, true))
	c.eventually("the taint is gone", time.Minute, func() error {
		var back corev1.Node
		c.must(c.Client.Get(c.t.Context(), client.ObjectKey{Name: node}, &back))
		if value := outOfService(&back); value != "" {
			return fmt.Errorf("it is %q", value)
		}
		return nil
	})
	c.waitPhase(node, v1alpha1.NodeHealthy)
	c.eventually("the mark is gone", 20*time.Second, func() error {
		if got := marked(); got != "" {
			return fmt.Errorf("it is %q", got)
		}
		return nil
	})
	c.blockedAre(csi, 0)
	c.kubectl("label", "node", node, "tainted-by-")
}

func (c *cluster) letGo(csi *sandbox.CSIAddons, d database) {
	node := c.holds(d)
	c.must(csi.Fail("fence", "the mons are gone for good"))
	f := c.film(&storagev1.VolumeAttachmentList{})
	c.lose(node)
	c.taint(node)
	c.waitPhase(node, v1alpha1.NodeFencing)
	time.Sleep(5 * time.Second)
	if m, ok := f.find(attachedTo(d.volume(), d.other(node))); ok {
		c.t.Fatalf("it was attached elsewhere: %+v", m.object)
	}
	override := []string{"annotate", "nodefence", node, fence.OverrideAnnotation + "=attach: powered off by hand"}
	if out := c.refused(append([]string{"--as=jane", "--as-group=system:authenticated"}, override...)...); !strings.Contains(out, "orbidden") {
		c.t.Errorf("jane: %s", out)
	}
	c.kubectl(override...)
	f.wait(c, "attached elsewhere", 3*time.Minute, attachedTo(d.volume(), d.other(node)))
	c.waitUp(d, node, time.Minute)
	c.must(csi.Heal())
	c.waitPhase(node, v1alpha1.NodeDrained) // it is fenced all the same, late
	c.must(c.SwitchOn(c.t.Context(), node, true))
	c.waitPhase(node, v1alpha1.NodeReturned)
	c.kubectl("taint", "nodes", node, fence.OutOfServiceTaint+"-")
	c.waitPhase(node, v1alpha1.NodeHealthy)
	c.blockedAre(csi, 0)
}

func (c *cluster) deletedForGood(csi *sandbox.CSIAddons, d database) {
	node := c.holds(d)
	var object corev1.Node
	c.must(c.Client.Get(c.t.Context(), client.ObjectKey{Name: node}, &object))
	f := c.film(&storagev1.VolumeAttachmentList{}, &corev1.PodList{}, &csiaddons.NetworkFenceList{})
	c.must(csi.Delay("fence", 6*time.Second)) // so that the attachment is asked for before the fence stands, and waits for it
	c.lose(node)
	probe := c.startProbe()
	c.taint(node)
	// Kubernetes looks only now and then. Another pod of its name comes, which kubectl may take for this one.
	c.kubectl("delete", "pod", d.pod().Name, "--force", "--grace-period=0", "--ignore-not-found", "--wait=false")
	attached := f.wait(c, "attached elsewhere", 3*time.Minute, attachedTo(d.volume(), d.other(node)))
	meanwhile := probe.end()
	fenced := f.wait(c, "fenced", 20*time.Second, fencedOn(node))
	c.must(csi.Heal())
	if attached.revision <= fenced.revision {
		c.t.Error("it was attached before the fence stood")
	}
	c.attachedAtOnce(f, d, node, meanwhile)
	c.waitPhase(node, v1alpha1.NodeDrained)
	c.kubectl("delete", "node", node)
	says := func(reason string) {
		c.t.Helper()
		c.eventually("its record says "+reason, 30*time.Second, func() error {
			if record := c.waitPhase(node, v1alpha1.NodeDrained); record.Status.Reason != reason {
				return fmt.Errorf("it says %s: %s", record.Status.Reason, record.Status.Message)
			}
			return nil
		})
	}
	says(fence.ReasonNodeDeleted)
	if out := c.refused("delete", "nodefence", node); !strings.Contains(out, node) {
		c.t.Errorf("deleting its record: %s", out)
	}
	// Another machine takes its name: that says nothing of the one that was fenced.
	object.ResourceVersion, object.UID = "", ""
	object.Status.NodeInfo.BootID, object.Status.NodeInfo.SystemUUID = "another boot", "another machine"
	object.Status.VolumesInUse, object.Status.VolumesAttached = nil, nil
	object.Spec.Taints = nil
	status := object.Status
	c.must(c.Client.Create(c.t.Context(), &object))
	created := object.DeepCopy()
	object.Status = status
	c.must(c.Client.Status().Patch(c.t.Context(), &object, client.MergeFrom(created))) // Kubernetes writes to it at the same time
	c.must(c.SwitchOn(c.t.Context(), node, false))
	c.waitReady(node, true)
	says(fence.ReasonAddressInUse) // its clients have the addresses of the one before
	time.Sleep(5 * time.Second)    // longer than it would have to be Ready
	says(fence.ReasonAddressInUse) // its clients have the addresses of the one before
	c.blockedAre(csi, len(protectedDrivers.Drivers[0].Nodes[node]))
	if out := c.refused("delete", "nodefence", node); !strings.Contains(out, node) {
		c.t.Errorf("deleting its record: %s", out)
	}
	c.kubectl("annotate", "nodefence", node, fence.OverrideAnnotation+"=unfence: scrapped")
	c.eventually("the record of the other machine alone is left, and says Healthy", time.Minute, func() error {
		var records v1alpha1.NodeFenceList
		if err := c.Client.List(c.t.Context(), &records, client.MatchingLabels{fence.NodeLabel: node}); err != nil {
			return err
		}
		err := c.Client.Get(c.t.Context(), client.ObjectKey{Name: node}, &v1alpha1.NodeFence{})
		if !apierrors.IsNotFound(err) || len(records.Items) != 1 {
			return fmt.Errorf("the record of the one before: %v; others: %d", err, len(records.Items))
		}
		if s := records.Items[0].Status; s.Phase != v1alpha1.NodeHealthy || s.Node.SystemUUID != "another machine" || len(s.Fences) > 0 {
			return fmt.Errorf("it is %s, of %+v, with %+v", s.Phase, s.Node, s.Fences)
		}
		return nil
	})
	c.blockedAre(csi, 0)
}

// attachedAtOnce wants a volume attached elsewhere within about a second of when
// nothing kept it any more: the fence of a node stands, the old attachment is gone
// and the next pod has its node.
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
	c.t.Logf("attached %s after nothing kept it any more (last: %s); %s", late.Round(time.Millisecond), last, meanwhile)
	if late > 2*time.Second+meanwhile.slowest {
		c.t.Errorf("it was attached only %s after nothing kept it any more", late)
	}
}

// scheduledTo fits the pod having a node.
func scheduledTo(d database, node string) func(moment) bool {
	return func(m moment) bool {
		pod, ok := m.object.(*corev1.Pod)
		return ok && client.ObjectKeyFromObject(pod) == d.pod() && pod.Spec.NodeName == node
	}
}

// gated has a volume of a driver without attachment: there is nothing to refuse,
// so the next pod waits with a scheduling gate.
func (c *cluster) gated(csi *sandbox.CSIAddons, d database) {
	c.must(c.Client.Create(c.t.Context(), &storagev1.CSIDriver{
		ObjectMeta: metav1.ObjectMeta{Name: cephfs}, Spec: storagev1.CSIDriverSpec{AttachRequired: ptr.To(false)},
	}))
	c.kubectl("label", "namespace", "default", fence.OptInLabel+"="+fence.OptedIn)
	files := database{name: "files", driver: cephfs, clusterID: "rook-ceph", nodes: d.nodes}
	node := c.runDatabase(files)
	c.eventually("its address is on record", 30*time.Second, func() error {
		record := c.waitPhase(node, v1alpha1.NodeHealthy)
		if !slices.ContainsFunc(record.Status.Identities, func(i v1alpha1.StorageIdentity) bool { return i.Driver == cephfs && len(i.Addresses) > 0 }) {
			return fmt.Errorf("on record is %+v", record.Status.Identities)
		}
		if !slices.ContainsFunc(record.Status.Volumes, func(v v1alpha1.HeldVolume) bool { return v.PersistentVolume == files.volume() }) {
			return fmt.Errorf("on record is %+v", record.Status.Volumes)
		}
		return nil
	})
	c.must(csi.Fail("fence", "the mons are away"))
	c.lose(node)
	c.taint(node)
	gated := func() (*corev1.Pod, bool) {
		var pod corev1.Pod
		if err := c.Client.Get(c.t.Context(), files.pod(), &pod); err != nil {
			return nil, false
		}
		return &pod, slices.ContainsFunc(pod.Spec.SchedulingGates, func(g corev1.PodSchedulingGate) bool { return g.Name == fence.SchedulingGate })
	}
	c.eventually("its next pod is gated", time.Minute, func() error {
		if pod, is := gated(); !is {
			return fmt.Errorf("its pod is %+v", pod)
		}
		return nil
	})
	time.Sleep(3 * time.Second)
	if pod, is := gated(); !is || pod.Spec.NodeName != "" {
		c.t.Fatalf("it was let go before the fence stood: %+v", pod)
	}
	c.must(csi.Heal())
	c.eventually("it is scheduled", 2*time.Minute, func() error {
		if pod, is := gated(); is || pod == nil || pod.Spec.NodeName != files.other(node) {
			return fmt.Errorf("its pod is %+v", pod)
		}
		return nil
	})
	record := c.waitPhase(node, v1alpha1.NodeDrained)
	for _, f := range record.Status.Fences {
		c.t.Logf("fenced: %s of %s: %s", f.Driver, f.ClusterID, strings.Join(f.CIDRs, ", "))
		if f.State != v1alpha1.FenceFenced {
			c.t.Errorf("%s is %s", f.Name, f.State)
		}
	}
	c.must(c.SwitchOn(c.t.Context(), node, true))
	c.waitPhase(node, v1alpha1.NodeReturned)
	c.kubectl("taint", "nodes", node, fence.OutOfServiceTaint+"-")
	c.waitPhase(node, v1alpha1.NodeHealthy)
	c.blockedAre(csi, 0)
}
