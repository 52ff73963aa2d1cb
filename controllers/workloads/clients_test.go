package workloads

import (
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/fairlead-io/fairlead/internal/storage"
)

// gauge is the value of a metric with this reason, or without any.
func (w *world) gauge(name, reason string) float64 {
	w.Helper()
	registry := prometheus.NewRegistry()
	registry.MustRegister(w.reconciler.metrics, w.reconciler.metrics.paused)
	families, err := registry.Gather()
	w.must(err)
	for _, f := range families {
		for _, m := range f.GetMetric() {
			for _, l := range m.GetLabel() {
				if f.GetName() == name && (reason == "" || l.GetName() == "reason" && l.GetValue() == reason) {
					return m.GetGauge().GetValue()
				}
			}
		}
	}
	w.Fatalf("no metric %s of reason %q", name, reason)
	return 0
}

func TestPodsThatLookLikeClientsRestartNoWorkload(t *testing.T) {
	w := atRest(t, stateful(1))
	for _, name := range []string{"csi-0-a", "csi-0-b", "zz"} { // listed before the real client, and after
		w.now = w.now.Add(2 * time.Second)
		w.lookAlike(name, "node-1", false)
		w.look()
		w.mustLeave()
	}
	// The real client's restart is still seen.
	w.newSandbox("node-1")
	w.look()
	w.mustLeave("s0-0")
}

func TestTwoClientsRestartNoWorkload(t *testing.T) {
	w := atRest(t, stateful(1))
	w.lookAlike("a-twin", "node-1", true)
	w.newSandbox("node-1")
	w.look()
	w.mustLeave()
	w.now = w.now.Add(patience)
	w.look()
	w.mustLeave()
	if len(w.notes) != 1 || !strings.HasPrefix(w.notes[0], "SeveralClients: on node node-1 there are several CSI plugin pods") {
		t.Fatalf("got %q", w.notes)
	}
	if got := w.gauge("fairlead_nodes_without_client", storage.ReasonSeveralClients); got != 1 {
		t.Fatalf("counted %v", got)
	}
	w.withoutLookAlikes()
	w.look()
	w.mustLeave("s0-0")
	if got := w.gauge("fairlead_nodes_without_client", storage.ReasonSeveralClients); got != 0 {
		t.Fatalf("counted %v", got)
	}
}

func TestClientWithTwoInterfacesIsReady(t *testing.T) {
	w := atRest(t, stateful(1), func(w *world) { w.twoInterfaces = true })
	w.newSandbox("node-1")
	w.look()
	w.mustLeave("s0-0")
}

func TestNodeWithoutReadyClientIsReported(t *testing.T) {
	w := atRest(t, stateful(1))
	c := w.clients["node-1"]
	c.asks = "kube-system/another@lhnet2"
	w.newSandbox("node-1")
	w.look()
	if w.notes != nil {
		t.Fatalf("told at once: %q", w.notes)
	}
	w.now = w.now.Add(patience)
	w.look()
	w.now = w.now.Add(patience)
	w.report(c)
	w.look()
	w.mustLeave()
	const want = "NoReadyClient: on node node-1 no CSI plugin pod is Ready with an address that Multus reports on kube-system/one, for more than 2m0s: workloads whose mount died are not restarted there"
	if len(w.notes) != 1 || w.notes[0] != want {
		t.Fatalf("got  %q\nwant %q", w.notes, want)
	}
	if got := w.gauge("fairlead_nodes_without_client", storage.ReasonNoClient); got != 1 {
		t.Fatalf("counted %v", got)
	}
	w.unlist(c)
	w.look()
	if got := w.gauge("fairlead_nodes_without_client", storage.ReasonNoClient); got != 0 {
		t.Fatalf("a node that is gone is counted")
	}
}
