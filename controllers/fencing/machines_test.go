package fencing

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fairlead-io/fairlead/api/v1alpha1"
	"github.com/fairlead-io/fairlead/internal/cluster"
	"github.com/fairlead-io/fairlead/internal/fence"
)

// replace a node by another machine of its name, which has another address.
func (w *world) replace(name, machine, address string) {
	w.Helper()
	old := w.node(name)
	w.must(w.Delete(w.Context(), old))
	next := node(name, address)
	next.UID, next.Status.NodeInfo = types.UID("uid-"+machine), corev1.NodeSystemInfo{BootID: "boot-" + machine, SystemUUID: "machine-" + machine}
	status := next.Status
	w.must(w.Create(w.Context(), next))
	next.Status = status
	w.must(w.Status().Update(w.Context(), next))
}

// records of a node's name, the earliest first.
func (w *world) records(node string) []v1alpha1.NodeFence {
	w.Helper()
	var list v1alpha1.NodeFenceList
	w.must(w.List(w.Context(), &list))
	records := slices.DeleteFunc(list.Items, func(n v1alpha1.NodeFence) bool { return cluster.NodeOfFence(&n) != node })
	slices.SortFunc(records, func(a, b v1alpha1.NodeFence) int { return a.Status.Ordinal - b.Status.Ordinal })
	return records
}

func TestASecondMachineOfANameHasARecordAndAFenceOfItsOwn(t *testing.T) {
	w := newWorld(t, volume("pvc-b", rbd, "rook-ceph"))
	w.look("node-1")
	w.step(time.Minute)
	w.replace("node-1", "2", "192.168.1.21")
	w.look("node-1")
	w.csi()
	w.look("node-1")
	records := w.records("node-1")
	if len(records) != 2 || records[0].Name != "node-1" || records[1].Labels[fence.NodeLabel] != "node-1" {
		t.Fatalf("got %+v", records)
	}
	second := records[1].Name
	w.expect("node-1", v1alpha1.NodeDrained, fence.ReasonReplaced)
	w.expect(second, v1alpha1.NodeHealthy, fence.ReasonReady)

	w.detach("pvc-a", "node-1")
	w.must(w.Create(t.Context(), attachment("pvc-b", "node-1")))
	w.look("node-1")
	w.step(time.Minute)
	w.lose("node-1")
	w.taint("node-1", "nodeshutdown")
	w.look("node-1")
	w.csi()
	w.look("node-1")
	if got := w.cidrs(); !slices.Equal(got, []string{"Fenced 192.168.1.21/32", "Fenced 192.168.1.1/32"}) {
		t.Fatalf("fenced are %v", got)
	}
	s := w.expect(second, v1alpha1.NodeFenced, fence.ReasonFenced)
	if len(s.Volumes) != 1 || s.Volumes[0].PersistentVolume != "pvc-b" {
		t.Fatalf("it holds %v", s.Volumes)
	}

	// The first is given up, and a third comes: the name is free, and the second is as it was.
	w.override(fence.GateUnfence)
	for range 3 {
		w.look("node-1")
		w.csi()
	}
	w.look("node-1")
	w.replace("node-1", "3", "192.168.1.31")
	w.look("node-1")
	records = w.records("node-1")
	if len(records) != 2 || records[0].Name != second || records[1].Name != "node-1" {
		t.Fatalf("got %+v", records)
	}
	w.expect("node-1", v1alpha1.NodeHealthy, fence.ReasonReady)
	w.expect(second, v1alpha1.NodeDrained, fence.ReasonReplaced)
	if got := w.cidrs(); !slices.Equal(got, []string{"Fenced 192.168.1.21/32"}) {
		t.Fatalf("fenced are %v", got)
	}
	requests := w.r.recordAndWaiting(t.Context(), w.record(second))
	if len(requests) == 0 || requests[0].Name != "node-1" {
		t.Fatalf("a change of %s is looked at for %v", second, requests)
	}
	var shutOut v1alpha1.NodeFence
	shutOut.Name, shutOut.Status = "node-9", v1alpha1.NodeFenceStatus{Phase: v1alpha1.NodeHealthy, Reason: fence.ReasonAddressInUse}
	requests = w.r.recordAndWaiting(t.Context(), &shutOut)
	if len(requests) != 2 || requests[1].Name != "node-1" {
		t.Fatalf("that node-9 is shut out is looked at for %v", requests)
	}
}

// The first look at a machine comes when it is gone: what it left is held, by a record of a machine that nobody saw.
func TestWhatAMachineLeftThatNobodySawIsHeld(t *testing.T) {
	w := newWorld(t, volume("pvc-b", rbd, "rook-ceph"))
	w.look("node-1")
	w.must(w.Delete(t.Context(), w.node("node-1")))
	w.look("node-1")
	w.csi()
	w.look("node-1")
	w.must(w.Create(t.Context(), attachment("pvc-b", "node-1")))
	w.look("node-1")
	records := w.records("node-1")
	if len(records) != 2 || len(records[0].Status.Volumes) != 1 {
		t.Fatalf("got %+v", records)
	}
	s := w.expect(records[1].Name, v1alpha1.NodeFencing, fence.ReasonNoIdentity)
	if len(s.Volumes) != 1 || s.Volumes[0].PersistentVolume != "pvc-b" || s.Node.UID != "unknown" {
		t.Fatalf("got %+v", s)
	}
}

// A crash between the creation of a record and its status leaves a record that says nothing.
func TestARecordThatSaysNothingYetIsOfTheMachineThatIsThere(t *testing.T) {
	w := newWorld(t)
	w.look("node-1")
	w.replace("node-1", "2", "192.168.1.21")
	w.funcs.SubResourceUpdate = func(_ context.Context, _ client.Client, _ string, o client.Object, _ ...client.SubResourceUpdateOption) error {
		if o.GetName() != "node-1" {
			return errors.New("the API server is gone")
		}
		return nil
	}
	if _, err := w.r.Reconcile(t.Context(), ctrl.Request{NamespacedName: types.NamespacedName{Name: "node-1"}}); err == nil {
		t.Fatal("the status was written")
	}
	w.funcs.SubResourceUpdate = nil
	w.restart()
	w.look("node-1")
	records := w.records("node-1")
	if len(records) != 2 || records[1].Status.Node.SystemUUID != "machine-2" {
		t.Fatalf("got %+v", records)
	}
}
