package fencing

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/fairlead-io/fairlead/api/v1alpha1"
	"github.com/fairlead-io/fairlead/internal/fence"
)

// ceph-csi's own fencing unfences a node that has not rebooted: two parties must not fence and
// unfence one address.
func TestNothingIsFencedBesideCephCSIsOwnFencing(t *testing.T) {
	controller := clientPod("rook-ceph.rbd.csi.ceph.com-ctrlplugin-1", "node-2")
	controller.Labels = nil
	controller.Spec.Containers = []corev1.Container{{Name: "csi-attacher"}, {Name: "csi-rbdplugin", Args: []string{"--type=rbd", "--enable-fencing=true"}}}
	w := newWorld(t, controller)
	w.look("node-1")
	if s := w.expect("node-1", v1alpha1.NodeHealthy, fence.ReasonNotFenceable); !strings.Contains(s.Message, "pod rook-ceph.rbd.csi.ceph.com-ctrlplugin-1 has --enable-fencing") {
		t.Errorf("it says %s", s.Message)
	}
	w.gone("node-1")
	w.look("node-1")
	w.csi()
	w.look("node-1")
	if s := w.expect("node-1", v1alpha1.NodeFencing, fence.ReasonDriverFences); len(w.cidrs()) > 0 || !strings.Contains(s.Message, "enableFencing: false") {
		t.Fatalf("fenced: %v; it says %s", w.cidrs(), s.Message)
	}
	controller.Spec.Containers[1].Args[1] = "--enable-fencing=false"
	w.must(w.Client.Update(t.Context(), controller))
	w.look("node-1")
	w.csi()
	w.look("node-1")
	if len(w.cidrs()) == 0 {
		t.Errorf("not fenced once ceph-csi fences no more: %+v", w.record("node-1").Status)
	}
}
