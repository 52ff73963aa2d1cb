package e2e

import (
	"fmt"
	"regexp"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fairlead-io/fairlead/api/v1alpha1"
	"github.com/fairlead-io/fairlead/e2e/sandbox"
	"github.com/fairlead-io/fairlead/internal/fence"
)

const (
	rbdDriver    = "rook-ceph.rbd.csi.ceph.com"
	cephfsDriver = "rook-ceph.cephfs.csi.ceph.com"
	otherDriver  = "ebs.csi.aws.com"
)

// TestFencingGatesAreNarrow installs fencing for Rook-Ceph alone, and shows what
// its gates refuse, with Fairlead and without it, and that nothing else so much
// as meets them. Its controller does not run: records are written by hand.
func TestFencingGatesAreNarrow(t *testing.T) {
	c := newControlPlane(t, options{fastNodeLoss: true})
	c.must(c.Install(t.Context(), sandbox.RookCeph))
	// The API server does not know the kind of a policy's parameters yet, and holds nobody up for that.
	c.must(c.tryAttach("ebs-a", otherDriver, "node-1"))
	c.must(c.RunFairlead(t.Context(), 1, 0))
	for name, driver := range map[string]string{"rbd-a": rbdDriver, "rbd-b": rbdDriver, "fs-a": cephfsDriver, "ebs-a": otherDriver} {
		c.must(c.Client.Create(t.Context(), csiVolume(name, driver)))
	}
	passes := func(what, volume, driver, node string) {
		t.Helper()
		if err := c.tryAttach(volume, driver, node); err != nil {
			t.Errorf("%s: %v", what, err)
		}
	}
	refuses := func(what, volume, driver, node string, says ...string) {
		t.Helper()
		err := c.tryAttach(volume, driver, node)
		if err == nil {
			t.Errorf("%s: was let pass", what)
			return
		}
		for _, s := range says {
			if !strings.Contains(err.Error(), s) {
				t.Errorf("%s: %v\ndoes not say %q", what, err, s)
			}
		}
	}
	const byPolicy, byWebhook = "ValidatingAdmissionPolicy 'fairlead-unwatched-", `admission webhook "attachments.fairlead.io" denied the request: `

	// All nodes are well.
	passes("another driver, with Fairlead", "ebs-a", otherDriver, "node-1")
	if n := c.reviews("webhook-0", "attachment"); n != 0 {
		t.Errorf("an attachment of another driver was sent to Fairlead: %d reviews", n)
	}
	passes("a protected driver, with Fairlead", "rbd-a", rbdDriver, "node-1")
	if n := c.reviews("webhook-0", "attachment"); n != 2 {
		t.Errorf("an attachment of a protected driver takes a mark and a judgement, got %d reviews", n)
	}
	c.must(c.Replicas()[0].Stop())
	passes("another driver, without Fairlead", "ebs-a", otherDriver, "node-1")
	passes("a protected driver, without Fairlead", "rbd-a", rbdDriver, "node-1")
	if err := c.create(&storagev1.VolumeAttachment{
		ObjectMeta: metav1.ObjectMeta{Name: "made-up", Labels: map[string]string{fence.JudgedLabel: "true"}},
		Spec:       storagev1.VolumeAttachmentSpec{Attacher: rbdDriver, NodeName: "node-2", Source: storagev1.VolumeAttachmentSource{PersistentVolumeName: ptr.To("rbd-a")}},
	}); err == nil {
		t.Error("a mark that Fairlead did not make was believed")
	}

	// A node is lost while Fairlead is down.
	old := &storagev1.VolumeAttachment{ObjectMeta: metav1.ObjectMeta{Name: "old"}, Spec: storagev1.VolumeAttachmentSpec{
		Attacher: rbdDriver, NodeName: "node-1", Source: storagev1.VolumeAttachmentSource{PersistentVolumeName: ptr.To("rbd-a")},
	}}
	c.must(c.create(old))
	c.inUse("node-1", "kubernetes.io/csi/"+rbdDriver+"^rbd-a-handle")
	c.must(c.Client.Create(t.Context(), &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "node-11"}})) // without any status
	passes("the holder is well", "rbd-b", rbdDriver, "node-2")
	c.lose("node-1")
	c.eventually("the policy holds", 20*time.Second, func() error {
		if err := c.tryAttach("rbd-b", rbdDriver, "node-2"); err == nil {
			return fmt.Errorf("let pass")
		}
		return nil
	})
	refuses("a lost holder, without Fairlead", "rbd-b", rbdDriver, "node-2", byPolicy+"attachments'",
		"Fairlead is not answering, and node node-1 is lost with volumes of "+rbdDriver, "Bring Fairlead back (kubectl -n fairlead-system get pods) or the node")
	passes("another driver, a lost holder, without Fairlead", "ebs-a", otherDriver, "node-2")
	passes("a driver that the lost node has nothing of", "fs-a", cephfsDriver, "node-2")
	passes("the lost node itself", "rbd-a", rbdDriver, "node-1")
	c.must(c.Client.Delete(t.Context(), old))

	// Its loss is on record: that is believed of this loss alone, and then the record says which volumes are held.
	var lost corev1.Node
	c.must(c.Client.Get(t.Context(), client.ObjectKey{Name: "node-1"}, &lost))
	c.writeRecord("node-1", v1alpha1.NodeFenceStatus{
		Phase: v1alpha1.NodeLost, Reason: fence.ReasonNotReady, Incident: "node-1-1", Node: v1alpha1.MachineIdentity{BootID: lost.Status.NodeInfo.BootID}, Volumes: heldVolumes("rbd-a"),
	})
	c.kubectl("annotate", "node", "node-1", fence.RecordedLossAnnotation+"="+lost.Status.NodeInfo.BootID+"@2026-01-01T00:00:00Z")
	time.Sleep(time.Second)
	refuses("another loss is on record", "rbd-b", rbdDriver, "node-2", byPolicy+"attachments'", "node node-1 is lost")
	c.kubectl("annotate", "node", "node-1", "--overwrite", fence.RecordedLossAnnotation+"="+lossOf(&lost))
	c.eventually("its loss is on record", 60*time.Second, func() error {
		if err := c.tryAttach("rbd-a", rbdDriver, "node-2"); err == nil || !strings.Contains(err.Error(), byPolicy+"volumes'") {
			return fmt.Errorf("its own volume: %v", err)
		}
		return c.tryAttach("rbd-b", rbdDriver, "node-2")
	})
	// The mark alone holds what it names.
	c.writeRecord("node-1", v1alpha1.NodeFenceStatus{Phase: v1alpha1.NodeHealthy, Reason: fence.ReasonReady, Node: v1alpha1.MachineIdentity{BootID: lost.Status.NodeInfo.BootID}})
	c.kubectl("annotate", "node", "node-1", "--overwrite", fence.RecordedLossAnnotation+"="+lossOf(&lost)+" rbd-z rbd-a")
	c.eventually("the mark holds the volume", 60*time.Second, func() error {
		if err := c.tryAttach("rbd-a", rbdDriver, "node-2"); err == nil || !strings.Contains(err.Error(), byPolicy+"attachments'") {
			return fmt.Errorf("it says %w", err)
		}
		return c.tryAttach("rbd-b", rbdDriver, "node-2")
	})
	c.kubectl("annotate", "node", "node-11", fence.RecordedLossAnnotation+"=@")
	c.taint("node-11")
	c.inUse("node-11", "kubernetes.io/csi/"+rbdDriver+"^rbd-b-handle")
	c.eventually("it holds", 20*time.Second, func() error {
		if err := c.tryAttach("rbd-b", rbdDriver, "node-2"); err == nil {
			return fmt.Errorf("let pass")
		}
		return nil
	})
	refuses("a lost node without a boot", "rbd-b", rbdDriver, "node-2", byPolicy+"attachments'", "node node-11 is lost")
	c.kubectl("delete", "node", "node-11")

	// What was on a node whose object is gone, as recorded.
	c.must(c.SwitchOn(t.Context(), "node-1", false))
	c.waitReady("node-1", true)
	// The API server's own view of nodes, which policies go by, comes later.
	c.eventually("the holder is back", 20*time.Second, func() error { return c.tryAttach("rbd-b", rbdDriver, "node-2") })
	c.writeRecord("gone", v1alpha1.NodeFenceStatus{Phase: v1alpha1.NodeLost, Reason: fence.ReasonNodeDeleted, Incident: "gone-1", Volumes: heldVolumes("rbd-a")})
	c.writeRecord("unwritten", v1alpha1.NodeFenceStatus{})
	c.kubectl("label", "nodefence", "unwritten", fence.PhaseLabel+"=Lost", asController)
	c.eventually("the policy holds what was on a node that is gone", 60*time.Second, func() error {
		if err := c.tryAttach("rbd-a", rbdDriver, "node-2"); err == nil {
			return fmt.Errorf("let pass")
		}
		return nil
	})
	refuses("on record of a node that is gone, without Fairlead", "rbd-a", rbdDriver, "node-2", byPolicy+"volumes'", "volume rbd-a was last on node gone, which is lost and not fenced")
	passes("on no record, without Fairlead", "rbd-b", rbdDriver, "node-2")
	// What a node that is back may still write to, though it is healthy. Each row differs from the one before by its answer,
	// so that it is known when the API server has heard of it.
	holds := func(what, volume, driver, node string, held bool) {
		t.Helper()
		c.eventually(what, 20*time.Second, func() error {
			if err := c.tryAttach(volume, driver, node); (err != nil) != held {
				return fmt.Errorf("it says %v", err)
			}
			return nil
		})
	}
	const writes = "volume fs-a was last on node back, which may still write to it: attached elsewhere now"
	for _, row := range []struct {
		what   string
		phase  v1alpha1.NodeFencePhase
		reason string
		how    func(*v1alpha1.HeldVolume)
		held   bool
	}{
		{"detached on a node that is back", v1alpha1.NodeHealthy, fence.ReasonReady, func(v *v1alpha1.HeldVolume) { v.Detached = true }, true},
		{"attached to a node that is back", v1alpha1.NodeHealthy, fence.ReasonReady, func(*v1alpha1.HeldVolume) {}, false},
		{"lingering on a node that is back", v1alpha1.NodeHealthy, fence.ReasonReady, func(v *v1alpha1.HeldVolume) { v.Until = ptr.To(metav1.Now()) }, true},
		{"shared on a node that is back", v1alpha1.NodeHealthy, fence.ReasonReady, func(v *v1alpha1.HeldVolume) { v.Detached, v.Shared = true, true }, false},
		{"on a node that is Ready and tainted", v1alpha1.NodeHealthy, fence.ReasonTaintedButReady, func(*v1alpha1.HeldVolume) {}, true},
		{"lingering on a node that is fenced", v1alpha1.NodeDrained, fence.ReasonDrained, func(v *v1alpha1.HeldVolume) { v.Until = ptr.To(metav1.Now()) }, false},
		{"shared on a node that is let in", v1alpha1.NodeUnfencing, fence.ReasonUnfencing, func(v *v1alpha1.HeldVolume) { v.Detached, v.Shared = true, true }, true},
	} {
		v := heldVolumes("fs-a")
		row.how(&v[0])
		c.writeRecord("back", v1alpha1.NodeFenceStatus{Phase: row.phase, Reason: row.reason, Volumes: v})
		holds(row.what+", without Fairlead", "fs-a", cephfsDriver, "node-2", row.held)
		if row.held {
			refuses(row.what+", without Fairlead", "fs-a", cephfsDriver, "node-2", byPolicy+"volumes'", writes)
			passes(row.what+", to the node itself", "fs-a", cephfsDriver, "back")
		}
	}
	c.writeRecord("back", v1alpha1.NodeFenceStatus{Phase: v1alpha1.NodeHealthy, Reason: fence.ReasonReady})
	holds("nothing on a node that is back, without Fairlead", "fs-a", cephfsDriver, "node-2", false)
	// Another machine has the name of one that is to be fenced, and a record of its own.
	taken := v1alpha1.NodeFenceStatus{Phase: v1alpha1.NodeFencing, Reason: fence.ReasonFencing, Incident: "taken-1", Volumes: heldVolumes("fs-a"), Gone: true}
	c.writeRecord("taken", taken)
	holds("to another machine of the holder's name, without Fairlead", "fs-a", cephfsDriver, "taken", true)
	refuses("to another machine of the holder's name, without Fairlead", "fs-a", cephfsDriver, "taken", byPolicy+"volumes'", "volume fs-a was last on node taken, which is lost and not fenced")
	c.writeRecord("taken", v1alpha1.NodeFenceStatus{Phase: v1alpha1.NodeDrained, Reason: fence.ReasonReplaced, Incident: "taken-1", Volumes: heldVolumes("fs-a"), Gone: true})
	c.writeRecord("taken-2", v1alpha1.NodeFenceStatus{Phase: v1alpha1.NodeLost, Reason: fence.ReasonNotReady, Incident: "taken-2", NodeName: "taken", Volumes: heldVolumes("fs-a")})
	holds("to the machine that has it, without Fairlead", "fs-a", cephfsDriver, "taken", false)
	refuses("on record of a lost namesake of who is fenced, without Fairlead", "fs-a", cephfsDriver, "node-2", byPolicy+"volumes'", "volume fs-a was last on node taken, which is lost and not fenced")
	c.kubectl("delete", "nodefence", "back", "taken", "taken-2", "--wait=false", asController)

	inline := attachmentOf("inline", rbdDriver, "node-2")
	inline.Spec.Source = storagev1.VolumeAttachmentSource{InlineVolumeSpec: &csiVolume("inline", rbdDriver).Spec}
	inline.Spec.Source.InlineVolumeSpec.Capacity = nil
	if err := c.create(inline); err != nil {
		t.Errorf("a volume without PersistentVolume, without Fairlead: %v", err)
	}

	// Nothing but overrides waits for Fairlead.
	c.kubectl("taint", "node", "node-3", fence.OutOfServiceTaint+"=x:NoExecute")
	c.kubectl("taint", "node", "node-3", fence.OutOfServiceTaint+"-")
	c.writeRecord("healthy", v1alpha1.NodeFenceStatus{Phase: v1alpha1.NodeHealthy})
	c.kubectl("delete", "nodefence", "healthy", "unwritten")
	c.refused("annotate", "nodefence", "gone", fence.OverrideAnnotation+"=attach: it burnt")
	c.refused("delete", "nodefence", "gone")

	// Fairlead is back: it knows more, and holds less.
	c.must(c.RunFairlead(t.Context(), 1, 0))
	webhook := c.Replicas()[1].Name
	refuses("on record of a node that is gone", "rbd-a", rbdDriver, "node-2", byWebhook+"volume rbd-a was last on node gone, which is lost and not fenced", "kubectl describe nodefence gone")
	c.lose("node-1")
	refuses("in use on a lost node", "rbd-a", rbdDriver, "node-2", byWebhook)
	passes("not in use there", "rbd-b", rbdDriver, "node-2")

	t.Run("an attachment waits for a fence that is on its way", func(t *testing.T) {
		c := &cluster{Sandbox: c.Sandbox, t: t}
		c.must(c.Client.Create(t.Context(), csiVolume("rbd-c", rbdDriver)))
		status := v1alpha1.NodeFenceStatus{Incident: "soon-1", Volumes: heldVolumes("rbd-c"),
			Fences: []v1alpha1.Fence{{Name: "f", Incident: "soon-1", Driver: rbdDriver, CIDRs: []string{"10.0.0.1/32"}, Since: metav1.Now()}}}
		dryRun := func() error {
			return c.Client.Create(t.Context(), attachmentOf("rbd-c", rbdDriver, "node-2"), client.DryRunAll)
		}
		onItsWay := func() {
			status.Phase, status.Reason, status.Fences[0].State = v1alpha1.NodeFencing, fence.ReasonFencing, v1alpha1.FenceRequested
			c.writeRecord("soon", status)
			c.eventually("the webhook has heard of it", 10*time.Second, func() error {
				if err := dryRun(); err == nil || !strings.Contains(err.Error(), byWebhook) {
					return fmt.Errorf("it says %w", err)
				}
				return nil
			})
		}
		c.whileQuiet(func(int) (pulse, error) {
			onItsWay()
			probe := c.startProbe()
			done := make(chan error, 1)
			started := time.Now()
			go func() { done <- c.tryAttach("rbd-c", rbdDriver, "node-2") }()
			select {
			case err := <-done:
				t.Fatalf("answered after %s: %v", time.Since(started), err)
			case <-time.After(2 * time.Second):
			}
			status.Phase, status.Reason, status.Fences[0].State = v1alpha1.NodeFenced, fence.ReasonFenced, v1alpha1.FenceFenced
			c.writeRecord("soon", status)
			fenced := time.Now()
			err := <-done
			took, meanwhile := time.Since(fenced), probe.end()
			t.Logf("answered %s after the fence stood; %s", took, meanwhile)
			if late := fenced.Sub(started); late > 5*time.Second { // nobody waits for that any more
				meanwhile.slowest = max(meanwhile.slowest, late)
				err = fmt.Errorf("the fence stood only after %s", late)
			} else if err == nil && took > 3*time.Second {
				err = fmt.Errorf("answered only %s after the fence stood", took)
			}
			return meanwhile, err
		})
		// Where it does not come, the answer does, before the API server gives up.
		onItsWay()
		started := time.Now()
		err := c.tryAttach("rbd-c", rbdDriver, "node-2")
		if took := time.Since(started); err == nil || !strings.Contains(err.Error(), byWebhook) || took < 5*time.Second {
			t.Errorf("after %s: %v", took, err)
		}
		started = time.Now()
		if err, took := dryRun(), time.Since(started); err == nil || took > 4*time.Second {
			t.Errorf("a dry run waits: after %s: %v", took, err)
		}
	})
	t.Run("the taint of a healthy node", func(t *testing.T) {
		c := &cluster{Sandbox: c.Sandbox, t: t}
		c.writeRecord("node-2", v1alpha1.NodeFenceStatus{Phase: v1alpha1.NodeHealthy, Reason: fence.ReasonReady, Node: v1alpha1.MachineIdentity{BootID: "boot-1"}})
		out := c.refused("taint", "node", "node-2", fence.OutOfServiceTaint+"=x:NoExecute")
		if !strings.Contains(out, `admission webhook "nodes.fairlead.io" denied the request: node node-2 is Ready`) {
			t.Errorf("got %s", out)
		}
		// One who may write the object, and not override gates.
		c.kubectl("create", "clusterrole", "fence-writer", "--verb=get,update,patch", "--resource=nodefences.fairlead.io")
		c.kubectl("create", "clusterrolebinding", "fence-writer", "--clusterrole=fence-writer", "--user=jane")
		annotate := []string{"annotate", "nodefence", "node-2", fence.OverrideAnnotation + "=taint: it is on fire", "--as=jane", "--overwrite"}
		c.eventually("she may write it, and no more", 10*time.Second, func() error {
			const says = `jane may not override gates: that takes the verb "override-gate" on nodefences.fairlead.io (ClusterRole fairlead-fence-break-glass)`
			if out := c.refused(annotate...); !strings.Contains(out, says) {
				return fmt.Errorf("got %s", out)
			}
			return nil
		})
		c.kubectl("create", "clusterrolebinding", "break-glass", "--clusterrole=fairlead-fence-break-glass", "--user=jane")
		for _, text := range []string{"because", "everything: because", "taint:"} {
			if out := c.refused("annotate", "nodefence", "node-2", fence.OverrideAnnotation+"="+text, "--as=jane"); !strings.Contains(out, `must be "<gate>: <reason>"`) {
				t.Errorf("%q: got %s", text, out)
			}
		}
		c.eventually("the role is taken up", 10*time.Second, func() error {
			_, err := c.Kubectl(t.Context(), "", annotate...)
			return err
		})
		var record v1alpha1.NodeFence
		c.must(c.Client.Get(t.Context(), client.ObjectKey{Name: "node-2"}, &record))
		if o := fence.ReadOverride(record.Annotations, record.Status); o.Gate != fence.GateTaint || o.By != "jane" || o.Reason != "it is on fire" || o.Scope != "boot boot-1" {
			t.Errorf("recorded %+v in %v", o, record.Annotations)
		}
		if out := c.refused("annotate", "nodefence", "node-2", "--overwrite", fence.OverriddenAnnotation+`={"gate":"attach","by":"jane","reason":"it is on fire","scope":"boot boot-1"}`, fence.OverrideAnnotation+"=attach: it is on fire", "--as=joe"); !strings.Contains(out, "forbidden") {
			t.Errorf("got %s", out)
		}
		c.kubectl("taint", "node", "node-2", fence.OutOfServiceTaint+"=x:NoExecute")
		before := c.reviews(webhook, "nodes")
		c.kubectl("taint", "node", "node-2", "--overwrite", fence.OutOfServiceTaint+"=y:NoExecute") // only its value
		c.kubectl("label", "node", "node-3", "some=label")
		c.kubectl("cordon", "node-3")
		c.kubectl("uncordon", "node-3")
		c.kubectl("taint", "node", "node-3", "some=taint:NoExecute")
		if now := c.reviews(webhook, "nodes"); now != before || before == 0 {
			t.Errorf("%d reviews of nodes before changes that are none of Fairlead's business, %d after", before, now)
		}
		c.kubectl("taint", "node", "node-2", fence.OutOfServiceTaint+"-")
		if now := c.reviews(webhook, "nodes"); now <= before { // a patch that meets another write is judged anew
			t.Errorf("taking the taint away: %d reviews, and %d before", now, before)
		}
	})
	t.Run("a lost node is not forgotten", func(t *testing.T) {
		c := &cluster{Sandbox: c.Sandbox, t: t}
		if out := c.refused("delete", "nodefence", "gone"); !strings.Contains(out, "node gone is Lost: the NodeFence is the only record") {
			t.Errorf("got %s", out)
		}
		c.kubectl("annotate", "nodefence", "gone", fence.OverrideAnnotation+"=attach: it burnt")
		passes("the gate is overridden", "rbd-a", rbdDriver, "node-1") // node-1 uses it itself
		c.refused("delete", "nodefence", "gone")
		c.kubectl("annotate", "nodefence", "gone", "--overwrite", fence.OverrideAnnotation+"=unfence: it burnt")
		// Nor before its fences are taken back, whatever gate is open.
		c.kubectl("patch", "nodefence", "gone", "--type=merge", "-p", `{"metadata":{"finalizers":["`+fence.RecordFinalizer+`"]}}`, asController)
		fences := `{"status":{"fences":[{"name":"stands","incident":"gone-1","driver":"` + rbdDriver + `","cidrs":["10.0.0.9/32"],"state":"Fenced","since":"2026-01-01T12:00:00Z"}]}}`
		c.kubectl("patch", "nodefence", "gone", "--subresource=status", "--type=merge", "-p", fences)
		unfinalize := []string{"patch", "nodefence", "gone", "--type=merge", "-p", `{"metadata":{"finalizers":[]}}`}
		for _, try := range [][]string{{"delete", "nodefence", "gone"}, unfinalize} {
			if out := c.refused(try...); !strings.Contains(out, "stays until the node is unfenced (NetworkFence stands)") {
				t.Errorf("%v: got %s", try, out)
			}
		}
		c.kubectl("patch", "nodefence", "gone", "--subresource=status", "--type=merge", "-p", `{"status":{"fences":[]}}`)
		c.kubectl(unfinalize...)
		c.kubectl("delete", "nodefence", "gone")
	})
	t.Run("pods whose volumes are not attached", func(t *testing.T) {
		c := &cluster{Sandbox: c.Sandbox, t: t}
		c.must(c.Client.Create(t.Context(), &storagev1.CSIDriver{ObjectMeta: metav1.ObjectMeta{Name: cephfsDriver}, Spec: storagev1.CSIDriverSpec{AttachRequired: ptr.To(false)}}))
		c.writeRecord("node-1", v1alpha1.NodeFenceStatus{Phase: v1alpha1.NodeLost, Reason: fence.ReasonNotReady, Incident: "node-1-1", Volumes: heldVolumes("fs-a")})
		for name, labels := range map[string]map[string]string{"asks": {fence.OptInLabel: fence.OptedIn}, "does-not": nil} {
			c.must(c.Client.Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels}}))
			c.must(c.Client.Create(t.Context(), &corev1.PersistentVolumeClaim{
				ObjectMeta: metav1.ObjectMeta{Namespace: name, Name: "data"},
				Spec: corev1.PersistentVolumeClaimSpec{
					AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce}, VolumeName: "fs-a", StorageClassName: ptr.To(""),
					Resources: corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")}},
				},
			}))
			pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: name, Name: "web"}, Spec: corev1.PodSpec{
				Containers: []corev1.Container{{Name: "web", Image: "web"}},
				Volumes:    []corev1.Volume{{Name: "data", VolumeSource: corev1.VolumeSource{PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: "data"}}}},
			}}
			plain := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: name, Name: "plain"}, Spec: corev1.PodSpec{Containers: pod.Spec.Containers}}
			c.eventually("pods can be created in "+name, 20*time.Second, func() error { return c.Client.Create(t.Context(), pod) }) // its service account comes a moment later
			c.must(c.Client.Create(t.Context(), plain))
			gated := len(pod.Spec.SchedulingGates) == 1 && pod.Spec.SchedulingGates[0].Name == fence.SchedulingGate && pod.Labels[fence.GatedLabel] == "true"
			if labelled := pod.Labels[fence.UnattachedLabel] == "true"; labelled != gated || plain.Labels[fence.UnattachedLabel] != "" {
				t.Errorf("namespace %s: labels %v; without a claim %v", name, pod.Labels, plain.Labels)
			}
			if gated != (labels != nil) || len(plain.Spec.SchedulingGates) > 0 {
				t.Errorf("namespace %s: gates %v, labels %v; without a claim %v", name, pod.Spec.SchedulingGates, pod.Labels, plain.Spec.SchedulingGates)
			}
		}
		if n := c.reviews(webhook, "workload-pods"); n != 1 {
			t.Errorf("%d pods were sent to Fairlead, want one", n)
		}
	})
	t.Run("a leftover switch of Rook changes nothing", func(t *testing.T) {
		c := &cluster{Sandbox: c.Sandbox, t: t}
		c.kubectl("-n", "rook-ceph", "create", "configmap", "rook-ceph-operator-config", "--from-literal=ROOK_WATCH_FOR_NODE_FAILURE=False")
		if err := c.tryAttach("rbd-a", rbdDriver, "node-2"); err == nil {
			t.Error("rbd-a was attached to node-2")
		}
	})
	if !t.Failed() {
		t.Log(c.kubectl("get", "nodefences"))
	}
}

