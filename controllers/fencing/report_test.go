package fencing

import (
	"context"
	"errors"
	"net/netip"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fairlead-io/fairlead/api/v1alpha1"
	"github.com/fairlead-io/fairlead/internal/cluster"
	"github.com/fairlead-io/fairlead/internal/fence"
)

// openFrom is a storage that reports all held volumes in use from one address; "" does not answer.
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

// A storage that does not answer is no reason to fence nobody, nor to fence another node.
func TestStorageReportMustNotContradictTheLedger(t *testing.T) {
	for address, want := range map[openFrom]string{"192.168.1.1": fence.ReasonFencing, "192.168.1.9": fence.ReasonContradicted, "": fence.ReasonFencing} {
		w := newWorld(t)
		w.r.Ask = address.ask
		w.gone("node-1")
		w.look("node-1")
		w.expect("node-1", v1alpha1.NodeFencing, want)
		if fenced := len(w.fences()) == 1; fenced != (want == fence.ReasonFencing) {
			t.Errorf("%q: fenced: %v", address, w.cidrs())
		}
		told := w.metric("fairlead_fence_refusals_total", fence.ReasonContradicted)
		if told != 0 != (want == fence.ReasonContradicted) {
			t.Errorf("%q: counted %v refusals", address, told)
		}
	}
}

func TestReportedServerIsNotFenced(t *testing.T) {
	w := newWorld(t)
	w.must(w.Delete(t.Context(), node("node-1", "192.168.1.1")))
	w.must(w.Create(t.Context(), node("node-1", "192.168.1.7")))
	w.look("node-1")
	w.r.Ask = openFrom("192.168.1.7").ask
	w.gone("node-1")
	w.look("node-1")
	w.expect("node-1", v1alpha1.NodeFencing, fence.ReasonAddressInUse)
}

// The taint may come after the look that found nothing to ask about, and before the
// decision: nobody is fenced unchecked.
func TestNobodyIsFencedBeforeTheStorageIsAsked(t *testing.T) {
	w := newWorld(t)
	w.gone("node-1")
	untainted := node("node-1", "192.168.1.1")
	w.ready(corev1.ConditionUnknown)(untainted)
	looks, api := 0, w.r.Client
	late := reader{api, func(key client.ObjectKey, o client.Object) bool {
		n, ok := o.(*corev1.Node)
		if !ok || key.Name != "node-1" {
			return false
		}
		if looks++; looks == 1 {
			untainted.DeepCopyInto(n)
		}
		return looks == 1
	}}
	w.r.Live = cluster.NewFenceReader(w.config, late, api, api)
	w.r.Ask = openFrom("192.168.1.9").ask
	if result := w.look("node-1"); result.RequeueAfter != behind || len(w.record("node-1").Status.Fences) != 0 || looks != 2 {
		t.Fatalf("got %+v, %v after %d looks", result, w.record("node-1").Status.Fences, looks)
	}
}

// metric is the value of one with a label, or how often it was observed.
func (w *world) metric(name, label string) float64 {
	w.Helper()
	families, err := w.registry.Gather()
	w.must(err)
	for _, f := range families {
		for _, m := range f.GetMetric() {
			if f.GetName() != name || len(m.GetLabel()) > 0 && m.GetLabel()[0].GetValue() != label {
				continue
			}
			return m.GetGauge().GetValue() + m.GetCounter().GetValue() + float64(m.GetHistogram().GetSampleCount())
		}
	}
	return 0
}

func TestMetricsOfAnIncident(t *testing.T) {
	w := newWorld(t)
	tell := func(when string, healthy, fencing, fenced, took float64) {
		t.Helper()
		for phase, want := range map[v1alpha1.NodeFencePhase]float64{v1alpha1.NodeHealthy: healthy, v1alpha1.NodeFencing: fencing, v1alpha1.NodeFenced: fenced, v1alpha1.NodeUnfencing: 0} {
			if got := w.metric("fairlead_node_fences", string(phase)); got != want {
				t.Errorf("%s: %v nodes are %s, want %v", when, got, phase, want)
			}
		}
		if got := w.metric("fairlead_fence_duration_seconds", ""); got != took {
			t.Errorf("%s: %v fences were timed, want %v", when, got, took)
		}
	}
	w.look("node-2")
	w.gone("node-1")
	w.look("node-1")
	tell("lost", 1, 1, 0, 0)
	w.csi()
	w.look("node-1")
	tell("fenced", 1, 0, 1, 1)
	w.detach("pvc-a", "node-1")
	w.boot("node-1")
	w.untaint("node-1")
	w.look("node-1")
	w.step(2 * fence.DefaultReadyFor)
	for range 4 {
		w.look("node-1")
		w.csi()
	}
	tell("back", 2, 0, 0, 1)
	if got := w.metric("fairlead_unfence_duration_seconds", ""); got != 1 {
		t.Errorf("%v were timed", got)
	}
}
