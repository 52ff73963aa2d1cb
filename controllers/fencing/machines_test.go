package fencing

import (
	"context"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fairlead-io/fairlead/api/v1alpha1"
	"github.com/fairlead-io/fairlead/internal/cluster/fencing"
	"github.com/fairlead-io/fairlead/internal/fence"
)

// replace node-1 by another machine of its name.
func (w *world) replace(machine, address string) {
	w.Helper()
	w.Must(w.Delete(context.Background(), w.node("node-1")))
	next := node("node-1", address)
	next.UID, next.Status.NodeInfo = types.UID("uid-"+machine), corev1.NodeSystemInfo{BootID: "boot-" + machine, SystemUUID: "machine-" + machine}
	w.Must(w.Seed(context.Background(), next))
}

// records of node-1, the earliest first.
func (w *world) records(want int) []v1alpha1.NodeFence {
	w.Helper()
	var list v1alpha1.NodeFenceList
	w.Must(w.List(context.Background(), &list))
	records := slices.DeleteFunc(list.Items, func(n v1alpha1.NodeFence) bool { return fencing.NodeOfFence(&n) != "node-1" })
	slices.SortFunc(records, func(a, b v1alpha1.NodeFence) int { return a.Status.Ordinal - b.Status.Ordinal })
	if len(records) != want {
		w.Fatalf("got %d records, want %d: %+v", len(records), want, records)
	}
	return records
}

func mustHold(t *testing.T, s v1alpha1.NodeFenceStatus, volume string) {
	t.Helper()
	if len(s.Volumes) != 1 || s.Volumes[0].PersistentVolume != volume {
		t.Fatalf("holds %+v, want %s", s.Volumes, volume)
	}
}

func TestEachMachineOfANameHasItsOwnRecordAndFence(t *testing.T) {
	w := newWorld(t, volume("pvc-b", rbd, "rook-ceph"))
	w.look()
	w.Pass(time.Minute)
	w.replace("2", "192.168.1.21")
	w.look()
	w.lookAfterCSI()
	records := w.records(2)
	second := records[1].Name
	if records[0].Name != "node-1" || records[1].Labels[fence.NodeLabel] != "node-1" {
		t.Fatalf("got %+v", records)
	}
	w.mustBe(v1alpha1.NodeDrained, fence.ReasonReplaced)
	w.recordMustBe(second, v1alpha1.NodeHealthy, fence.ReasonReady)

	w.detach("pvc-a", "node-1")
	w.Must(w.Create(t.Context(), attachment("pvc-b", "node-1")))
	w.look()
	w.Pass(time.Minute)
	w.lose("node-1")
	w.taint("node-1", "nodeshutdown")
	w.look()
	w.lookAfterCSI()
	w.mustHaveFences("Fenced 192.168.1.21/32", ours)
	mustHold(t, w.recordMustBe(second, v1alpha1.NodeFenced, fence.ReasonFenced), "pvc-b")

	// An operator unfences the first machine, and a third one gets its name.
	w.override(fence.GateUnfence)
	w.finish()
	w.replace("3", "192.168.1.31")
	w.look()
	if records = w.records(2); records[0].Name != second || records[1].Name != "node-1" {
		t.Fatalf("got %+v", records)
	}
	w.mustBe(v1alpha1.NodeHealthy, fence.ReasonReady)
	w.recordMustBe(second, v1alpha1.NodeDrained, fence.ReasonReplaced)
	w.mustHaveFences("Fenced 192.168.1.21/32")
	if got := w.r.recordAndWaiting(t.Context(), w.record(second)); len(got) == 0 || got[0].Name != "node-1" {
		t.Fatalf("a change of %s is reconciled for %v", second, got)
	}
	var fencedOut v1alpha1.NodeFence
	fencedOut.Name, fencedOut.Status = "node-9", v1alpha1.NodeFenceStatus{Phase: v1alpha1.NodeHealthy, Reason: fence.ReasonAddressInUse}
	if got := w.r.recordAndWaiting(t.Context(), &fencedOut); len(got) != 2 || got[1].Name != "node-1" {
		t.Fatalf("the record of a node with a fenced address is reconciled for %v", got)
	}
}

func TestVolumeOfAnUnseenMachineIsHeld(t *testing.T) {
	w := newWorld(t, volume("pvc-b", rbd, "rook-ceph"))
	w.look()
	w.Must(w.Delete(t.Context(), w.node("node-1")))
	w.look()
	w.lookAfterCSI()
	w.Must(w.Create(t.Context(), attachment("pvc-b", "node-1")))
	w.look()
	records := w.records(2)
	s := w.recordMustBe(records[1].Name, v1alpha1.NodeFencing, fence.ReasonNoIdentity)
	if mustHold(t, s, "pvc-b"); len(records[0].Status.Volumes) != 1 || s.Node.UID != "unknown" {
		t.Fatalf("got %+v, %+v", records[0].Status, s)
	}
}

// A crash between the creation of a record and its status leaves an empty record.
func TestEmptyRecordBelongsToThePresentMachine(t *testing.T) {
	w := newWorld(t)
	w.look()
	w.replace("2", "192.168.1.21")
	w.refuse(func(o client.Object) error {
		if o.GetName() != "node-1" {
			return errAPI
		}
		return nil
	}, "update/status")
	_ = w.fails()
	w.restart()
	w.look()
	if records := w.records(2); records[1].Status.Node.SystemUUID != "machine-2" {
		t.Fatalf("got %+v", records)
	}
}
