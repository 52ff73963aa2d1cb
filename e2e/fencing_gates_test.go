package e2e

import (
	"fmt"
	"regexp"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fairlead-io/fairlead/api/v1alpha1"
	"github.com/fairlead-io/fairlead/e2e/sandbox"
	"github.com/fairlead-io/fairlead/internal/fence"
)

const otherDriver = "ebs.csi.aws.com"

// driverOf the volumes of TestFencingGatesAreNarrow.
var driverOf = map[string]string{"rbd-a": rbd, "rbd-b": rbd, "rbd-c": rbd, "fs-a": cephfs, "ebs-a": otherDriver}

// How refusals begin.
const (
	byPolicy  = "ValidatingAdmissionPolicy 'fairlead-unwatched-"
	byWebhook = `admission webhook "attachments.fairlead.io" denied the request: `
)

// gates is the cluster of TestFencingGatesAreNarrow.
type gates struct{ *cluster }

// attach creates an attachment and deletes it, which is always allowed.
func (g gates) attach(volume, node string) error {
	va := attachmentOf(volume, node)
	if err := g.create(va); err != nil {
		return err
	}
	if err := g.Client.Delete(g.t.Context(), va); err != nil {
		g.t.Errorf("deleting an attachment: %v", err)
	}
	return nil
}

func (g gates) passes(what, volume, node string) {
	g.t.Helper()
	if err := g.attach(volume, node); err != nil {
		g.t.Errorf("%s: %v", what, err)
	}
}

func (g gates) refuses(what, volume, node string, says ...string) {
	g.t.Helper()
	if err := g.refusal(volume, node, says...); err != nil {
		g.t.Errorf("%s: %v", what, err)
	}
}

// refusal is nil if the attachment is refused with these words.
func (g gates) refusal(volume, node string, says ...string) error {
	err := g.attach(volume, node)
	if err == nil {
		return fmt.Errorf("%s was attached to %s", volume, node)
	}
	return lacks(err.Error(), says...)
}

// waitRefuses waits until the API server knows what the refusal depends on; waitPasses likewise.
func (g gates) waitRefuses(what, volume, node string, says ...string) {
	g.t.Helper()
	g.eventually(what, time.Minute, func() error { return g.refusal(volume, node, says...) })
}

func (g gates) waitPasses(what, volume, node string) {
	g.t.Helper()
	g.eventually(what, time.Minute, func() error { return g.attach(volume, node) })
}

// part is a subtest on the same cluster.
func (g gates) part(name string, do func(t *testing.T, g gates)) {
	g.run(name, func(t *testing.T, c *cluster) { do(t, gates{c}) })
}

