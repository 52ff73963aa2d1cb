package fencing

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fairlead-io/fairlead/api/v1alpha1"
	"github.com/fairlead-io/fairlead/internal/cluster/csiaddons"
	"github.com/fairlead-io/fairlead/internal/config"
	"github.com/fairlead-io/fairlead/internal/fence"
	"github.com/fairlead-io/fairlead/internal/testkit"
)

func TestLostNodeIsFencedAndReadmitted(t *testing.T) {
	w := newWorld(t)
	w.look()
	s := w.mustBe(v1alpha1.NodeHealthy, fence.ReasonReady)
	if s.Addresses != "192.168.1.1/32" || s.VolumeCount != 1 || s.Identities[0].Secret.Name != "rook-csi-rbd-provisioner" {
		t.Fatalf("got %+v", s)
	}
	w.Pass(time.Minute)
	w.lose("node-1")
	w.look()
	w.mustBe(v1alpha1.NodeLost, fence.ReasonNotReady)
	w.mustHaveFences() // before the taint
	w.taint("node-1", "nodeshutdown")
	w.look()
	w.mustBe(v1alpha1.NodeFencing, fence.ReasonFencing)
	w.lookAfterCSI()
	s = w.mustBe(v1alpha1.NodeFenced, fence.ReasonFenced)
	n := w.fences()[0]
	if n.Spec.Driver != rbd || n.Spec.CIDRs[0] != "192.168.1.1/32" || n.Spec.Secret.Name != "rook-csi-rbd-provisioner" || n.Spec.Parameters["clusterID"] != "rook-ceph" || n.Name != s.Fences[0].Name {
		t.Fatalf("got %+v", n)
	}
	w.detach("pvc-a", "node-1")
	w.look()
	w.mustBe(v1alpha1.NodeDrained, fence.ReasonDrained)

	w.Pass(time.Hour)
	w.boot("node-1")
	w.look()
	w.mustBe(v1alpha1.NodeReturned, fence.ReasonTainted)
	w.untaint("node-1")
	w.Pass(2 * time.Minute)
	w.look()
	w.mustBe(v1alpha1.NodeUnfencing, fence.ReasonUnfencing)
	w.lookAfterCSI() // deletes the NetworkFence
	w.look()
	w.mustHaveFences()
	if s = w.mustBe(v1alpha1.NodeHealthy, fence.ReasonReady); len(s.Fences) != 0 {
		t.Fatalf("left: %v", s.Fences)
	}
}

func TestReadyNodeIsNotFenced(t *testing.T) {
	w := newWorld(t)
	w.look()
	w.taint("node-1", "nodeshutdown")
	w.look()
	w.mustBe(v1alpha1.NodeHealthy, fence.ReasonTaintedButReady)
	w.mustHaveFences()
}

// After the loss the node's address may belong to another machine.
func TestFenceHasTheAddressFromBeforeTheLoss(t *testing.T) {
	w := newWorld(t)
	w.loseForGood()
	w.change("node-1", func(n *corev1.Node) { n.Status.Addresses[1].Address = "192.168.1.77" })
	w.look()
	w.mustHaveFences(ours)
}

func TestNodeWithoutUsableLedgerIsNotFenced(t *testing.T) {
	for reason, before := range map[string]func(*world){
		fence.ReasonNoIdentity: func(*world) {},
		fence.ReasonStaleLedger: func(w *world) {
			w.look()
			w.change("node-1", func(n *corev1.Node) { n.Status.NodeInfo.BootID = "another" })
		},
	} {
		t.Run(reason, func(t *testing.T) {
			w := newWorld(t)
			before(w)
			w.lose("node-1")
			w.taint("node-1", "nodeshutdown")
			w.look()
			w.mustBe(v1alpha1.NodeFencing, reason)
			w.mustHaveFences()
			w.mustHaveEvent("Warning", reason, "Node/node-1")
		})
	}
}

func TestRemovedTaintDoesNotReadmitNodeWithoutReboot(t *testing.T) {
	w := newWorld(t)
	w.fence()
	w.untaint("node-1")
	w.change("node-1", w.ready(corev1.ConditionTrue))
	w.Pass(time.Hour)
	w.look()
	w.mustBe(v1alpha1.NodeFenced, fence.ReasonNotRebooted)
	w.mustHaveFences(ours)
}

func TestDeletedRecordStaysUntilTheNodeIsReadmitted(t *testing.T) {
	w := newWorld(t)
	w.fence()
	w.Must(w.Delete(t.Context(), w.record("node-1")))
	w.look()
	w.look()
	w.mustBe(v1alpha1.NodeFenced, fence.ReasonFenced)
	if got := w.Events.About("Warning Kept"); len(got) != 1 || w.r.kept.Len() != 1 {
		t.Fatalf("%d remembered; got %q", w.r.kept.Len(), got)
	}
	w.detach("pvc-a", "node-1")
	w.comeBack()
	w.finish()
	s := w.mustBe(v1alpha1.NodeHealthy, fence.ReasonReady)
	w.mustHaveFences()
	if len(s.Fences) != 0 || w.record("node-1").DeletionTimestamp != nil || w.r.kept.Len() != 0 {
		t.Fatalf("left: %+v, %d remembered", s, w.r.kept.Len())
	}
}

