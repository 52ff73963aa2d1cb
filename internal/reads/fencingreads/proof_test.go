package fencingreads

import (
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fairlead-io/fairlead/internal/reads/csiaddons"
	"github.com/fairlead-io/fairlead/internal/testkit/must"
	"github.com/fairlead-io/fairlead/internal/testkit/objects"
)

// Ceph's clients may be on another interface than the one that the Node object names.
func TestNodeAddressIsNoProof(t *testing.T) {
	node, class, host := nodeAt("node-1", "192.168.1.1"), objects.CephClass("block", rbd, "one", "provisioner"), objects.ClientPod("csi-rbdplugin", "node-1")
	silent := objects.AddonsNode("a", rbd, "node-1", "fast", "10.20.0.1/32")
	silent.Status.State = "Failed"
	for name, all := range map[string][]client.Object{
		"its sidecar is not connected": {objects.FenceClass("fast", rbd, "one"), silent, objects.AddonsNode("b", rbd, "node-2", "fast", "10.20.0.2/32")},
		"no class":                     {},
	} {
		t.Run(name, func(t *testing.T) {
			view := fenceWorld{objects: append(append(all, node, class, host), used(rbd, "one")...)}.facts(t, "node-1")
			if l := view.Facts.Ledger; len(l) != 1 || len(l[0].Addresses) > 0 || l[0].Problem == "" {
				t.Fatalf("got %q", written(view.Facts.Ledger))
			}
		})
	}
}

// CSIAddonsNodes of tenants or of deleted workloads are ignored. Source of the owner references: kubernetes-csi-addons
// v0.14.0, sidecar/internal/csiaddonsnode, getCSIAddonsNode.
func TestOnlyDriversWorkloadsAreBelieved(t *testing.T) {
	own := objects.AddonsNode("own", rbd, "node-1", "fast", "10.20.0.1/32")
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
			stray := objects.AddonsNode("a-stray", rbd, "node-1", "fast", "10.20.0.66/32")
			change(stray)
			all := []client.Object{
				nodeAt("node-1", "192.168.1.1"), objects.CephClass("block", rbd, "one", "provisioner"),
				objects.ClientPod("csi-rbdplugin", "node-1"), objects.FenceClass("fast", rbd, "one"), stray,
			}
			got := written(fenceWorld{objects: append(slices.Clone(all), own)}.facts(t, "node-1").Facts.Ledger)
			must.True(t, slices.Equal(got, want), "beside the driver's own: %q", got)
			got = written(fenceWorld{objects: append(all, used(rbd, "one")...)}.facts(t, "node-1").Facts.Ledger)
			must.True(t, len(got) == 1 && !strings.Contains(got[0], "10.20.0.66"), "instead of the driver's own: %q", got)
		})
	}
}
