package fencing

import (
	"context"
	"errors"
	"net/netip"
	"testing"

	"github.com/fairlead-io/fairlead/api/v1alpha1"
	"github.com/fairlead-io/fairlead/controllers/kit"
	"github.com/fairlead-io/fairlead/internal/config"
	"github.com/fairlead-io/fairlead/internal/fence"
	"github.com/fairlead-io/fairlead/internal/reads/csiaddons"
	"github.com/fairlead-io/fairlead/internal/reads/fencingreads"
	"github.com/fairlead-io/fairlead/internal/testkit"
	"github.com/fairlead-io/fairlead/internal/testkit/fakeapi"
	"github.com/fairlead-io/fairlead/internal/testkit/must"
	"github.com/fairlead-io/fairlead/internal/testkit/objects"
)

// Ceph's clients are on another network than the Nodes, and the sidecar of node-1 is not
// connected. A NetworkFence of the Node's address would succeed, and stop nothing.
func TestNodeWithoutClientAddressIsNotFenced(t *testing.T) {
	silent := objects.AddonsNode("node-1", rbd, "node-1", "rbd", "10.20.0.1/32")
	silent.Status.State = "Failed"
	w := newWorld(t, objects.FenceClass("rbd", rbd, "rook-ceph"), silent, objects.AddonsNode("node-2", rbd, "node-2", "rbd", "10.20.0.2/32"))
	w.config.Profiles[0].Addresses = config.AddressesCSIAddons
	w.restart().look("node-1", "node-2").mustBe(v1alpha1.NodeHealthy, fence.ReasonNotFenceable).recordMustBe(recordOf("node-2", ""), v1alpha1.NodeHealthy, fence.ReasonReady)
	n := w.Metric("fairlead_not_fenceable_nodes")
	must.True(t, n == 1, "%v nodes are counted as not fenceable", n)
	w.loseForGood().look().lookAfterCSI().mustBe(v1alpha1.NodeFencing, fence.ReasonNoIdentity).mustHaveFences()
}

// csi-addons' manager is down while the node boots with another address. Its CSIAddonsNode still says Connected.
func TestReportOfEarlierBootIsNotBelieved(t *testing.T) {
	w := newWorld(t, objects.FenceClass("rbd", rbd, "rook-ceph"), objects.AddonsNode("node-1", rbd, "node-1", "rbd", "10.20.0.1/32"))
	w.config.Profiles[0].Addresses = config.AddressesCSIAddons
	w.restart().look().mustBe(v1alpha1.NodeHealthy, fence.ReasonReady).boot("node-1").look().recordMustBe(second, v1alpha1.NodeHealthy, fence.ReasonNotFenceable)
	w.forgetWrites().look().mustHaveWritten()
	// The manager is back.
	n := testkit.Get[csiaddons.CSIAddonsNode](t, w.Client, "rook-ceph", "node-1")
	must.True(t, len(n.Status.NetworkFenceClientStatus) == 0, "the former report is still there: %+v", n.Status)
	n.Status = objects.AddonsNode("node-1", rbd, "node-1", "rbd", "10.20.0.7/32").Status
	w.Must(w.Status().Update(t.Context(), n))
	w.look().recordMustBe(second, v1alpha1.NodeHealthy, fence.ReasonReady).forgetWrites().look().mustHaveWritten()
	must.Equal(t, w.record(second).Status.Addresses, "10.20.0.7/32")
	w.loseForGood().look().mustHaveFences("Fenced 10.20.0.7/32")
}

// csi-addons reports while Fairlead requests that.
func TestReportRequestIsRefusedIfReportHasChanged(t *testing.T) {
	for verb, report := range map[string]string{"patch/status": "10.20.0.7/32", "patch": "10.20.0.7/32"} {
		w := newWorld(t, objects.FenceClass("rbd", rbd, "rook-ceph"), objects.AddonsNode("node-1", rbd, "node-1", "rbd", "10.20.0.1/32"))
		w.config.Profiles[0].Addresses = config.AddressesCSIAddons
		w.restart().look().boot("node-1")
		w.Client.Before = func(x fakeapi.Write) error {
			if n, ok := x.Object.(*csiaddons.CSIAddonsNode); ok && x.Verb == verb {
				w.Client.Before = nil
				now := testkit.Get[csiaddons.CSIAddonsNode](t, w.API, n.Namespace, n.Name)
				now.Status = objects.AddonsNode("node-1", rbd, "node-1", "rbd", report).Status
				w.Must(w.API.Status().Update(t.Context(), now))
			}
			return nil
		}
		_, err := w.watched().r.Reconcile(t.Context(), kit.Request("node-1")[0])
		must.Do(t, err)
		n := testkit.Get[csiaddons.CSIAddonsNode](t, w.Client, "rook-ceph", "node-1")
		must.Equal(t, n.Annotations[fencingreads.ReportedInAnnotation], "boot-node-1", verb)
		w.look()
		n = testkit.Get[csiaddons.CSIAddonsNode](t, w.Client, "rook-ceph", "node-1")
		must.Equal(t, n.Annotations[fencingreads.ReportedInAnnotation], "boot-node-1'", verb)
	}
}

// openFrom is a storage that reports all held volumes open from one address; "" does not answer.
type openFrom string

func (o openFrom) ask(_ context.Context, f fence.Facts) (report fence.Report, err error) {
	if o == "" {
		return report, errors.New("no answer")
	}
	for _, v := range f.Spec.Volumes {
		report.Clients = append(report.Clients, fence.VolumeClients{Volume: v, Addresses: []netip.Addr{netip.MustParseAddr(string(o))}})
	}
	report.Servers = []fence.Server{{Name: "a server", Addresses: []netip.Addr{netip.MustParseAddr("192.168.1.7")}}}
	return report, nil
}

func TestStorageReportThatContradictsTheLedgerStopsTheFence(t *testing.T) {
	for address, want := range map[openFrom]string{
		"192.168.1.1": fence.ReasonFencing, "192.168.1.9": fence.ReasonContradicted, "": fence.ReasonFencing, "192.168.1.7": fence.ReasonAddressInUse, // a server's
	} {
		w := newWorld(t)
		if want == fence.ReasonAddressInUse {
			w.move("node-1", string(address))
		}
		w.r.Ask = address.ask
		w.loseForGood().look().mustBe(v1alpha1.NodeFencing, want)
		refused := want != fence.ReasonFencing
		must.True(t, len(w.fences()) == 0 == refused, "%q: got %d fences", address, len(w.fences()))
		counted := w.Metric("fairlead_fence_refusals_total", want)
		must.True(t, counted != 0 == refused, "%q: counted %v refusals", address, counted)
		w.forgetWrites().look().mustHaveWritten() // asking again changes nothing
	}
}

// With two storage clusters, too: no NetworkFence is created by facts from before an answer.
func TestNoNodeIsFencedBeforeTheStorageIsAsked(t *testing.T) {
	w := newWorld(t, secondCluster()...).loseForGood()
	asked := 0
	w.r.Ask = func(ctx context.Context, f fence.Facts) (fence.Report, error) {
		asked++
		must.Check(t, len(w.fences()) == 0, "there are %d fences", len(w.fences()))
		return openFrom("192.168.1.1").ask(ctx, f)
	}
	w.look().lookAfterCSI().mustBeFenced()
	must.Equal(t, asked, 1)
}