// TestFencingGatesAreNarrow installs fencing for Rook-Ceph alone. It shows what the gates refuse, with Fairlead's
// webhook and without, and that nothing else reaches them. No controller runs: the test writes records by hand.
func TestFencingGatesAreNarrow(t *testing.T) {
	g := gates{newControlPlane(t, options{fastNodeLoss: true})}
	g.must(g.Install(t.Context(), sandbox.RookCeph))
	// The API server does not know the kind of a policy's parameters yet, and refuses nothing for that.
	g.must(g.attach("ebs-a", "node-1"))
	g.must(g.RunFairlead(t.Context(), 1, 0))
	for name, driver := range driverOf {
		g.must(g.create(csiVolume(name, driver, name+"-handle")))
	}
	g.healthyNodes()
	lost := g.lostNode()
	g.recordedLoss(lost)
	g.returnedNodes()

	inline := attachmentOf("rbd-a", "node-2")
	inline.Spec.Source = storagev1.VolumeAttachmentSource{InlineVolumeSpec: &csiVolume("inline", rbd, "inline-handle").Spec}
	inline.Spec.Source.InlineVolumeSpec.Capacity, inline.Spec.Source.InlineVolumeSpec.PersistentVolumeReclaimPolicy = nil, ""
	if err := g.create(inline); err != nil {
		t.Errorf("a volume without PersistentVolume, without Fairlead: %v", err)
	}
	// Without Fairlead, only overrides are refused.
	g.kubectl("taint", "node", "node-3", fence.OutOfServiceTaint+"=x:NoExecute")
	g.kubectl("taint", "node", "node-3", fence.OutOfServiceTaint+"-")
	g.writeRecord("healthy", v1alpha1.NodeFenceStatus{Phase: v1alpha1.NodeHealthy})
	g.kubectl("delete", "nodefence", "healthy", "unwritten")
	g.refused("annotate", "nodefence", "gone", fence.OverrideAnnotation+"=attach: it burnt")
	g.refused("delete", "nodefence", "gone")

	// With Fairlead, fewer attachments are refused.
	g.must(g.RunFairlead(t.Context(), 1, 0))
	webhook := g.Replicas()[1].Name
	g.refuses("record of a deleted node", "rbd-a", "node-2", byWebhook+"volume rbd-a was last on node gone, which is lost and not fenced", "kubectl describe nodefence gone")
	g.lose("node-1")
	g.refuses("in use on a lost node", "rbd-a", "node-2", byWebhook)
	g.passes("not in use on the lost node", "rbd-b", "node-2")

	g.part("an attachment waits for a requested fence", func(t *testing.T, g gates) { g.waitsForFence(t) })
	g.part("the taint of a healthy node", func(_ *testing.T, g gates) { g.taintOfHealthyNode(webhook) })
	g.part("the record of a lost node stays", func(_ *testing.T, g gates) { g.recordStays() })
	g.part("Rook's old switch has no effect", func(_ *testing.T, g gates) {
		g.kubectl("-n", "rook-ceph", "create", "configmap", "rook-ceph-operator-config", "--from-literal=ROOK_WATCH_FOR_NODE_FAILURE=False")
		g.refuses("in use on a lost node", "rbd-a", "node-2")
	})
}

// healthyNodes attaches volumes with Fairlead, and then without.
func (g gates) healthyNodes() {
	g.t.Helper()
	g.passes("another driver, with Fairlead", "ebs-a", "node-1")
	g.reviewed("webhook-0", "attachment", 0)
	g.passes("a protected driver, with Fairlead", "rbd-a", "node-1")
	g.reviewed("webhook-0", "attachment", 2) // one marks the attachment, one judges it
	g.must(g.Replicas()[0].Stop())
	g.passes("another driver, without Fairlead", "ebs-a", "node-1")
	g.passes("a protected driver, without Fairlead", "rbd-a", "node-1")
	forged := attachmentOf("rbd-a", "node-2")
	forged.Labels = map[string]string{fence.JudgedLabel: "true"}
	if g.create(forged) == nil {
		g.t.Error("a forged mark was accepted")
	}
}

// lostNode loses node-1 while Fairlead is down, and returns it.
func (g gates) lostNode() *corev1.Node {
	g.t.Helper()
	old := attachmentOf("rbd-a", "node-1")
	g.must(g.create(old))
	g.inUse("node-1", "rbd-a")
	g.must(g.create(&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "node-11"}})) // without any status
	g.passes("the holder is well", "rbd-b", "node-2")
	g.lose("node-1")
	g.waitRefuses("a lost holder, without Fairlead", "rbd-b", "node-2", byPolicy+"attachments'",
		"Fairlead is not answering, and node node-1 is lost with volumes of "+rbd, "Bring Fairlead back (kubectl -n fairlead-system get pods) or the node")
	g.passes("another driver, a lost holder, without Fairlead", "ebs-a", "node-2")
	g.passes("a driver without volumes on the lost node", "fs-a", "node-2")
	g.passes("the lost node itself", "rbd-a", "node-1")
	g.delete(old)
	return g.node("node-1")
}