func TestDeletedHealthyRecordIsRecreated(t *testing.T) {
	w := newWorld(t)
	w.look()
	w.Must(w.Delete(t.Context(), w.record("node-1")))
	w.look()
	w.mustBe(v1alpha1.NodeHealthy, fence.ReasonReady)
}

func TestDeletedNodeIsForgottenOnceAnOperatorUnfencesIt(t *testing.T) {
	w := newWorld(t)
	w.drain()
	w.Must(w.Delete(t.Context(), node("node-1", "")))
	w.look()
	w.mustBe(v1alpha1.NodeDrained, fence.ReasonNodeDeleted)
	w.override(fence.GateUnfence)
	w.finish()
	w.mustHaveFences()
	if record := testkit.Get[v1alpha1.NodeFence](t, w.API, "", "node-1"); record != nil {
		t.Fatalf("not forgotten: %+v", record)
	}
}

// csi-addons may never answer again: an administrator may say that nothing is fenced any more.
func TestAdministratorMayEndAnImpossibleUnfencing(t *testing.T) {
	w := newWorld(t)
	w.drain()
	w.Must(w.Delete(t.Context(), node("node-1", "")))
	w.look()
	w.override(fence.GateUnfence)
	w.driver = func(*csiaddons.NetworkFence) error { return errAPI }
	w.look()
	w.lookAfterCSI()
	w.mustBe(v1alpha1.NodeUnfencing, fence.ReasonDriverFailed)
	record := w.record("node-1")
	record.Status.Fences = nil
	w.Must(w.Status().Update(t.Context(), record))
	w.look()
	if record := testkit.Get[v1alpha1.NodeFence](t, w.API, "", "node-1"); record != nil {
		t.Errorf("the record is still there: %+v", record.Status)
	}
}

// The storage classes, NetworkFenceClasses and PersistentVolumes of a deleted storage cluster
// are gone while a fence stands. The record says what the fence was made with.
func TestDeletedStorageClusterLeavesNoFence(t *testing.T) {
	for name, class := range map[string]bool{"with a class": true, "with a secret": false} {
		t.Run(name, func(t *testing.T) {
			var classes []client.Object
			if class {
				classes = append(classes, fenceClass())
			}
			w := newWorld(t, classes...)
			if s := w.fence(); len(s.Fences) != 1 || (s.Fences[0].Class != "") != class {
				t.Fatalf("got %+v", s.Fences)
			}
			w.detach("pvc-a", "node-1")
			for _, o := range append(classes, storageClass("block", rbd, "rook-ceph"), volume("pvc-a", rbd, "rook-ceph"), clientPod("csi-rbdplugin-1", "node-1"), clientPod("csi-rbdplugin-2", "node-2")) {
				w.Must(w.Delete(t.Context(), o))
			}
			w.restart()
			w.look()
			w.mustHaveFences(ours)
			w.comeBack()
			w.look()
			w.mustHaveFences("Unfenced 192.168.1.1/32")
			w.lookAfterCSI()
			w.lookAfterCSI()
			w.mustBe(v1alpha1.NodeHealthy, fence.ReasonReady)
			w.mustHaveFences()
		})
	}
}

// Both records name the conflict, the healthy node's without a list of all nodes.
func TestAddressOfGoneMachineIsReportedOnItsNextOwner(t *testing.T) {
	w := newWorld(t)
	w.drain()
	w.Must(w.Delete(t.Context(), node("node-1", "")))
	if after := w.look().RequeueAfter; after > unwatched {
		t.Fatalf("looks again after %s", after)
	}
	w.Must(w.Create(t.Context(), node("node-7", "192.168.1.1")))
	w.Must(w.Create(t.Context(), clientPod("csi-rbdplugin-7", "node-7")))
	lists := w.countLiveLists()
	w.look("node-7")
	w.recordMustBe("node-7", v1alpha1.NodeHealthy, fence.ReasonAddressInUse, "nodefence node-1")
	if *lists != 0 {
		t.Fatalf("%d lists", *lists)
	}
	w.look()
	w.mustBe(v1alpha1.NodeDrained, fence.ReasonAddressInUse, "node node-7", "unfence")
	w.mustHaveEvent("Warning AddressInUse", "Node/node-7")
}

// A leader that hung creates its NetworkFence after the incident.
func TestLateFenceIsWithdrawn(t *testing.T) {
	w := newWorld(t)
	w.loseForGood()
	w.look()
	late := w.fences()[0].DeepCopy()
	w.detach("pvc-a", "node-1")
	w.lookAfterCSI()
	w.comeBack()
	w.finish()
	w.mustBe(v1alpha1.NodeHealthy, fence.ReasonReady)
	late.ResourceVersion, late.UID = "", ""
	w.Must(w.Create(t.Context(), late))
	w.lookAfterCSI()
	w.mustBe(v1alpha1.NodeUnfencing, fence.ReasonUnfencing)
	w.finish()
	w.mustBe(v1alpha1.NodeHealthy, fence.ReasonReady)
	w.mustHaveFences()
}

