package fencing

import (
	"context"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"

	"github.com/fairlead-io/fairlead/api/v1alpha1"
	"github.com/fairlead-io/fairlead/controllers/kit"
	"github.com/fairlead-io/fairlead/internal/cluster"
	"github.com/fairlead-io/fairlead/internal/fence"
)

// counted counts lists of all there is, which the API server answers for a fence.
type counted struct {
	client.Reader
	lists *int
}

func (c counted) List(ctx context.Context, list client.ObjectList, opts ...client.ListOption) error {
	*c.lists++
	return c.Reader.List(ctx, list, opts...)
}

// liveLists counts what is listed to decide on live reads.
func (w *world) liveLists() *int {
	lists := new(int)
	api := w.r.Client
	w.r.Live = cluster.NewFenceReader(w.config, counted{api, lists}, api, api)
	return lists
}

// A whole zone may be not Ready: none of its nodes makes one wait that is to be
// fenced, or costs the API server a list.
func TestANodeThatIsOnlyLostMakesNobodyWait(t *testing.T) {
	w := newWorld(t)
	w.look("node-1")
	w.lose("node-1")
	lists := w.liveLists()
	w.r.deciding.Lock()
	for range 2 {
		w.look("node-1")
	}
	w.r.deciding.Unlock()
	s := w.expect("node-1", v1alpha1.NodeLost, fence.ReasonNotReady)
	if len(s.Volumes) != 1 || *lists != 0 {
		t.Fatalf("listed %d times for %+v", *lists, s)
	}
	w.taint("node-1", "nodeshutdown")
	w.look("node-1")
	if w.expect("node-1", v1alpha1.NodeFencing, fence.ReasonFencing); *lists == 0 {
		t.Fatal("fenced on the cache")
	}
}

// What is refused stays refused until somebody does something, which is an event.
func TestARefusalIsLookedAtLessAndLessOften(t *testing.T) {
	w := newWorld(t)
	w.lose("node-1")
	w.taint("node-1", "nodeshutdown")
	w.look("node-1")
	w.expect("node-1", v1alpha1.NodeFencing, fence.ReasonNoIdentity)
	lists := w.liveLists()
	var last time.Duration
	for waited := time.Duration(0); waited < time.Hour; waited += last {
		after := w.look("node-1").RequeueAfter
		if after < last || after > refused || after < 15*time.Second {
			t.Fatalf("looks again after %v, and before that after %v", after, last)
		}
		last = after
		w.step(after)
	}
	if last != refused || *lists != 0 {
		t.Fatalf("looks again after %v; listed %d times", last, *lists)
	}
	w.untaint("node-1")
	w.look("node-1")
	w.expect("node-1", v1alpha1.NodeLost, fence.ReasonNotReady)
	w.taint("node-1", "nodeshutdown")
	if w.look("node-1"); w.look("node-1").RequeueAfter >= refused {
		t.Fatal("waits as if it were the same refusal")
	}
}

// That an address was seen again is written of each node every few minutes, and changes nothing.
func TestSeeingAnAddressAgainWakesNobody(t *testing.T) {
	w := newWorld(t)
	w.look("node-1")
	was := w.record("node-1")
	w.step(fence.RefreshEvery + time.Minute)
	w.look("node-1")
	is := w.record("node-1")
	if was.ResourceVersion == is.ResourceVersion || kit.FenceRecordChanged().Update(event.UpdateEvent{ObjectOld: was, ObjectNew: is}) {
		t.Errorf("%+v passes after %+v", is, was)
	}
	for what, change := range map[string]func(*v1alpha1.NodeFence){
		"override": func(n *v1alpha1.NodeFence) { n.Annotations = map[string]string{"a": "b"} },
		"deletion": func(n *v1alpha1.NodeFence) { n.DeletionTimestamp = ptr.To(metav1.NewTime(noon)) },
		"address":  func(n *v1alpha1.NodeFence) { n.Status.Identities[0].Addresses[0].CIDR = "192.168.1.9/32" },
		"volume":   func(n *v1alpha1.NodeFence) { n.Status.Volumes = nil },
	} {
		changed := is.DeepCopy()
		if change(changed); !kit.FenceRecordChanged().Update(event.UpdateEvent{ObjectOld: is, ObjectNew: changed}) {
			t.Errorf("%s does not pass", what)
		}
	}
	if is.Status.Identities[0].Addresses[0].LastSeen.IsZero() {
		t.Error("the cache's object was changed")
	}
}

// nodes answers lists of nodes, and tells that it was asked.
type nodes struct {
	client.Reader
	list func() []corev1.Node
}

func (n nodes) List(ctx context.Context, list client.ObjectList, opts ...client.ListOption) error {
	err := n.Reader.List(ctx, list, opts...)
	if l, ok := list.(*corev1.NodeList); ok {
		if old := n.list(); old != nil {
			l.Items = old
		}
	}
	return err
}

// The cache is not enough to fence.
func TestOthersAreReadLive(t *testing.T) {
	w := newWorld(t, volume("pvc-b", rbd, "rook-ceph"), attachment("pvc-b", "node-1"))
	w.gone("node-1")
	stale := []corev1.Node{*node("node-1", "192.168.1.1"), *node("node-2", "192.168.1.2")}
	w.change("node-2", func(n *corev1.Node) { n.Status.Addresses[1].Address = "192.168.1.1" })
	api, lists := w.r.Client, 0
	w.r.Cached = cluster.NewFenceReader(w.config, nodes{api, func() []corev1.Node { return stale }}, api, nodes{api, func() []corev1.Node { lists++; return nil }})
	w.r.Live = w.r.Cached.Live(nil)
	w.look("node-1")
	w.expect("node-1", v1alpha1.NodeFencing, fence.ReasonAddressInUse)
	if got := w.cidrs(); len(got) != 0 || lists == 0 {
		t.Fatalf("fenced on the cache: %v", got)
	}
	w.change("node-2", func(n *corev1.Node) { n.Status.Addresses[1].Address = "192.168.1.2" })
	w.look("node-1")
	w.csi()
	w.look("node-1")
	w.expect("node-1", v1alpha1.NodeFenced, fence.ReasonFenced)
}