// recordedLoss has records of the lost node. A record counts for its own loss alone, and names the volumes that are held.
func (g gates) recordedLoss(lost *corev1.Node) {
	g.t.Helper()
	mark := func(node, value string) {
		g.kubectl("annotate", "node", node, "--overwrite", fence.RecordedLossAnnotation+"="+value)
	}
	machine := v1alpha1.MachineIdentity{BootID: lost.Status.NodeInfo.BootID}
	g.writeRecord("node-1", v1alpha1.NodeFenceStatus{Phase: v1alpha1.NodeLost, Reason: fence.ReasonNotReady, Incident: "node-1-1", Node: machine, Volumes: heldVolumes("rbd-a")})
	mark("node-1", machine.BootID+"@2026-01-01T00:00:00Z")
	time.Sleep(time.Second) // the answer does not change when the API server sees the mark
	g.refuses("record of another loss", "rbd-b", "node-2", byPolicy+"attachments'", "node node-1 is lost")
	mark("node-1", lossOf(lost))
	g.waitRefuses("record of the loss holds its volume", "rbd-a", "node-2", byPolicy+"volumes'")
	g.waitPasses("record of the loss without the volume", "rbd-b", "node-2")
	// Without the record, the mark holds the volumes that it names.
	g.writeRecord("node-1", v1alpha1.NodeFenceStatus{Phase: v1alpha1.NodeHealthy, Reason: fence.ReasonReady, Node: machine})
	mark("node-1", lossOf(lost)+" rbd-z rbd-a")
	g.waitRefuses("a mark with the volume", "rbd-a", "node-2", byPolicy+"attachments'")
	g.waitPasses("a mark without the volume", "rbd-b", "node-2")
	mark("node-11", "@")
	g.taint("node-11")
	g.inUse("node-11", "rbd-b")
	g.waitRefuses("a lost node without a boot", "rbd-b", "node-2", byPolicy+"attachments'", "node node-11 is lost")
	g.kubectl("delete", "node", "node-11")
	// A node whose object is gone.
	g.must(g.SwitchOn(g.t.Context(), "node-1", false))
	g.waitReady("node-1", true)
	g.waitPasses("the holder is back", "rbd-b", "node-2")
	g.writeRecord("gone", v1alpha1.NodeFenceStatus{Phase: v1alpha1.NodeLost, Reason: fence.ReasonNodeDeleted, Incident: "gone-1", Volumes: heldVolumes("rbd-a")})
	g.writeRecord("unwritten", v1alpha1.NodeFenceStatus{})
	g.kubectl("label", "nodefence", "unwritten", fence.PhaseLabel+"=Lost", asController)
	g.waitRefuses("record of a deleted node, without Fairlead", "rbd-a", "node-2", byPolicy+"volumes'", "volume rbd-a was last on node gone, which is lost and not fenced")
	g.passes("no record, without Fairlead", "rbd-b", "node-2")
}

