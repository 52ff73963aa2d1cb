package fencing

import (
	"testing"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fairlead-io/fairlead/api/v1alpha1"
	"github.com/fairlead-io/fairlead/internal/fence"
	"github.com/fairlead-io/fairlead/internal/reads/csiaddons"
	"github.com/fairlead-io/fairlead/internal/testkit/must"
	"github.com/fairlead-io/fairlead/internal/testkit/objects"
)

func TestLostNodeIsFencedAndReadmitted(t *testing.T) {
	w := newWorld(t).look()
	w.mustBeHealthy()
	is, s := w.status(), w.spec()
	must.True(t, is.Addresses == "192.168.1.1/32" && is.VolumeCount == 1 && s.Identities[0].Secret.Name == "rook-csi-rbd-provisioner", "got %+v, %+v", is, s)
	w.pass(time.Minute).lose("node-1").look().mustBeLost()
	w.mustHaveFences() // before the taint
	w.taint("node-1", "nodeshutdown").look().mustBeFencing().lookAfterCSI()
	s = w.mustBeFenced().spec()
	n := w.fences()[0]
	if n.Spec.Driver != rbd || n.Spec.CIDRs[0] != "192.168.1.1/32" || n.Spec.Secret.Name != "rook-csi-rbd-provisioner" || n.Spec.Parameters["clusterID"] != "rook-ceph" || n.Name != s.Fences[0].Name {
		t.Fatalf("got %+v", n)
	}
	w.detach("pvc-a", "node-1").look().mustBe(v1alpha1.NodeDrained, fence.ReasonDrained)

	w.pass(time.Hour).boot("node-1").look().mustBe(v1alpha1.NodeReturned, fence.ReasonTainted)
	w.untaint("node-1").look().pass(2*time.Minute).look().mustBe(v1alpha1.NodeUnfencing, fence.ReasonUnfencing)
	w.lookAfterCSI() // deletes the NetworkFence
	w.look().mustBeReadmitted()
}

// What has been Ready under its taint need not settle again.
func TestAutomaticReadmissionWaitsForNoTaint(t *testing.T) {
	w := newWorld(t)
	w.config.Returning.Automatic = true
	w.restart().drain().boot("node-1").look().pass(2*time.Minute).look().mustBe(v1alpha1.NodeUnfencing, fence.ReasonUnfencing)
}

func TestDeletedRecordStaysUntilTheNodeIsReadmitted(t *testing.T) {
	w := newWorld(t).fence()
	w.delete(w.record(first)).look().look().mustBeFenced()
	got := w.Events.About("Warning Kept")
	must.True(t, len(got) == 1 && w.r.kept.Len() == 1, "%d remembered; got %q", w.r.kept.Len(), got)
	w.detach("pvc-a", "node-1").returnRebooted().finish().mustBeReadmitted()
	must.True(t, w.r.kept.Len() == 0, "%d remembered", w.r.kept.Len())
}

func TestDeletedHealthyRecordIsRecreated(t *testing.T) {
	w := newWorld(t).look()
	w.delete(w.record(first)).look().mustBeHealthy()
}

func TestDeletedNodeIsForgottenOnceAnOperatorUnfencesIt(t *testing.T) {
	w := newWorld(t).drain().delete(node("node-1", "")).look()
	w.mustBe(v1alpha1.NodeDrained, fence.ReasonNodeDeleted).override(fence.GateUnfence).finish().mustBeForgotten().mustHaveFences()
}

// The storage classes, NetworkFenceClasses and PersistentVolumes of a deleted storage cluster
// are gone while a fence stands. The record says what the fence was made with.
func TestDeletedStorageClusterLeavesNoFence(t *testing.T) {
	for name, class := range map[string]bool{"with a class": true, "with a secret": false} {
		t.Run(name, func(t *testing.T) {
			var classes []client.Object
			if class {
				classes = append(classes, objects.FenceClass("rbd", rbd, "rook-ceph"))
			}
			w := newWorld(t, classes...)
			s := w.fence().spec()
			must.True(t, len(s.Fences) == 1 && (s.Fences[0].Class != "") == class, "got %+v", s.Fences)
			w.detach("pvc-a", "node-1")
			for _, o := range append(classes, objects.CephClass("block", rbd, "rook-ceph", "rook-csi-rbd-provisioner"), volume("pvc-a"), clientPod("node-1"), clientPod("node-2")) {
				w.delete(o)
			}
			w.restart().look().mustHaveFences(ours).returnRebooted()
			w.look().mustHaveFences("Unfenced 192.168.1.1/32").lookAfterCSI().lookAfterCSI().mustBeReadmitted()
		})
	}
}

// Both records name the conflict, the healthy node's without a list of all nodes.
func TestAddressOfGoneMachineIsReportedOnItsNextOwner(t *testing.T) {
	w := newWorld(t).drain().delete(node("node-1", "")).look().mustWait(0, unwatched)
	w.create(node("node-7", "192.168.1.1")).create(clientPod("node-7"))
	api := w.counted()
	w.look("node-7").recordMustBe(recordOf("node-7", ""), v1alpha1.NodeHealthy, fence.ReasonAddressInUse, "nodefence "+first)
	lists := count(api.Requests(), "list ")
	must.True(t, lists == 0, "%d lists", lists)
	w.look().mustBe(v1alpha1.NodeDrained, fence.ReasonAddressInUse, "node node-7", "unfence")
	w.mustHaveEvent("Warning AddressInUse", "Node/node-7")
}

// A leader that hung creates its NetworkFence after the incident.
func TestLateFenceIsWithdrawn(t *testing.T) {
	w := newWorld(t).loseForGood().look()
	late := w.fences()[0].DeepCopy()
	w.detach("pvc-a", "node-1").lookAfterCSI().returnRebooted().finish().mustBeReadmitted()
	late.ResourceVersion, late.UID = "", ""
	w.create(late).lookAfterCSI().recordMustBe(second, v1alpha1.NodeUnfencing, fence.ReasonUnfencing).finish().mustBeReadmitted()
}

// The API server did not accept the fence before the node was Ready again: it is never created.
func TestRecordedFenceIsWithdrawnOnceTheNodeIsReady(t *testing.T) {
	for reason, tainted := range map[string]bool{fence.ReasonTaintedButReady: true, fence.ReasonStillMounted: false} {
		t.Run(reason, func(t *testing.T) {
			fences := func(o client.Object) error {
				if n, ok := o.(*csiaddons.NetworkFence); ok && n.Spec.FenceState == csiaddons.Fenced {
					return errAPI
				}
				return nil
			}
			w := newWorld(t).loseForGood().refuse(fences, "create").fails(1).restart().refuse(fences, "create").recover()
			if !tainted {
				w.untaint("node-1")
			}
			w.finish().mustBe(v1alpha1.NodeHealthy, reason).mustHaveFences()
		})
	}
}
