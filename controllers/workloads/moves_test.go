package workloads

import (
	"context"
	"net/netip"
	"slices"
	"testing"

	discoveryv1 "k8s.io/api/discovery/v1"

	"github.com/fairlead-io/fairlead/internal/reads"
	"github.com/fairlead-io/fairlead/internal/rwx"
	"github.com/fairlead-io/fairlead/internal/testkit"
	"github.com/fairlead-io/fairlead/internal/testkit/must"
	"github.com/fairlead-io/fairlead/internal/testkit/objects"
)

var addressOne, addressTwo = netip.MustParseAddr("192.168.50.1"), netip.MustParseAddr("192.168.50.2")

// publishServer publishes the address of a volume's server, as the endpoints controller does.
func (w *world) publishServer(volume string, address netip.Addr) (before, after *discoveryv1.EndpointSlice) {
	w.Helper()
	name := reads.SliceName(volume, discoveryv1.AddressTypeIPv4)
	before = testkit.Get[discoveryv1.EndpointSlice](w.TB, w.live.client, objects.Longhorn.Namespace, name)
	after = &discoveryv1.EndpointSlice{ObjectMeta: objects.Here(name), AddressType: discoveryv1.AddressTypeIPv4, Endpoints: []discoveryv1.Endpoint{{Addresses: []string{address.String()}}}}
	after.Labels = map[string]string{discoveryv1.LabelServiceName: volume, discoveryv1.LabelManagedBy: rwx.SliceManager}
	var moves rwx.Moves
	if before != nil {
		moves = reads.MovesOf(before)
	}
	started := testkit.Value[map[string]rwx.Run](w.TB)(w.reconciler.Cached.StartedPods(context.Background(), w.live.client, volume))
	after.Annotations = map[string]string{rwx.MovesAnnotation: moves.Next([]netip.Addr{address}, started).String()}
	w.put(after)
	w.deliver(len(w.lag))
	return before, after
}

// moveServer of volume v-shared to another address, which ends the mounts of the pods that there are.
func (w *world) moveServer(address netip.Addr) {
	w.Helper()
	before, after := w.publishServer("v-shared", address)
	must.True(w, serverMoved(before, after), "the move is no event")
	for _, request := range w.reconciler.nodesOf(context.Background(), after) {
		w.queue[request.Name] = true
	}
	for _, s := range w.slots {
		if slices.Contains(s.claims, "shared") && s.pod != nil {
			s.inClientNetwork, s.pod.mount = true, &netns{gone: true}
		}
	}
}

func TestServerThatMovesLeavesDeadMountsBehind(t *testing.T) {
	const dead = "volume v-shared was mounted before its server moved from 192.168.50.1 to 192.168.50.2: its NFS mount does not answer"
	w := atRest(t)
	w.put(objects.LonghornVolume("v-shared", "node-1", objects.RWX))
	w.publishServer("v-shared", addressOne)
	w.wantRestarted()
	w.moveServer(addressTwo)
	w.wantRestarted("web-0", "rs-x")
	w.wantEvents(
		"Warning DeadMount: "+dead+"; the pod has no controller that would recreate it: delete and create it yourself",
		"Warning Remount: restarted pod rs-x on node-1: "+dead+". Other pods of ReplicaSet rs follow without an event for 10m0s",
		"Warning Remount: restarted pod web-0 on node-1: "+dead+". Other pods of StatefulSet web follow without an event for 10m0s",
	)
	must.Equal(t, w.rollout().Status.DeadMounts[0].Volumes, []string{"v-shared"})
}

// The next leader has no memory of the move.
func TestNextLeaderFindsMountsOfAServerThatMoved(t *testing.T) {
	w := atRest(t)
	w.publishServer("v-shared", addressOne)
	w.moveServer(addressTwo)
	w.restart()
	w.wantRestarted("web-0", "rs-x", "far-0")
}

// A pod whose containers have started again may have mounted again: its status may have been of before a reboot.
func TestPodThatStartedAgainSinceItsServerMovedIsUnsure(t *testing.T) {
	w := atRest(t)
	w.publishServer("v-shared", addressOne)
	w.moveServer(addressTwo)
	pod := w.slot("web-0").pod
	pod.restarts++
	w.reportWorkload(pod)
	w.restart()
	w.wantRestarted("web-1", "rs-x", "far-0")
}