// returnedNodes shows when healthy nodes hold volumes that they may still write to. In each row the answer differs from
// the row before, so the test knows when the API server has seen the record.
func (g gates) returnedNodes() {
	g.t.Helper()
	const writes = "volume fs-a was last on node back, which may still write to it: attached elsewhere now"
	detached := v1alpha1.HeldVolume{Detached: true}
	lingering := v1alpha1.HeldVolume{Until: ptr.To(metav1.Now())}
	shared := v1alpha1.HeldVolume{Detached: true, Shared: true}
	for _, row := range []struct {
		what   string
		phase  v1alpha1.NodeFencePhase
		reason string
		volume v1alpha1.HeldVolume
		held   bool
	}{
		{"detached on a returned node", v1alpha1.NodeHealthy, fence.ReasonReady, detached, true},
		{"attached to a returned node", v1alpha1.NodeHealthy, fence.ReasonReady, v1alpha1.HeldVolume{}, false},
		{"lingering on a returned node", v1alpha1.NodeHealthy, fence.ReasonReady, lingering, true},
		{"shared on a returned node", v1alpha1.NodeHealthy, fence.ReasonReady, shared, false},
		{"on a node that is Ready and tainted", v1alpha1.NodeHealthy, fence.ReasonTaintedButReady, v1alpha1.HeldVolume{}, true},
		{"lingering on a fenced node", v1alpha1.NodeDrained, fence.ReasonDrained, lingering, false},
		{"shared on a node being unfenced", v1alpha1.NodeUnfencing, fence.ReasonUnfencing, shared, true},
		{"on no record", v1alpha1.NodeHealthy, fence.ReasonReady, v1alpha1.HeldVolume{PersistentVolume: "none"}, false},
	} {
		v := row.volume
		v.Driver = rbd
		if v.PersistentVolume == "" {
			v.PersistentVolume = "fs-a"
		}
		g.writeRecord("back", v1alpha1.NodeFenceStatus{Phase: row.phase, Reason: row.reason, Volumes: []v1alpha1.HeldVolume{v}})
		if !row.held {
			g.waitPasses(row.what+", without Fairlead", "fs-a", "node-2")
			continue
		}
		g.waitRefuses(row.what+", without Fairlead", "fs-a", "node-2", byPolicy+"volumes'", writes)
		g.passes(row.what+", to the node itself", "fs-a", "back")
	}
	// Another machine has the name of a fenced one, and a record of its own.
	const taken = "volume fs-a was last on node taken, which is lost and not fenced"
	record := v1alpha1.NodeFenceStatus{Phase: v1alpha1.NodeFencing, Reason: fence.ReasonFencing, Incident: "taken-1", Volumes: heldVolumes("fs-a"), Gone: true}
	g.writeRecord("taken", record)
	g.waitRefuses("to another machine of the holder's name, without Fairlead", "fs-a", "taken", byPolicy+"volumes'", taken)
	record.Phase, record.Reason = v1alpha1.NodeDrained, fence.ReasonReplaced
	g.writeRecord("taken", record)
	g.writeRecord("taken-2", v1alpha1.NodeFenceStatus{Phase: v1alpha1.NodeLost, Reason: fence.ReasonNotReady, Incident: "taken-2", NodeName: "taken", Volumes: heldVolumes("fs-a")})
	g.waitPasses("to the machine that holds it, without Fairlead", "fs-a", "taken")
	g.refuses("record of a lost namesake of a fenced node, without Fairlead", "fs-a", "node-2", byPolicy+"volumes'", taken)
	g.kubectl("delete", "nodefence", "back", "taken", "taken-2", "--wait=false", asController)
}

// waitsForFence: the webhook answers as soon as a requested fence is in effect, and in time if it never is.
func (g gates) waitsForFence(t *testing.T) {
	status := v1alpha1.NodeFenceStatus{Incident: "soon-1", Volumes: heldVolumes("rbd-c"),
		Fences: []v1alpha1.Fence{{Name: "f", Incident: "soon-1", Driver: rbd, CIDRs: []string{"10.0.0.1/32"}, Since: metav1.Now()}}}
	dryRun := func() error { return g.Client.Create(t.Context(), attachmentOf("rbd-c", "node-2"), client.DryRunAll) }
	requested := func() {
		status.Phase, status.Reason, status.Fences[0].State = v1alpha1.NodeFencing, fence.ReasonFencing, v1alpha1.FenceRequested
		g.writeRecord("soon", status)
		g.waitHas("refusal", 10*time.Second, func() string { return fmt.Sprint(dryRun()) }, byWebhook)
	}
	g.whileQuiet(func(int) (pulse, error) {
		requested()
		probe := g.startProbe()
		done := make(chan error, 1)
		started := time.Now()
		go func() { done <- g.attach("rbd-c", "node-2") }()
		select {
		case err := <-done:
			t.Fatalf("answered after %s: %v", time.Since(started), err)
		case <-time.After(2 * time.Second): // the attachment waits meanwhile
		}
		status.Phase, status.Reason, status.Fences[0].State = v1alpha1.NodeFenced, fence.ReasonFenced, v1alpha1.FenceFenced
		g.writeRecord("soon", status)
		fenced := time.Now()
		err := <-done
		took, meanwhile := time.Since(fenced), probe.end()
		t.Logf("answered %s after the fence; %s", took, meanwhile)
		if late := fenced.Sub(started); late > 5*time.Second { // the webhook no longer waits then
			meanwhile.slowest = max(meanwhile.slowest, late)
			err = fmt.Errorf("the test took %s to write the fence", late)
		} else if err == nil && took > 3*time.Second {
			err = fmt.Errorf("answered only %s after the fence", took)
		}
		return meanwhile, err
	})
	requested()
	started := time.Now()
	g.refuses("a fence that does not come", "rbd-c", "node-2", byWebhook)
	if took := time.Since(started); took < 5*time.Second {
		t.Errorf("refused after %s, before the fence could come", took)
	}
	started = time.Now()
	if err, took := dryRun(), time.Since(started); err == nil || took > 4*time.Second {
		t.Errorf("a dry run waits: after %s: %v", took, err)
	}
}

