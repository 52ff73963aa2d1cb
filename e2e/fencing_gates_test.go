package e2e

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
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
	g.writeRecord("healthy", v1alpha1.NodeFenceSpec{NodeName: "healthy"})
	g.kubectl("delete", "nodefence", "healthy")
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
	recorded := lostWith("node-1", "rbd-a")
	recorded.NodeUID, recorded.Boot = lost.UID, bootOf(lost)
	g.writeRecord("node-1-lost", recorded)
	mark("node-1", recorded.Boot.BootID+"@2026-01-01T00:00:00Z")
	time.Sleep(time.Second) // the answer does not change when the API server sees the mark
	g.refuses("record of another loss", "rbd-b", "node-2", byPolicy+"attachments'", "node node-1 is lost")
	mark("node-1", lossOf(lost))
	g.waitRefuses("record of the loss holds its volume", "rbd-a", "node-2", byPolicy+"volumes'")
	g.waitPasses("record of the loss without the volume", "rbd-b", "node-2")
	// Without the record, the mark holds the volumes that it names.
	recorded.LostSince, recorded.Withheld = nil, nil
	g.writeRecord("node-1-lost", recorded)
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
	g.writeRecord("gone", lostWith("gone", "rbd-a"))
	g.waitRefuses("record of a deleted node, without Fairlead", "rbd-a", "node-2", byPolicy+"volumes'", "volume rbd-a was last on node gone, which may still write to it")
	g.passes("no record, without Fairlead", "rbd-b", "node-2")
}

// returnedNodes shows how the API server reads the lists that the controller publishes. In each row the answer differs from
// the row before, so the test knows when the API server has seen the record.
func (g gates) returnedNodes() {
	g.t.Helper()
	const writes = "which may still write to it: attached elsewhere now"
	fs := heldVolumes("fs-a")
	for _, row := range []struct {
		what, to string
		spec     v1alpha1.NodeFenceSpec
		says     string
	}{
		{"withheld by a node that is back", "node-2", v1alpha1.NodeFenceSpec{NodeUID: "u", Volumes: fs, Withheld: []string{"fs-a"}}, writes},
		{"withheld, to the node itself", "back", v1alpha1.NodeFenceSpec{NodeUID: "u", Volumes: fs, Withheld: []string{"fs-a"}}, ""},
		{"to a node that is fenced itself", "back", v1alpha1.NodeFenceSpec{NodeUID: "u", Volumes: fs, Closed: true, LostSince: now()}, "which is fenced"},
		{"on record, and not withheld", "node-2", v1alpha1.NodeFenceSpec{NodeUID: "u", Volumes: fs, LostSince: now()}, ""},
		{"withheld by a machine whose name another one has", "back", v1alpha1.NodeFenceSpec{Volumes: fs, Withheld: []string{"fs-a"}, LostSince: now()}, writes},
		{"another volume is withheld", "node-2", v1alpha1.NodeFenceSpec{Volumes: fs, Withheld: []string{"none"}, LostSince: now()}, ""},
	} {
		row.spec.NodeName = "back"
		g.writeRecord("back-1", row.spec)
		if row.says == "" {
			g.waitPasses(row.what+", without Fairlead", "fs-a", row.to)
		} else {
			g.waitRefuses(row.what+", without Fairlead", "fs-a", row.to, byPolicy+"volumes'", "volume fs-a was last on node back", row.says)
		}
	}
	g.kubectl("delete", "nodefence", "back-1", "--wait=false", asController)
}

