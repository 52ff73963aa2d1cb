package workloads

import (
	"testing"
	"time"

	"github.com/fairlead-io/fairlead/internal/rwx"
)

func TestPodsThatLookLikeClientsRestartNoWorkload(t *testing.T) {
	w := atRest(t, stateful(1))
	for _, name := range []string{"csi-0-a", "csi-0-b", "zz"} { // listed before the client, and after
		w.Step(2 * time.Second)
		w.addLookAlike(name, "node-1", false)
		w.wantRestarted()
	}
	w.newSandbox("node-1")
	w.wantRestarted("s0-0")
}

func TestTwoClientsRestartNoWorkload(t *testing.T) {
	w := atRest(t, stateful(1))
	w.addLookAlike("a-twin", "node-1", true)
	w.newSandbox("node-1")
	w.wantRestarted()
	w.Step(patience)
	w.wantRestarted()
	w.wantEvents("Warning SeveralClients: on node node-1 there are several CSI plugin pods: which of them made a mount is unknown, " +
		"for more than 2m0s: workloads whose mount died are not restarted there")
	w.wantMetric(1, "fairlead_nodes_without_client", rwx.ReasonSeveralClients)
	w.removeLookAlikes()
	w.wantRestarted("s0-0")
	w.wantMetric(0, "fairlead_nodes_without_client", rwx.ReasonSeveralClients)
}

func TestNodeWithoutReadyClientIsReported(t *testing.T) {
	w := atRest(t, stateful(1))
	c := w.clients["node-1"]
	c.requests = "kube-system/another@lhnet2"
	w.newSandbox("node-1")
	w.reconcile()
	w.wantEvents()
	for range 2 {
		w.Step(patience)
		w.report(c)
		w.wantRestarted()
	}
	w.wantEvents("Warning NoReadyClient: on node node-1 no CSI plugin pod is Ready with an address that Multus reports on kube-system/one, " +
		"for more than 2m0s: workloads whose mount died are not restarted there")
	w.wantMetric(1, "fairlead_nodes_without_client", rwx.ReasonNoClient)
	w.forceDelete(c)
	w.reconcile()
	w.wantMetric(0, "fairlead_nodes_without_client", rwx.ReasonNoClient)
}