func strayFence(node string) *csiaddons.NetworkFence {
	n := &csiaddons.NetworkFence{Spec: csiaddons.NetworkFenceSpec{
		Driver: rbd, FenceState: csiaddons.Fenced, CIDRs: []string{"192.168.1.1/32"}, Parameters: map[string]string{"clusterID": "rook-ceph"},
	}}
	n.Name, n.Labels = "fairlead-stray", map[string]string{fence.NodeLabel: fence.LabelValue(node), fence.IncidentLabel: "before", fence.BootLabel: "the boot before"}
	return n
}

func TestFenceThatNoRecordNamesIsWithdrawnByItsNode(t *testing.T) {
	w := newWorld(t, strayFence("node-11"))
	if after := w.look().RequeueAfter; after != refresh {
		t.Fatalf("looks again after %v", after)
	}
	w.Pass(refresh)
	w.look()
	w.mustHaveFences(ours) // another node's
	w.Must(w.Delete(t.Context(), strayFence("")))
	w.Must(w.Create(t.Context(), strayFence("node-1")))
	w.csi()
	w.Pass(refresh)
	w.finish()
	w.mustBe(v1alpha1.NodeHealthy, fence.ReasonReady)
	w.mustHaveFences()
}

// withdraw expects that no fence is in effect while all are withdrawn.
func (w *world) withdraw() {
	w.Helper()
	for range 4 {
		for _, n := range w.fences() {
			if n.Spec.FenceState != csiaddons.Unfenced && n.DeletionTimestamp == nil {
				w.Fatalf("%s fences the node", n.Name)
			}
		}
		w.lookAfterCSI()
	}
	w.mustHaveFences()
}

// The API server did not accept the fence before the node was Ready again.
func TestRecordedFenceIsWithdrawnOnceTheNodeIsReady(t *testing.T) {
	for reason, tainted := range map[string]bool{fence.ReasonTaintedButReady: true, fence.ReasonReady: false} {
		t.Run(reason, func(t *testing.T) {
			w := newWorld(t)
			w.loseForGood()
			w.refuse(func(client.Object) error { return errAPI }, "create")
			_ = w.fails()
			w.restart()
			w.change("node-1", w.ready(corev1.ConditionTrue))
			if !tainted {
				w.untaint("node-1")
			}
			w.look()
			w.withdraw()
			w.mustBe(v1alpha1.NodeHealthy, reason)
		})
	}
}

func TestModeOffWithdrawsFences(t *testing.T) {
	w := newWorld(t)
	w.loseForGood()
	w.look()
	w.config = fencingOf(config.Off)
	w.restart()
	w.look()
	w.mustBe(v1alpha1.NodeFencing, fence.ReasonSwitchedOff)
	w.withdraw()
	w.mustBe(v1alpha1.NodeLost, fence.ReasonNothingHeld)
}

func TestLeftoverSwitchOfRookIsReportedAndIgnored(t *testing.T) {
	for value, reported := range map[string]bool{"false": true, " False\n": true, "true": false, "": false} {
		leftover := &corev1.ConfigMap{Data: map[string]string{"ROOK_WATCH_FOR_NODE_FAILURE": value}}
		leftover.Namespace, leftover.Name = "rook-ceph", "rook-ceph-operator-config"
		w := newWorld(t, leftover)
		l := &Leftovers{Profiles: w.config.Profiles, API: w.API, Events: w.Events, Log: w.Log}
		w.Must(l.Start(t.Context()))
		if got := w.Events.About("Warning LeftoverSwitch ConfigMap/", "ROOK_WATCH_FOR_NODE_FAILURE"); len(got) > 0 != reported {
			t.Errorf("%q: %q", value, got)
		}
		w.fence()
	}
}

// ceph-csi unfences a node without a reboot: two parties must not fence one address.
func TestCephCSIsOwnFencingExcludesOurs(t *testing.T) {
	controller := clientPod("rook-ceph.rbd.csi.ceph.com-ctrlplugin-1", "node-2")
	controller.Labels = nil
	controller.Spec.Containers = []corev1.Container{{Name: "csi-attacher"}, {Name: "csi-rbdplugin", Args: []string{"--type=rbd", "--enable-fencing=true"}}}
	w := newWorld(t, controller)
	w.look()
	w.mustBe(v1alpha1.NodeHealthy, fence.ReasonNotFenceable, "pod rook-ceph.rbd.csi.ceph.com-ctrlplugin-1 has --enable-fencing")
	w.loseForGood()
	w.look()
	w.lookAfterCSI()
	w.mustBe(v1alpha1.NodeFencing, fence.ReasonDriverFences, "enableFencing: false")
	w.mustHaveFences()
	controller.Spec.Containers[1].Args[1] = "--enable-fencing=false"
	w.Must(w.Update(t.Context(), controller))
	w.look()
	w.lookAfterCSI()
	w.mustHaveFences(ours)
}
