package fencing

import (
	"context"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fairlead-io/fairlead/api/v1alpha1"
	"github.com/fairlead-io/fairlead/internal/cluster"
	"github.com/fairlead-io/fairlead/internal/cluster/csiaddons"
	"github.com/fairlead-io/fairlead/internal/fence"
)

// The attachment is gone because the node was lost: a cache that has seen the one
// and not the other must not make the record forget who held the volume.
func TestAVolumeIsNotForgottenOnACacheThatIsBehindWithTheNode(t *testing.T) {
	w := newWorld(t)
	w.look("node-1")
	before := node("node-1", "192.168.1.1")
	w.lose("node-1")
	w.taint("node-1", "nodeshutdown")
	w.detach("pvc-a", "node-1")
	cached := w.r.Client
	stale := reader{cached, func(key client.ObjectKey, o client.Object) bool {
		n, ok := o.(*corev1.Node)
		if ok && key.Name == "node-1" {
			before.DeepCopyInto(n)
		}
		return ok && key.Name == "node-1"
	}}
	w.r.Cached = cluster.NewFenceReader(w.config, stale, cached, cached)
	w.look("node-1")
	s := w.expect("node-1", v1alpha1.NodeFencing, fence.ReasonFencing)
	if len(s.Volumes) != 1 || len(w.fences()) != 1 {
		t.Fatalf("got %+v", s)
	}
}

// attachments answers lists of attachments with those that a late cache still shows.
type attachments struct {
	client.Reader
	late []storagev1.VolumeAttachment
}

func (a attachments) List(ctx context.Context, list client.ObjectList, opts ...client.ListOption) error {
	if l, ok := list.(*storagev1.VolumeAttachmentList); ok {
		l.Items = a.late
		return nil
	}
	return a.Reader.List(ctx, list, opts...)
}

// The node was lost, its volume detached by force, and the node is back without a reboot: it may still write.
func TestForcedDetachmentIsSeenThroughALateCache(t *testing.T) {
	w := newWorld(t)
	w.look("node-1")
	w.lose("node-1")
	w.look("node-1")
	api := w.r.Client
	late := attachments{api, []storagev1.VolumeAttachment{*attachment("pvc-a", "node-1")}}
	w.r.Cached = cluster.NewFenceReader(w.config, late, api, api)
	w.r.Live = w.r.Cached.Live(nil)
	w.detach("pvc-a", "node-1")
	w.change("node-1", w.ready(corev1.ConditionTrue))
	w.look("node-1")
	w.expect("node-1", v1alpha1.NodeHealthy, fence.ReasonReady)
	if got := w.labelled(); got != fence.ReasonStillMounted {
		t.Fatalf("it is labelled %s", got)
	}
}

// reader answers some reads by itself.
type reader struct {
	client.Reader
	knows func(client.ObjectKey, client.Object) bool
}

func (r reader) Get(ctx context.Context, key client.ObjectKey, o client.Object, opts ...client.GetOption) error {
	if r.knows(key, o) {
		return nil
	}
	return r.Reader.Get(ctx, key, o, opts...)
}

// The cache says lost and tainted; the node is back already.
func TestNothingIsFencedOnTheCacheAlone(t *testing.T) {
	w := newWorld(t)
	w.look("node-1")
	lost := node("node-1", "192.168.1.1")
	w.ready(corev1.ConditionUnknown)(lost)
	lost.Spec.Taints = []corev1.Taint{{Key: fence.OutOfServiceTaint, Effect: corev1.TaintEffectNoExecute}}
	cached := w.r.Client
	w.r.Cached = cluster.NewFenceReader(w.config, reader{cached, func(key client.ObjectKey, o client.Object) bool {
		n, ok := o.(*corev1.Node)
		if ok && key.Name == "node-1" {
			lost.DeepCopyInto(n)
		}
		return ok && key.Name == "node-1"
	}}, cached, cached)
	w.look("node-1")
	w.expect("node-1", v1alpha1.NodeHealthy, fence.ReasonReady)
	if got := w.cidrs(); len(got) != 0 {
		t.Fatalf("fenced: %v", got)
	}
}

// Fairlead's own taint is noted, and taken away when the node comes back unfenced;
// another's is not.
func TestOnlyOwnTaintsAreTakenAway(t *testing.T) {
	for value, stays := range map[string]bool{fence.OwnTaintValue: false, "nodeshutdown": true} {
		w := newWorld(t)
		w.look("node-1")
		w.change("node-1", func(n *corev1.Node) {
			n.Spec.Taints = []corev1.Taint{{Key: "other", Effect: corev1.TaintEffectNoSchedule}, {Key: fence.OutOfServiceTaint, Value: value, Effect: corev1.TaintEffectNoExecute}}
		})
		w.look("node-1")
		if noted := w.record("node-1").Status.Tainted != nil; noted == stays {
			t.Errorf("%s: noted as own: %v", value, noted)
		}
		var n corev1.Node
		w.must(w.Get(t.Context(), client.ObjectKey{Name: "node-1"}, &n))
		if got := slices.ContainsFunc(n.Spec.Taints, func(t corev1.Taint) bool { return t.Key == fence.OutOfServiceTaint }); got != stays || n.Spec.Taints[0].Key != "other" {
			t.Errorf("%s: got %v", value, n.Spec.Taints)
		}
		w.look("node-1")
		if !stays && w.record("node-1").Status.Tainted != nil {
			t.Errorf("still noted as tainted")
		}
	}
}

