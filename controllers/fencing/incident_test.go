package fencing

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fairlead-io/fairlead/api/v1alpha1"
	"github.com/fairlead-io/fairlead/internal/config"
	"github.com/fairlead-io/fairlead/internal/fence"
	"github.com/fairlead-io/fairlead/internal/reads/csiaddons"
	"github.com/fairlead-io/fairlead/internal/testkit/must"
	"github.com/fairlead-io/fairlead/internal/testkit/objects"
)

func TestLostNodeIsFencedAndReadmitted(t *testing.T) {
	w := newWorld(t).look()
	s := w.mustBeHealthy().status()
	must.True(t, s.Addresses == "192.168.1.1/32" && s.VolumeCount == 1 && s.Identities[0].Secret.Name == "rook-csi-rbd-provisioner", "got %+v", s)
	w.pass(time.Minute).lose("node-1").look().mustBeLost()
	w.mustHaveFences() // before the taint
	w.taint("node-1", "nodeshutdown").look().mustBeFencing().lookAfterCSI()
	s = w.mustBeFenced().status()
	n := w.fences()[0]
	if n.Spec.Driver != rbd || n.Spec.CIDRs[0] != "192.168.1.1/32" || n.Spec.Secret.Name != "rook-csi-rbd-provisioner" || n.Spec.Parameters["clusterID"] != "rook-ceph" || n.Name != s.Fences[0].Name {
		t.Fatalf("got %+v", n)
	}
	w.detach("pvc-a", "node-1").look().mustBe(v1alpha1.NodeDrained, fence.ReasonDrained)

	w.pass(time.Hour).boot("node-1").look().mustBe(v1alpha1.NodeReturned, fence.ReasonTainted)
	w.untaint("node-1").pass(2*time.Minute).look().mustBe(v1alpha1.NodeUnfencing, fence.ReasonUnfencing)
	w.lookAfterCSI() // deletes the NetworkFence
	w.look().mustHaveFences()
	s = w.mustBeHealthy().status()
	must.True(t, len(s.Fences) == 0, "left: %v", s.Fences)
}

func TestReadyNodeIsNotFenced(t *testing.T) {
	w := newWorld(t).look().taint("node-1", "nodeshutdown").look()
	w.mustBe(v1alpha1.NodeHealthy, fence.ReasonTaintedButReady).mustHaveFences()
}

// After the loss the node's address may belong to another machine.
func TestFenceHasTheAddressFromBeforeTheLoss(t *testing.T) {
	newWorld(t).loseForGood().move("node-1", "192.168.1.77").look().mustHaveFences(ours)
}

func TestNodeWithoutUsableLedgerIsNotFenced(t *testing.T) {
	for reason, before := range map[string]func(*world){
		fence.ReasonNoIdentity: func(*world) {},
		fence.ReasonStaleLedger: func(w *world) {
			w.look().change("node-1", func(n *corev1.Node) { n.Status.NodeInfo.BootID = "another" })
		},
	} {
		t.Run(reason, func(t *testing.T) {
			w := newWorld(t)
			before(w)
			w.lose("node-1").taint("node-1", "nodeshutdown").look().mustBe(v1alpha1.NodeFencing, reason)
			w.mustHaveFences().mustHaveEvent("Warning", reason, "Node/node-1")
		})
	}
}

func TestRemovedTaintDoesNotReadmitNodeWithoutReboot(t *testing.T) {
	newWorld(t).fence().untaint("node-1").recover().pass(time.Hour).look().mustBe(v1alpha1.NodeFenced, fence.ReasonNotRebooted).mustHaveFences(ours)
}

func TestDeletedRecordStaysUntilTheNodeIsReadmitted(t *testing.T) {
	w := newWorld(t).fence()
	w.delete(w.record("node-1")).look().look().mustBeFenced()
	got := w.Events.About("Warning Kept")
	must.True(t, len(got) == 1 && w.r.kept.Len() == 1, "%d remembered; got %q", w.r.kept.Len(), got)
	w.detach("pvc-a", "node-1").returnRebooted().finish()
	s := w.mustBeHealthy().status()
	w.mustHaveFences()
	if len(s.Fences) != 0 || w.record("node-1").DeletionTimestamp != nil || w.r.kept.Len() != 0 {
		t.Fatalf("left: %+v, %d remembered", s, w.r.kept.Len())
	}
}

func TestDeletedHealthyRecordIsRecreated(t *testing.T) {
	w := newWorld(t).look()
	w.delete(w.record("node-1")).look().mustBeHealthy()
}

func TestDeletedNodeIsForgottenOnceAnOperatorUnfencesIt(t *testing.T) {
	w := newWorld(t).drain().delete(node("node-1", "")).look()
	w.mustBe(v1alpha1.NodeDrained, fence.ReasonNodeDeleted).override(fence.GateUnfence).finish().mustHaveFences()
	w.mustBeForgotten()
}

// csi-addons may never answer again: an administrator may say that nothing is fenced any more.
func TestAdministratorMayEndAnImpossibleUnfencing(t *testing.T) {
	w := newWorld(t).drain().delete(node("node-1", "")).look().override(fence.GateUnfence)
	w.driver = func(*csiaddons.NetworkFence) error { return errAPI }
	w.look().lookAfterCSI().mustBe(v1alpha1.NodeUnfencing, fence.ReasonDriverFailed)
	record := w.record("node-1")
	record.Status.Fences = nil
	w.Must(w.Status().Update(t.Context(), record))
	w.look().mustBeForgotten()
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
			s := w.fence().status()
			must.True(t, len(s.Fences) == 1 && (s.Fences[0].Class != "") == class, "got %+v", s.Fences)
			w.detach("pvc-a", "node-1")
			for _, o := range append(classes, objects.CephClass("block", rbd, "rook-ceph", "rook-csi-rbd-provisioner"), volume("pvc-a"), clientPod("node-1"), clientPod("node-2")) {
				w.delete(o)
			}
			w.restart().look().mustHaveFences(ours).returnRebooted()
			w.look().mustHaveFences("Unfenced 192.168.1.1/32").lookAfterCSI().lookAfterCSI().mustBeHealthy().mustHaveFences()
		})
	}
}