func (g gates) taintOfHealthyNode(webhook string) {
	g.writeRecord("node-2", v1alpha1.NodeFenceStatus{Phase: v1alpha1.NodeHealthy, Reason: fence.ReasonReady, Node: v1alpha1.MachineIdentity{BootID: "boot-1"}})
	g.has(g.refused("taint", "node", "node-2", fence.OutOfServiceTaint+"=x:NoExecute"), `admission webhook "nodes.fairlead.io" denied the request: node node-2 is Ready`)
	// A user who may write the object, but not override gates.
	g.kubectl("create", "clusterrole", "fence-writer", "--verb=get,update,patch", "--resource=nodefences.fairlead.io")
	g.kubectl("create", "clusterrolebinding", "fence-writer", "--clusterrole=fence-writer", "--user=jane")
	annotate := []string{"annotate", "nodefence", "node-2", fence.OverrideAnnotation + "=taint: it is on fire", "--as=jane", "--overwrite"}
	g.waitHas("refused override", 10*time.Second, func() string { return g.refused(annotate...) },
		`jane may not override gates: that takes the verb "override-gate" on nodefences.fairlead.io (ClusterRole fairlead-fence-break-glass)`)
	g.kubectl("create", "clusterrolebinding", "break-glass", "--clusterrole=fairlead-fence-break-glass", "--user=jane")
	for _, text := range []string{"because", "everything: because", "taint:"} {
		g.has(g.refused("annotate", "nodefence", "node-2", fence.OverrideAnnotation+"="+text, "--as=jane"), `must be "<gate>: <reason>"`)
	}
	g.eventually("the role is in effect", 10*time.Second, func() error {
		_, err := g.Kubectl(g.t.Context(), "", annotate...)
		return err
	})
	var record v1alpha1.NodeFence
	g.must(g.Client.Get(g.t.Context(), client.ObjectKey{Name: "node-2"}, &record))
	if o := fence.ReadOverride(record.Annotations, record.Status); o.Gate != fence.GateTaint || o.By != "jane" || o.Reason != "it is on fire" || o.Scope != "boot boot-1" {
		g.t.Errorf("recorded %+v in %v", o, record.Annotations)
	}
	g.has(g.refused("annotate", "nodefence", "node-2", "--overwrite", fence.OverriddenAnnotation+`={"gate":"attach","by":"jane","reason":"it is on fire","scope":"boot boot-1"}`,
		fence.OverrideAnnotation+"=attach: it is on fire", "--as=joe"), "forbidden")
	g.kubectl("taint", "node", "node-2", fence.OutOfServiceTaint+"=x:NoExecute")
	before := g.reviews(webhook, "nodes")
	g.kubectl("taint", "node", "node-2", "--overwrite", fence.OutOfServiceTaint+"=y:NoExecute") // changes the value alone
	g.kubectl("label", "node", "node-3", "some=label")
	g.kubectl("cordon", "node-3")
	g.kubectl("uncordon", "node-3")
	g.kubectl("taint", "node", "node-3", "some=taint:NoExecute")
	g.reviewed(webhook, "nodes", before)
	g.kubectl("taint", "node", "node-2", fence.OutOfServiceTaint+"-")
	if now := g.reviews(webhook, "nodes"); now <= before || before == 0 { // a conflicting patch is reviewed again
		g.t.Errorf("%d reviews of nodes before the taint was removed, %d after", before, now)
	}
}