// An operator has given the same taint with another effect beside Fairlead's: it stays.
func TestATaintOfAnotherEffectStays(t *testing.T) {
	w := newWorld(t)
	w.look("node-1")
	theirs := corev1.Taint{Key: fence.OutOfServiceTaint, Value: "nodeshutdown", Effect: corev1.TaintEffectNoSchedule}
	w.change("node-1", func(n *corev1.Node) {
		n.Spec.Taints = []corev1.Taint{theirs, {Key: fence.OutOfServiceTaint, Value: fence.OwnTaintValue, Effect: corev1.TaintEffectNoExecute}}
	})
	w.look("node-1")
	var n corev1.Node
	w.must(w.Get(t.Context(), client.ObjectKey{Name: "node-1"}, &n))
	if len(n.Spec.Taints) != 1 || n.Spec.Taints[0] != theirs {
		t.Fatalf("got %v", n.Spec.Taints)
	}
}

// A healthy node costs one write, and no more until its ledger has to be fresh.
func TestAHealthyNodeIsWrittenSeldom(t *testing.T) {
	w := newWorld(t)
	result := w.look("node-1")
	if result.RequeueAfter != refresh {
		t.Fatalf("looks again after %v", result.RequeueAfter)
	}
	first := w.record("node-1")
	w.writes = nil
	for range 4 {
		w.step(time.Minute)
		w.look("node-1")
	}
	if len(w.writes) != 0 {
		t.Fatalf("wrote %q", w.writes)
	}
	w.step(2 * time.Minute)
	w.look("node-1")
	if is := w.record("node-1"); !slices.Equal(w.writes, []string{"update status *v1alpha1.NodeFence node-1"}) || !is.Status.Identities[0].Addresses[0].LastSeen.After(first.Status.Identities[0].Addresses[0].LastSeen.Time) {
		t.Fatalf("wrote %q, %+v", w.writes, is.Status)
	}
}

// Two nodes at one address: it is blocked until both are back.
func TestAnAddressOfTwoLostNodesIsLetInWithTheLast(t *testing.T) {
	w := newWorld(t, volume("pvc-b", rbd, "rook-ceph"), attachment("pvc-b", "node-2"))
	w.look("node-1")
	w.look("node-2")
	w.change("node-1", w.ready(corev1.ConditionUnknown))
	w.change("node-2", func(n *corev1.Node) { n.Status.Addresses[1].Address = "192.168.1.1" })
	w.look("node-2")
	w.lose("node-2")
	w.taint("node-1", "x")
	w.taint("node-2", "x")
	for range 2 {
		w.look("node-1")
		w.look("node-2")
		w.csi()
	}
	w.look("node-1")
	w.look("node-2")
	w.expect("node-1", v1alpha1.NodeFenced, fence.ReasonFenced)
	w.expect("node-2", v1alpha1.NodeFenced, fence.ReasonFenced)
	w.detach("pvc-a", "node-1")
	w.boot("node-1")
	w.untaint("node-1")
	w.look("node-1")
	w.step(time.Hour)
	w.look("node-1")
	w.expect("node-1", v1alpha1.NodeUnfencing, fence.ReasonSharedAddress)
	if got := w.cidrs(); !slices.Equal(got, []string{"Fenced 192.168.1.1/32,192.168.1.2/32"}) {
		t.Fatalf("got %v", got)
	}
}

// Somebody asks for a fence again while Fairlead deletes its object: it is decided anew.
func TestNetworkFenceIsDeletedOnlyAsItWasRead(t *testing.T) {
	w := newWorld(t)
	n := &csiaddons.NetworkFence{ObjectMeta: metav1.ObjectMeta{Name: "f"}, Spec: csiaddons.NetworkFenceSpec{FenceState: csiaddons.Unfenced}}
	w.must(w.Create(t.Context(), n))
	read := cluster.FenceObject(n)
	n.Spec.FenceState = csiaddons.Fenced
	w.must(w.Update(t.Context(), n))
	d := decision{FenceView: &cluster.FenceView{}}
	if err := w.r.remove(t.Context(), d, read); !faster(err) || len(w.fences()) != 1 {
		t.Fatalf("deleted as it is not: %v", err)
	}
	w.must(w.r.remove(t.Context(), d, cluster.FenceObject(n)))
	if len(w.fences()) != 0 {
		t.Fatal("not deleted as it is")
	}
}
