package fencing

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/fairlead-io/fairlead/api/v1alpha1"
	"github.com/fairlead-io/fairlead/internal/cluster/csiaddons"
	"github.com/fairlead-io/fairlead/internal/config"
	"github.com/fairlead-io/fairlead/internal/fence"
)

// addonsNode is the driver's own CSIAddonsNode of a node.
func addonsNode(node, cidr string) *csiaddons.CSIAddonsNode {
	return &csiaddons.CSIAddonsNode{
		ObjectMeta: metav1.ObjectMeta{Namespace: "rook-ceph", Name: node, OwnerReferences: []metav1.OwnerReference{{Kind: "DaemonSet", Name: "csi-rbdplugin", UID: "uid-csi-rbdplugin"}}},
		Spec:       csiaddons.CSIAddonsNodeSpec{Driver: csiaddons.CSIAddonsNodeDriver{Name: rbd, NodeID: node}},
		Status: csiaddons.CSIAddonsNodeStatus{State: "Connected", NetworkFenceClientStatus: []csiaddons.NetworkFenceClientStatus{
			{NetworkFenceClassName: "rbd", ClientDetails: []csiaddons.ClientDetail{{ID: "fsid", CIDRs: []string{cidr}}}},
		}},
	}
}

// Ceph's clients are on another network than the Nodes, and the sidecar of node-1 is not
// connected: a NetworkFence of its Node's address would be confirmed, and stop nothing.
func TestNodeOfUnknownAddressIsNotFenced(t *testing.T) {
	class := &csiaddons.NetworkFenceClass{ObjectMeta: metav1.ObjectMeta{Name: "rbd"}, Spec: csiaddons.NetworkFenceClassSpec{Provisioner: rbd, Parameters: map[string]string{"clusterID": "rook-ceph"}}}
	silent := addonsNode("node-1", "10.20.0.1/32")
	silent.Status.State = "Failed"
	w := newWorld(t, class, silent, addonsNode("node-2", "10.20.0.2/32"))
	w.config.Profiles[0].Addresses = config.AddressesCSIAddons
	w.restart()
	w.look("node-1")
	w.look("node-2")
	w.expect("node-1", v1alpha1.NodeHealthy, fence.ReasonNotFenceable)
	w.expect("node-2", v1alpha1.NodeHealthy, fence.ReasonReady)
	if n := w.metric("fairlead_not_fenceable_nodes", ""); n != 1 {
		t.Errorf("%v nodes are counted as not fenceable", n)
	}
	w.gone("node-1")
	w.look("node-1")
	w.csi()
	w.look("node-1")
	w.expect("node-1", v1alpha1.NodeFencing, fence.ReasonNoIdentity)
	if got := w.cidrs(); len(got) > 0 {
		t.Errorf("fenced: %v", got)
	}
}

func ownedByPlugin() []metav1.OwnerReference {
	return []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "DaemonSet", Name: "csi-rbdplugin", UID: types.UID("uid-csi-rbdplugin"), Controller: ptr.To(true)}}
}