// Both records name the conflict, the healthy node's without a list of all nodes: csi-addons' lease is looked for, once a minute.
func TestAddressOfGoneMachineIsReportedOnItsNextOwner(t *testing.T) {
	w := newWorld(t).drain().delete(node("node-1", "")).look().mustWait(0, unwatched)
	w.create(node("node-7", "192.168.1.1")).create(clientPod("node-7"))
	lists := w.countLiveLists()
	w.look("node-7").recordMustBe("node-7", v1alpha1.NodeHealthy, fence.ReasonAddressInUse, "nodefence node-1")
	must.True(t, *lists == 1, "%d lists", *lists)
	w.look().mustBe(v1alpha1.NodeDrained, fence.ReasonAddressInUse, "node node-7", "unfence")
	w.mustHaveEvent("Warning AddressInUse", "Node/node-7")
}

// A leader that hung creates its NetworkFence after the incident.
func TestLateFenceIsWithdrawn(t *testing.T) {
	w := newWorld(t).loseForGood().look()
	late := w.fences()[0].DeepCopy()
	w.detach("pvc-a", "node-1").lookAfterCSI().returnRebooted().finish().mustBeHealthy()
	late.ResourceVersion, late.UID = "", ""
	w.create(late).lookAfterCSI().mustBe(v1alpha1.NodeUnfencing, fence.ReasonUnfencing).finish().mustBeHealthy().mustHaveFences()
}

func strayFence(node string) *csiaddons.NetworkFence {
	n := &csiaddons.NetworkFence{Spec: csiaddons.NetworkFenceSpec{
		Driver: rbd, FenceState: csiaddons.Fenced, CIDRs: []string{"192.168.1.1/32"}, Parameters: map[string]string{"clusterID": "rook-ceph"},
	}}
	n.Name, n.Labels = "fairlead-stray", map[string]string{fence.NodeLabel: fence.LabelValue(node), fence.IncidentLabel: "before", fence.BootLabel: "the boot before"}
	return n
}

func TestFenceThatNoRecordNamesIsWithdrawnByItsNode(t *testing.T) {
	w := newWorld(t, strayFence("node-11")).look().mustWait(refresh, refresh).pass(refresh).look()
	w.mustHaveFences(ours) // another node's
	w.delete(strayFence("")).create(strayFence("node-1")).csi().pass(refresh).finish().mustBeHealthy().mustHaveFences()
}

// withdraw expects that no fence is in effect while all are withdrawn.
func (w *world) withdraw() *world {
	w.Helper()
	for range 4 {
		for _, n := range w.fences() {
			must.True(w, n.Spec.FenceState == csiaddons.Unfenced || n.DeletionTimestamp != nil, "%s fences the node", n.Name)
		}
		w.lookAfterCSI()
	}
	return w.mustHaveFences()
}

// The API server did not accept the fence before the node was Ready again.
func TestRecordedFenceIsWithdrawnOnceTheNodeIsReady(t *testing.T) {
	for reason, tainted := range map[string]bool{fence.ReasonTaintedButReady: true, fence.ReasonReady: false} {
		t.Run(reason, func(t *testing.T) {
			w := newWorld(t).loseForGood().refuse(func(client.Object) error { return errAPI }, "create").fails(1)
			w.restart().recover()
			if !tainted {
				w.untaint("node-1")
			}
			w.look().withdraw().mustBe(v1alpha1.NodeHealthy, reason)
		})
	}
}

func TestModeOffWithdrawsFences(t *testing.T) {
	w := newWorld(t).loseForGood().look()
	w.config = fencingOf(config.Off)
	w.restart().look().mustBe(v1alpha1.NodeFencing, fence.ReasonSwitchedOff).withdraw()
	w.mustBe(v1alpha1.NodeLost, fence.ReasonNothingHeld)
}

// ceph-csi unfences a node without a reboot: two parties must not fence one address.
func TestCephCSIsOwnFencingExcludesOurs(t *testing.T) {
	controller := objects.Pod("rook-ceph", "rook-ceph.rbd.csi.ceph.com-ctrlplugin-1", "node-2")
	controller.Spec.Containers = []corev1.Container{{Name: "csi-attacher"}, {Name: "csi-rbdplugin", Args: []string{"--type=rbd", "--enable-fencing=true"}}}
	w := newWorld(t, controller).look().mustBe(v1alpha1.NodeHealthy, fence.ReasonNotFenceable, "pod rook-ceph.rbd.csi.ceph.com-ctrlplugin-1 has --enable-fencing")
	w.loseForGood().look().lookAfterCSI().mustBe(v1alpha1.NodeFencing, fence.ReasonDriverFences, "enableFencing: false")
	w.mustHaveFences()
	controller.Spec.Containers[1].Args[1] = "--enable-fencing=false"
	w.Must(w.Update(t.Context(), controller))
	w.look().lookAfterCSI().mustHaveFences(ours)
}
