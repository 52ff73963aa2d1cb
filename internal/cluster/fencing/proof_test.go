package fencing

import (
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fairlead-io/fairlead/internal/cluster/csiaddons"
)

// Ceph's clients may be on another interface than the one that the Node object names.
func TestNodeAddressIsNoProof(t *testing.T) {
	node, class, host := fencedNodeObject("node-1", "192.168.1.1"), fencedStorageClass("block", rbdDriver, "one", "provisioner"), fencedClient("csi-rbdplugin", "node-1")
	silent := addonsNode("a", rbdDriver, "node-1", "fast", "10.20.0.1/32")
	silent.Status.State = "Failed"
	for name, objects := range map[string][]client.Object{
		"its sidecar is not connected": {fenceClass("fast", rbdDriver, "one"), silent, addonsNode("b", rbdDriver, "node-2", "fast", "10.20.0.2/32")},
		"no class":                     {},
	} {
		t.Run(name, func(t *testing.T) {
			view := fenceWorld{objects: append(append(objects, node, class, host), used(rbdDriver, "one")...)}.facts(t, "node-1")
			if l := view.Facts.Ledger; len(l) != 1 || len(l[0].Addresses) > 0 || l[0].Problem == "" {
				t.Fatalf("got %q", written(view.Facts.Ledger))
			}
		})
	}
}

// CSIAddonsNodes that a tenant, or a workload that is gone, has left are not believed. Who owns
// them: kubernetes-csi-addons v0.14.0, sidecar/internal/csiaddonsnode, getCSIAddonsNode.
func TestOnlyDriversWorkloadsAreBelieved(t *testing.T) {
	own := addonsNode("own", rbdDriver, "node-1", "fast", "10.20.0.1/32")
	want := []string{"rbd/one: CSIAddonsNode 10.20.0.1/32 id fsid class fast secret rook-ceph/provisioner"}
	for name, change := range map[string]func(*csiaddons.CSIAddonsNode){
		"another namespace": func(n *csiaddons.CSIAddonsNode) { n.Namespace = "tenant" },
		"no owner":          func(n *csiaddons.CSIAddonsNode) { n.OwnerReferences = nil },
		"a driver's controller": func(n *csiaddons.CSIAddonsNode) {
			n.OwnerReferences = []metav1.OwnerReference{{APIVersion: "v1", Kind: "Pod", Name: "csi-rbdplugin-provisioner-1", UID: "uid-provisioner-1"}}
		},
		"a DaemonSet of before": func(n *csiaddons.CSIAddonsNode) { n.OwnerReferences[0].UID = "of-before" },
	} {
		t.Run(name, func(t *testing.T) {
			stray := addonsNode("a-stray", rbdDriver, "node-1", "fast", "10.20.0.66/32")
			change(stray)
			objects := []client.Object{
				fencedNodeObject("node-1", "192.168.1.1"), fencedStorageClass("block", rbdDriver, "one", "provisioner"),
				fencedClient("csi-rbdplugin", "node-1"), fenceClass("fast", rbdDriver, "one"), stray,
			}
			if got := written(fenceWorld{objects: append(slices.Clone(objects), own)}.facts(t, "node-1").Facts.Ledger); !slices.Equal(got, want) {
				t.Errorf("beside the driver's own: %q", got)
			}
			if got := written(fenceWorld{objects: append(objects, used(rbdDriver, "one")...)}.facts(t, "node-1").Facts.Ledger); len(got) != 1 || strings.Contains(got[0], "10.20.0.66") {
				t.Errorf("instead of the driver's own: %q", got)
			}
		})
	}
}