func heldVolumes(volumes ...string) (all []v1alpha1.HeldVolume) {
	for _, v := range volumes {
		all = append(all, v1alpha1.HeldVolume{PersistentVolume: v, Driver: rbdDriver})
	}
	return all
}

func csiVolume(name, driver string) *corev1.PersistentVolume {
	return &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: corev1.PersistentVolumeSpec{
		AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce}, Capacity: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")},
		PersistentVolumeSource: corev1.PersistentVolumeSource{CSI: &corev1.CSIPersistentVolumeSource{Driver: driver, VolumeHandle: name + "-handle"}},
	}}
}

func attachmentOf(volume, driver, node string) *storagev1.VolumeAttachment {
	return &storagev1.VolumeAttachment{ObjectMeta: metav1.ObjectMeta{GenerateName: volume + "-"}, Spec: storagev1.VolumeAttachmentSpec{
		Attacher: driver, NodeName: node, Source: storagev1.VolumeAttachmentSource{PersistentVolumeName: &volume},
	}}
}

func (c *cluster) create(o client.Object) error { return c.Client.Create(c.t.Context(), o) }

// tryAttach creates an attachment, and deletes it, which must always go.
func (c *cluster) tryAttach(volume, driver, node string) error {
	va := attachmentOf(volume, driver, node)
	if err := c.create(va); err != nil {
		return err
	}
	if err := c.Client.Delete(c.t.Context(), va); err != nil {
		c.t.Errorf("deleting an attachment: %v", err)
	}
	return nil
}

// reviews that a webhook has answered, of rules whose names begin like this.
func (c *cluster) reviews(replica, rule string) int {
	c.t.Helper()
	total := 0
	for _, m := range regexp.MustCompile(`(?m)^fairlead_admission_requests_total\{.*rule="`+rule+`[^"]*"\} (\d+)$`).FindAllStringSubmatch(c.metrics(replica), -1) {
		var n int
		fmt.Sscan(m[1], &n)
		total += n
	}
	return total
}

// inUse has a node's kubelet say that it uses a volume.
func (c *cluster) inUse(node, volume string) {
	c.t.Helper()
	c.kubectl("patch", "node", node, "--subresource=status", "--type=merge", "-p", fmt.Sprintf(`{"status":{"volumesInUse":[%q]}}`, volume))
}

// asController: nobody else may label NodeFences.
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
