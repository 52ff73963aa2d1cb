package endpoints

import (
	"context"
	"errors"
	"net/netip"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fairlead-io/fairlead/internal/multus"
	"github.com/fairlead-io/fairlead/internal/reads"
	"github.com/fairlead-io/fairlead/internal/rwx"
	"github.com/fairlead-io/fairlead/internal/testkit"
	"github.com/fairlead-io/fairlead/internal/testkit/must"
	"github.com/fairlead-io/fairlead/internal/testkit/objects"
)

// workload is a pod on node-1 that uses a claim, and has started or not.
func workload(name, claim string, started bool) *corev1.Pod {
	pod := objects.Pod("default", name, "node-1", claim)
	pod.UID, pod.Status.Phase = types.UID("uid-"+name), corev1.PodPending
	if started {
		pod.Status.Phase = corev1.PodRunning
		pod.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "app", ContainerID: "containerd://1", State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: metav1.NewTime(noon)}}}}
	}
	return pod
}

// mounted is a fixture that publishes a server, whose volume web-0 and web-1 have mounted.
func mounted(t *testing.T) *fixture {
	t.Helper()
	node := &corev1.Node{}
	node.Name, node.Status.NodeInfo.BootID = "node-1", "boot-1"
	ended := workload("job", "claim", true)
	ended.Status.Phase = corev1.PodSucceeded
	return serving(t, node, objects.Volume("pv", names.Driver, "v", "claim", objects.Shared), objects.Volume("pv-2", names.Driver, "v-2", "other", objects.Shared),
		workload("web-0", "claim", true), workload("web-1", "claim", true), workload("new", "claim", false), workload("db", "other", true), ended)
}

// moveServer to another address; "" is none.
func (f *fixture) moveServer(address string) {
	f.Helper()
	change(f, "share-manager-v", func(pod *corev1.Pod) {
		pod.Annotations[multus.NetworkStatusAnnotation] = "[]"
		if address != "" {
			reports(address)(pod)
		}
	})
	f.Client.Cache.Release()
}

// failing answers lists of pods with an error.
type failing struct {
	client.Reader
	err error
}

func (f failing) List(ctx context.Context, list client.ObjectList, options ...client.ListOption) error {
	if _, pods := list.(*corev1.PodList); pods {
		return f.err
	}
	return f.Reader.List(ctx, list, options...)
}

// wantDead compares the pods whose mount of volume v is dead, and the move that they did not follow.
func (f *fixture) wantDead(move rwx.ServerMove, pods ...string) {
	f.Helper()
	f.Client.Cache.Release()
	got := map[string]rwx.ServerMove{}
	for _, name := range []string{"web-0", "web-1", "new", "db", "job"} {
		pod := testkit.Get[corev1.Pod](f.TB, f.API, "default", name)
		w := testkit.Value[rwx.Workload](f.TB)(f.r.Cached.Workload(context.Background(), pod, netOne))
		if !w.Mounts[0].ServerMove.IsZero() {
			got[name] = w.Mounts[0].ServerMove
		}
	}
	want := map[string]rwx.ServerMove{}
	for _, pod := range pods {
		want[pod] = move
	}
	must.Equal(f, got, want)
}

func TestPodsThatHaveMountedAreLeftBehindWhenTheirServerMoves(t *testing.T) {
	move := rwx.ServerMove{From: "192.168.0.3", To: "192.168.0.9"}
	for name, steps := range map[string][]string{"at once": {"192.168.0.9"}, "after a pause": {"", "192.168.0.9"}, "back and forth": {"192.168.0.9", "192.168.0.3", "192.168.0.9"}} {
		t.Run(name, func(t *testing.T) {
			f := mounted(t)
			for _, address := range steps {
				f.wantDead(move)
				f.moveServer(address)
				f.restart() // the memory is the slice
				f.mustReconcile()
				if address == "192.168.0.9" {
					f.wantDead(move, "web-0", "web-1")
				}
				f.moveServer("")
				f.mustReconcile()
			}
		})
	}
}

// What pods have mounted that were there before the record began is not known: an earlier Fairlead, or another party, has written the
// slice, or the duty was off. Pods that come later are known.
func TestPodsFromBeforeTheRecordAreLeftAlone(t *testing.T) {
	for name, text := range map[string]string{"no record": "", "of another address": rwx.Moves{}.Next([]netip.Addr{netip.MustParseAddr("192.168.0.5")}, nil).String(), "no JSON": "["} {
		t.Run(name, func(t *testing.T) {
			f := mounted(t)
			slice := f.slice("ipv4")
			slice.Annotations = map[string]string{rwx.MovesAnnotation: text}
			f.Must(f.Update(context.Background(), slice))
			f.Client.Cache.Release()
			f.mustReconcile()
			f.Must(f.Delete(context.Background(), workload("web-1", "claim", true)))
			later := workload("web-1", "claim", true)
			later.UID = "uid-later"
			f.Must(f.Create(context.Background(), later))
			for _, address := range []string{"192.168.0.9", "192.168.0.3", "192.168.0.9"} {
				f.moveServer(address)
				f.mustReconcile()
			}
			f.wantDead(rwx.ServerMove{From: "192.168.0.3", To: "192.168.0.9"}, "web-1")
		})
	}
}

func TestRecordEndsWithTheDuty(t *testing.T) {
	f := mounted(t)
	f.r.DeadMounts = false
	f.moveServer("192.168.0.5")
	f.mustReconcile()
	must.Equal(t, f.slice("ipv4").Annotations[rwx.MovesAnnotation], "", "the record of before")
}

// No other address is published before it is known who is left behind: it could not be told later.
func TestNothingIsPublishedWhilePodsCannotBeListed(t *testing.T) {
	f := mounted(t)
	f.moveServer("192.168.0.9")
	fails := errors.New("the API server fails")
	f.r.Live = failing{f.API, fails}
	_, err := f.reconcile()
	must.True(t, errors.Is(err, fails), "got %v", err)
	f.wantDNS("192.168.0.3")
	f.moveServer("") // withdrawn nevertheless
	f.mustReconcile()
	f.wantDNS()
}

// Without the right to list pods, dead mounts can't be found, and volumes go on.
func TestAddressesArePublishedWithoutTheRightToListPods(t *testing.T) {
	f := mounted(t)
	f.moveServer("192.168.0.9")
	f.r.Live = failing{f.API, apierrors.NewForbidden(corev1.Resource("pods"), "", nil)}
	f.mustReconcile()
	f.wantDNS("192.168.0.9")
	must.Equal(t, reads.MovesOf(f.slice("ipv4")).Left, nil)
}
