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
	"github.com/fairlead-io/fairlead/internal/fence"
	"github.com/fairlead-io/fairlead/internal/reads/fencingreads"
	"github.com/fairlead-io/fairlead/internal/testkit/must"
)

// replace node-1 by another machine of its name.
func (w *world) replace(machine, address string) *world {
	w.Helper()
	w.delete(w.node("node-1"))
	next := node("node-1", address)
	next.UID, next.Status.NodeInfo = types.UID("uid-"+machine), corev1.NodeSystemInfo{BootID: "boot-" + machine, SystemUUID: "machine-" + machine}
	w.Must(w.Seed(context.Background(), next))
	return w
}

// records of node-1, the earliest first.
func (w *world) records(want int) []v1alpha1.NodeFence {
	w.Helper()
	var list v1alpha1.NodeFenceList
	w.Must(w.List(context.Background(), &list))
	records := slices.DeleteFunc(list.Items, func(n v1alpha1.NodeFence) bool { return fencingreads.NodeOfFence(&n) != "node-1" })
	slices.SortFunc(records, func(a, b v1alpha1.NodeFence) int { return a.Status.Ordinal - b.Status.Ordinal })
	must.True(w, len(records) == want, "got %d records, want %d: %+v", len(records), want, records)
	return records
}

func TestEachMachineOfANameHasItsOwnRecordAndFence(t *testing.T) {
	w := newWorld(t, volume("pvc-b")).look().pass(time.Minute).replace("2", "192.168.1.21").look().lookAfterCSI()
	records := w.records(2)
	second := records[1].Name
	must.True(t, records[0].Name == "node-1" && records[1].Labels[fence.NodeLabel] == "node-1", "got %+v", records)
	w.mustBe(v1alpha1.NodeDrained, fence.ReasonReplaced).recordMustBe(second, v1alpha1.NodeHealthy, fence.ReasonReady)

	w.detach("pvc-a", "node-1").create(attachment("pvc-b", "node-1")).look().pass(time.Minute)
	w.lose("node-1").taint("node-1", "nodeshutdown").look().lookAfterCSI()
	w.mustHaveFences("Fenced 192.168.1.21/32", ours).recordMustBe(second, v1alpha1.NodeFenced, fence.ReasonFenced)
	got := fence.VolumeNames(w.record(second).Status.Volumes)
	must.True(t, slices.Equal(got, []string{"pvc-b"}), "%s holds %q", second, got)

	// An operator unfences the first machine, and a third one gets its name.
	w.override(fence.GateUnfence).finish().replace("3", "192.168.1.31").look()
	records = w.records(2)
	must.True(t, records[0].Name == second && records[1].Name == "node-1", "got %+v", records)
	w.mustBeHealthy().recordMustBe(second, v1alpha1.NodeDrained, fence.ReasonReplaced).mustHaveFences("Fenced 192.168.1.21/32")
}

func TestVolumeOfAnUnseenMachineIsHeld(t *testing.T) {
	w := newWorld(t, volume("pvc-b")).look()
	w.delete(w.node("node-1")).look().pass(time.Minute).look().lookAfterCSI().create(attachment("pvc-b", "node-1")).look().pass(time.Minute).look()
	records := w.records(2)
	w.recordMustBe(records[1].Name, v1alpha1.NodeFencing, fence.ReasonNoIdentity).mustHold("pvc-a")
	s := records[1].Status
	must.True(t, slices.Equal(fence.VolumeNames(s.Volumes), []string{"pvc-b"}) && s.Node.UID == "unknown", "got %+v", s)
}

// A crash between the creation of a record and its status leaves an empty record.
func TestEmptyRecordBelongsToThePresentMachine(t *testing.T) {
	w := newWorld(t).look().replace("2", "192.168.1.21")
	w.refuse(func(o client.Object) error {
		if o.GetName() != "node-1" {
			return errAPI
		}
		return nil
	}, "update/status")
	w.fails(1).restart().look()
	records := w.records(2)
	must.True(t, records[1].Status.Node.SystemUUID == "machine-2", "got %+v", records)
}