func (g gates) recordStays() {
	g.has(g.refused("delete", "nodefence", "gone"), "node gone is Lost: the NodeFence is the only record")
	g.kubectl("annotate", "nodefence", "gone", fence.OverrideAnnotation+"=attach: it burnt")
	g.passes("the gate is overridden", "rbd-a", "node-1") // node-1 itself uses the volume
	g.refused("delete", "nodefence", "gone")
	g.kubectl("annotate", "nodefence", "gone", "--overwrite", fence.OverrideAnnotation+"=unfence: it burnt")
	// The record stays until its fences are removed, whatever gate is overridden.
	patch := func(text string, flags ...string) []string {
		return append([]string{"patch", "nodefence", "gone", "--type=merge", "-p", text}, flags...)
	}
	g.kubectl(patch(`{"metadata":{"finalizers":["`+fence.RecordFinalizer+`"]}}`, asController)...)
	g.kubectl(patch(`{"status":{"fences":[{"name":"stands","incident":"gone-1","driver":"`+rbd+`","cidrs":["10.0.0.9/32"],"state":"Fenced","since":"2026-01-01T12:00:00Z"}]}}`, "--subresource=status")...)
	unfinalize := patch(`{"metadata":{"finalizers":[]}}`)
	for _, try := range [][]string{{"delete", "nodefence", "gone"}, unfinalize} {
		g.has(g.refused(try...), "stays until the node is unfenced (NetworkFence stands)")
	}
	g.kubectl(patch(`{"status":{"fences":[]}}`, "--subresource=status")...)
	g.kubectl(unfinalize...)
	g.kubectl("delete", "nodefence", "gone")
}

func heldVolumes(volumes ...string) (all []v1alpha1.HeldVolume) {
	for _, v := range volumes {
		all = append(all, v1alpha1.HeldVolume{PersistentVolume: v, Driver: rbd})
	}
	return all
}

func attachmentOf(volume, node string) *storagev1.VolumeAttachment {
	return &storagev1.VolumeAttachment{ObjectMeta: metav1.ObjectMeta{GenerateName: volume + "-"}, Spec: storagev1.VolumeAttachmentSpec{
		Attacher: driverOf[volume], NodeName: node, Source: storagev1.VolumeAttachmentSource{PersistentVolumeName: &volume},
	}}
}

// reviews counts the answers of a webhook by rules whose names begin like this.
func (g gates) reviews(replica, rule string) int {
	g.t.Helper()
	total := 0
	for _, m := range regexp.MustCompile(`(?m)^fairlead_admission_requests_total\{.*rule="`+rule+`[^"]*"\} (\d+)$`).FindAllStringSubmatch(g.metrics(replica), -1) {
		var n int
		fmt.Sscan(m[1], &n)
		total += n
	}
	return total
}

func (g gates) reviewed(replica, rule string, want int) {
	g.t.Helper()
	if n := g.reviews(replica, rule); n != want {
		g.t.Errorf("%s answered %d reviews of %s, want %d", replica, n, rule, want)
	}
}

// inUse has the kubelet of a node report a volume as in use.
func (g gates) inUse(node, volume string) {
	g.t.Helper()
	g.kubectl("patch", "node", node, "--subresource=status", "--type=merge", "-p", fmt.Sprintf(`{"status":{"volumesInUse":[%q]}}`, "kubernetes.io/csi/"+driverOf[volume]+"^"+volume+"-handle"))
}

// asController is the only user that may label NodeFences.
const asController = "--as=system:serviceaccount:fairlead-system:fairlead-controller"

// writeRecord writes a NodeFence as the controller would.
func (c *cluster) writeRecord(node string, status v1alpha1.NodeFenceStatus) {
	c.t.Helper()
	n := &v1alpha1.NodeFence{ObjectMeta: metav1.ObjectMeta{Name: node}}
	err := c.Client.Get(c.t.Context(), client.ObjectKeyFromObject(n), n)
	if client.IgnoreNotFound(err) != nil {
		c.t.Fatal(err)
	}
	if err != nil {
		c.must(c.create(n))
	}
	if status.Phase != "" {
		c.kubectl("label", "--overwrite", "nodefence", node, fence.PhaseLabel+"="+fence.PhaseLabelValue(status), asController)
		c.must(c.Client.Get(c.t.Context(), client.ObjectKeyFromObject(n), n))
	}
	n.Status = status
	c.must(c.Client.Status().Update(c.t.Context(), n))
}
