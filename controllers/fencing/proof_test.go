package fencing

import (
	"context"
	"errors"
	"net/netip"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/fairlead-io/fairlead/api/v1alpha1"
	"github.com/fairlead-io/fairlead/internal/cluster/csiaddons"
	"github.com/fairlead-io/fairlead/internal/cluster/fencing"
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
// connected. A NetworkFence of the Node's address would succeed, and stop nothing.
func TestNodeWithoutClientAddressIsNotFenced(t *testing.T) {
	silent := addonsNode("node-1", "10.20.0.1/32")
	silent.Status.State = "Failed"
	w := newWorld(t, fenceClass(), silent, addonsNode("node-2", "10.20.0.2/32"))
	w.config.Profiles[0].Addresses = config.AddressesCSIAddons
	w.restart()
	w.look("node-1", "node-2")
	w.mustBe(v1alpha1.NodeHealthy, fence.ReasonNotFenceable)
	w.recordMustBe("node-2", v1alpha1.NodeHealthy, fence.ReasonReady)
	if n := w.Metric("fairlead_not_fenceable_nodes"); n != 1 {
		t.Errorf("%v nodes are counted as not fenceable", n)
	}
	w.loseForGood()
	w.look()
	w.lookAfterCSI()
	w.mustBe(v1alpha1.NodeFencing, fence.ReasonNoIdentity)
	w.mustHaveFences()
}

// openFrom is a storage that reports all held volumes open from one address; "" does not answer.
type openFrom string

func (o openFrom) ask(_ context.Context, f fence.Facts) (report fence.Report, err error) {
	if o == "" {
		return report, errors.New("no answer")
	}
	for _, v := range f.Status.Volumes {
		report.Clients = append(report.Clients, fence.VolumeClients{Volume: v, Addresses: []netip.Addr{netip.MustParseAddr(string(o))}})
	}
	report.Servers = []fence.Server{{Name: "a server", Addresses: []netip.Addr{netip.MustParseAddr("192.168.1.7")}}}
	return report, nil
}

func TestStorageReportThatContradictsTheLedgerStopsTheFence(t *testing.T) {
	for address, want := range map[openFrom]string{"192.168.1.1": fence.ReasonFencing, "192.168.1.9": fence.ReasonContradicted, "": fence.ReasonFencing} {
		w := newWorld(t)
		w.r.Ask = address.ask
		w.loseForGood()
		w.look()
		w.mustBe(v1alpha1.NodeFencing, want)
		contradicted := want == fence.ReasonContradicted
		if len(w.fences()) == 0 != contradicted {
			t.Errorf("%q: got %d fences", address, len(w.fences()))
		}
		if counted := w.Metric("fairlead_fence_refusals_total", fence.ReasonContradicted); counted != 0 != contradicted {
			t.Errorf("%q: counted %v refusals", address, counted)
		}
	}
}

func TestReportedServerIsNotFenced(t *testing.T) {
	w := newWorld(t)
	w.Must(w.Delete(t.Context(), node("node-1", "")))
	w.Must(w.Seed(t.Context(), node("node-1", "192.168.1.7")))
	w.look()
	w.r.Ask = openFrom("192.168.1.7").ask
	w.loseForGood()
	w.look()
	w.mustBe(v1alpha1.NodeFencing, fence.ReasonAddressInUse)
}

// The taint may come after the look that found nothing to ask about, and before the decision.
func TestNoNodeIsFencedBeforeTheStorageIsAsked(t *testing.T) {
	w := newWorld(t)
	w.loseForGood()
	untainted := node("node-1", "192.168.1.1")
	w.ready(corev1.ConditionUnknown)(untainted)
	live, cache := w.API.Client(), w.NewCache()
	cache.Show(untainted)
	live.Cache = cache
	looks := 0
	live.Reading = func(o runtime.Object) error {
		if _, ok := o.(*corev1.Node); ok {
			if looks++; looks == 2 {
				cache.Release()
			}
		}
		return nil
	}
	w.r.Live = fencing.NewFenceReader(w.config, live, w.Client, w.Client)
	w.r.Ask = openFrom("192.168.1.9").ask
	if result := w.look(); result.RequeueAfter != behind || len(w.record("node-1").Status.Fences) != 0 || looks != 2 {
		t.Fatalf("got %+v, %v after %d looks", result, w.record("node-1").Status.Fences, looks)
	}
}
