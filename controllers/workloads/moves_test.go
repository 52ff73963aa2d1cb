package workloads

import (
	"context"
	"fmt"
	"net/netip"
	"strings"
	"testing"

	discoveryv1 "k8s.io/api/discovery/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fairlead-io/fairlead/internal/reads"
	"github.com/fairlead-io/fairlead/internal/rwx"
	"github.com/fairlead-io/fairlead/internal/testkit"
	"github.com/fairlead-io/fairlead/internal/testkit/must"
	"github.com/fairlead-io/fairlead/internal/testkit/objects"
)

var addressOne, addressTwo = netip.MustParseAddr("192.168.50.1"), netip.MustParseAddr("192.168.50.2")

// publishServer publishes the address of the server of volume v-shared, as the endpoints controller does.
func (w *world) publishServer(address netip.Addr) {
	w.Helper()
	name := reads.SliceName("v-shared", discoveryv1.AddressTypeIPv4)
	before := testkit.Get[discoveryv1.EndpointSlice](w.TB, w.live.client, objects.Longhorn.Namespace, name)
	after := &discoveryv1.EndpointSlice{ObjectMeta: objects.Here(name), AddressType: discoveryv1.AddressTypeIPv4, Endpoints: []discoveryv1.Endpoint{{Addresses: []string{address.String()}}}}
	after.Labels = map[string]string{discoveryv1.LabelServiceName: "v-shared", discoveryv1.LabelManagedBy: rwx.SliceManager}
	var moves rwx.Moves
	if before != nil {
		moves = reads.MovesOf(before)
	}
	started := testkit.Value[map[string]rwx.Run](w.TB)(w.reconciler.Cached.PodsUsing(context.Background(), w.live.client, "v-shared"))
	after.Annotations = map[string]string{rwx.MovesAnnotation: moves.Next([]netip.Addr{address}, started).String()}
	if w.server != address {
		w.moves++
	}
	w.server = address
	w.put(after)
}

func TestServerThatMovesLeavesDeadMountsBehind(t *testing.T) {
	const dead = "volume v-shared was mounted before its server moved from 192.168.50.1 to 192.168.50.2: its NFS mount does not answer"
	w := atRest(t)
	w.publishServer(addressTwo)
	w.wantRestarted("web-0", "rs-x", "far-0")
	w.wantEvents(
		"Warning DeadMount: "+dead+"; the pod has no controller that would recreate it: delete and create it yourself",
		"Warning Remount: restarted pod far-0 on node-2: "+dead+". Other pods of StatefulSet far follow without an event for 10m0s",
		"Warning Remount: restarted pod rs-x on node-1: "+dead+". Other pods of ReplicaSet rs follow without an event for 10m0s",
		"Warning Remount: restarted pod web-0 on node-1: "+dead+". Other pods of StatefulSet web follow without an event for 10m0s",
	)
	must.Equal(t, w.rollout().Status.DeadMounts[0].Volumes, []string{"v-shared"})
}

// The next leader has no memory of the move.
func TestNextLeaderFindsMountsOfAServerThatMoved(t *testing.T) {
	w := atRest(t)
	w.publishServer(addressTwo)
	w.restart()
	w.wantRestarted("web-0", "rs-x", "far-0")
}

// A pod whose container has started again keeps its mount. Of old kubelets, which do not report the sandbox, the status may have been
// of before a reboot.
func TestPodWhoseContainerStartedAgainSinceItsServerMoved(t *testing.T) {
	for name, c := range map[string]struct {
		old  bool
		want []string
	}{"has its old mount": {false, []string{"web-0", "rs-x", "far-0"}}, "is unsure, with an old kubelet": {true, []string{"web-1", "rs-x", "far-0"}}} {
		t.Run(name, func(t *testing.T) {
			w := atRest(t, func(w *world) { w.oldKubelet = c.old })
			w.publishServer(addressTwo)
			pod := w.slot("web-0").pod
			pod.restarts++
			w.reportWorkload(pod)
			w.restart()
			w.wantRestarted(c.want...)
		})
	}
}

// A handle of another driver is no name of a slice, which an API server refuses to look for.
func TestVolumeOfAnotherDriverStopsNoEviction(t *testing.T) {
	w := atRest(t)
	w.publishServer(addressTwo)
	w.deliver(len(w.lag))
	pod := w.workloadObject(w.slot("web-0").pod)
	workload := testkit.Value[rwx.Workload](w)(w.reconciler.Cached.Workload(context.Background(), pod, network))
	workload.Mounts = append([]rwx.Mount{{Volume: "projects/p/disks/d", Driver: "pd.csi.storage.gke.io"}}, workload.Mounts...)
	asked := &namesOnly{w.live.client}
	left, err := w.reconciler.Cached.IsLeftBehind(context.Background(), asked, pod, workload)
	must.True(t, err == nil && left, "got %t, %v", left, err)
}

// namesOnly refuses names that client-go refuses (rest.IsValidPathSegmentName).
type namesOnly struct{ client.Reader }

func (n *namesOnly) Get(ctx context.Context, key client.ObjectKey, o client.Object, options ...client.GetOption) error {
	if strings.Contains(key.Name, "/") {
		return fmt.Errorf("invalid resource name %q", key.Name)
	}
	return n.Reader.Get(ctx, key, o, options...)
}
