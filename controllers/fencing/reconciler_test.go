package fencing

import (
	"testing"
	"time"

	"github.com/fairlead-io/fairlead/api/v1alpha1"
	"github.com/fairlead-io/fairlead/internal/fence"
)

func TestALostNodeIsFencedAndLetInAgain(t *testing.T) {
	w := newWorld(t)
	w.look("node-1")
	s := w.expect("node-1", v1alpha1.NodeHealthy, fence.ReasonReady)
	if s.Addresses != "192.168.1.1/32" || s.VolumeCount != 1 || s.Identities[0].Secret.Name != "rook-csi-rbd-provisioner" {
		t.Fatalf("got %+v", s)
	}

	w.step(time.Minute)
	w.lose("node-1")
	w.look("node-1")
	w.expect("node-1", v1alpha1.NodeLost, fence.ReasonNotReady)
	if n := len(w.fences()); n != 0 {
		t.Fatalf("%d fences before anybody has asked for one", n)
	}

	w.taint("node-1", "nodeshutdown")
	w.look("node-1")
	w.expect("node-1", v1alpha1.NodeFencing, fence.ReasonFencing)
	w.csi()
	w.look("node-1")
	s = w.expect("node-1", v1alpha1.NodeFenced, fence.ReasonFenced)
	n := w.fences()[0]
	if n.Spec.Driver != rbd || n.Spec.CIDRs[0] != "192.168.1.1/32" || n.Spec.Secret.Name != "rook-csi-rbd-provisioner" || n.Spec.Parameters["clusterID"] != "rook-ceph" || n.Name != s.Fences[0].Name {
		t.Fatalf("got %+v", n)
	}
	w.detach("pvc-a", "node-1")
	w.look("node-1")
	w.expect("node-1", v1alpha1.NodeDrained, fence.ReasonDrained)

	w.step(time.Hour)
	w.boot("node-1")
	w.look("node-1")
	w.expect("node-1", v1alpha1.NodeReturned, fence.ReasonTainted)
	w.untaint("node-1")
	w.step(2 * time.Minute)
	w.look("node-1")
	w.expect("node-1", v1alpha1.NodeUnfencing, fence.ReasonUnfencing)
	w.csi()
	w.look("node-1") // deletes it
	w.look("node-1")
	s = w.expect("node-1", v1alpha1.NodeHealthy, fence.ReasonReady)
	if len(w.fences()) != 0 || len(s.Fences) != 0 {
		t.Fatalf("left: %v, %v", w.fences(), s.Fences)
	}
}