// waitsForFence: the webhook answers as soon as a requested fence is in effect, and in time if it never is.
func (g gates) waitsForFence(t *testing.T) {
	spec := lostWith("soon", "rbd-c")
	spec.Fences = []v1alpha1.Fence{{Name: "f", Driver: rbd, CIDRs: []string{"10.0.0.1/32"}, Since: metav1.Now()}}
	dryRun := func() error { return g.Client.Create(t.Context(), attachmentOf("rbd-c", "node-2"), client.DryRunAll) }
	requested := func() {
		spec.Fences[0].State = v1alpha1.FenceRequested
		g.writeRecord("soon", spec)
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
		spec.Fences[0].State = v1alpha1.FenceFenced
		g.writeRecord("soon", spec)
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
	node := g.node("node-2")
	ready := node.Status.Conditions[slices.IndexFunc(node.Status.Conditions, func(c corev1.NodeCondition) bool { return c.Type == corev1.NodeReady })]
	g.writeRecord("node-2", v1alpha1.NodeFenceSpec{NodeName: "node-2", NodeUID: node.UID, ReadyChanged: &ready.LastTransitionTime, Boot: bootOf(node)})
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
	if o := fence.ReadRequest(record.Annotations); o.Gate != fence.GateTaint || o.By != "jane" || o.Reason != "it is on fire" {
		g.t.Errorf("recorded %+v in %v", o, record.Annotations)
	}
	g.has(g.refused("annotate", "nodefence", "node-2", "--overwrite", fence.OverriddenAnnotation+`={"gate":"attach","by":"jane","reason":"it is on fire"}`,
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
	g.has(g.refused("delete", "nodefence", "gone"), "the NodeFence is the only record of the volumes and fences of node gone")
	for what, change := range map[string]string{
		"finalizer": `{"metadata":{"finalizers":[]}}`, "memory": `{"spec":{"volumes":[]}}`, "label": `{"metadata":{"labels":{"` + fence.IncidentLabel + `":null}}}`,
	} {
		g.has(g.refused("patch", "nodefence", "gone", "--type=merge", "-p", change), "Fairlead's controller")
		g.t.Log("refused: " + what)
	}
	g.kubectl("annotate", "nodefence", "gone", fence.OverrideAnnotation+"=attach: it burnt")
	g.has(g.refused("annotate", "nodefence", "node-2", "--overwrite", fence.OverrideAnnotation+"=attach: it burnt"), "there is nothing to override yet")
	released := lostWith("gone", "rbd-a")
	released.Volumes[0].Released, released.Withheld = true, nil
	g.writeRecord("gone", released)                     // as the controller does then
	g.waitPasses("released by hand", "rbd-a", "node-1") // node-1 itself uses the volume
	g.kubectl("delete", "nodefence", "gone")
}

// lostWith is the memory of a lost boot with volumes.
func lostWith(node string, volumes ...string) v1alpha1.NodeFenceSpec {
	return v1alpha1.NodeFenceSpec{NodeName: node, Boot: v1alpha1.Boot{BootID: "boot-of-" + node}, LostSince: now(), Volumes: heldVolumes(volumes...), Withheld: volumes}
}

func now() *metav1.Time { return ptr.To(metav1.NewTime(time.Now().Truncate(time.Second))) }

func bootOf(n *corev1.Node) v1alpha1.Boot {
	return v1alpha1.Boot{SystemUUID: n.Status.NodeInfo.SystemUUID, BootID: n.Status.NodeInfo.BootID}
}

func heldVolumes(volumes ...string) (all []v1alpha1.HeldVolume) {
	for _, v := range volumes {
		all = append(all, v1alpha1.HeldVolume{PersistentVolume: v, Driver: rbd, VolumeHandle: v + "-handle", Shared: v == "fs-a"})
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

// asController is the only user that may write the memory of a NodeFence, label it, or take its finalizer away.
const asController = "--as=system:serviceaccount:fairlead-system:fairlead-controller"

// writeRecord writes a NodeFence as the controller would.
func (c *cluster) writeRecord(name string, spec v1alpha1.NodeFenceSpec) {
	c.t.Helper()
	n := &v1alpha1.NodeFence{TypeMeta: metav1.TypeMeta{APIVersion: v1alpha1.GroupVersion.String(), Kind: "NodeFence"}, ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: spec}
	n.Labels = map[string]string{fence.NodeLabel: spec.NodeName}
	if fence.InIncident(spec) {
		n.Labels[fence.IncidentLabel] = "true"
	}
	if fence.Keep(spec) {
		n.Finalizers = []string{fence.RecordFinalizer}
	}
	verb := "replace"
	if err := c.Client.Get(c.t.Context(), client.ObjectKeyFromObject(n), &v1alpha1.NodeFence{}); apierrors.IsNotFound(err) {
		verb = "create"
	} else {
		c.must(err)
	}
	object, err := json.Marshal(n)
	c.must(err)
	_, err = c.Kubectl(c.t.Context(), string(object), verb, "-f", "-", asController)
	c.must(err)
}
