package attach

import (
	"errors"
	"testing"

	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fairlead-io/fairlead/controllers/nfs/pools"
	"github.com/fairlead-io/fairlead/internal/csi"
	"github.com/fairlead-io/fairlead/internal/testkit/must"
)

func (l *leader) publish(t *testing.T, handle, node string) string {
	t.Helper()
	context, err := l.publisher.Publish(t.Context(), driver, handle, node)
	must.Do(t, err)
	return context[csi.AddressKey(driver)]
}

func TestPublishGivesWhatTheAttachmentHas(t *testing.T) {
	w, l := attaching(t, serviceOf(3), 1)
	w.drivers[driver] = Driver{Service: pool, External: true}
	name := w.request("pv", "n0")
	first := l.publish(t, "pv", "n0")
	must.Equal(t, l.publish(t, "pv", "n0"), first)
	must.Equal(t, l.loads(), []int{0, 0, 1})
	va := w.attachment(name) // the external attacher writes it
	va.Finalizers = []string{pools.Finalizer(driver)}
	w.Must(w.Update(t.Context(), va))
	va.Status = storagev1.VolumeAttachmentStatus{Attached: true, AttachmentMetadata: map[string]string{csi.AddressKey(driver): first}}
	w.Must(w.Status().Update(t.Context(), va))
	l.observer.Observe(t.Context(), va)
	must.Equal(t, l.loads(), []int{0, 0, 1}, "the node counts once")
	restarted := w.leader()
	must.Equal(t, restarted.publish(t, "pv", "n0"), first, "after a restart")
	w.Must(w.Delete(t.Context(), va))
	w.Must(restarted.publisher.Unpublish(t.Context(), driver, "pv", "n0"))
	must.Equal(t, restarted.loads(), []int{0, 0, 0}, "after unpublish")
}

func TestUnpublishOfAnAttachedVolumeKeepsTheCount(t *testing.T) {
	w, l := attaching(t, serviceOf(2), 1)
	l.attach("pv", "n0")
	w.Must(l.publisher.Unpublish(t.Context(), driver, "pv", "n0"))
	must.Equal(t, l.loads(), []int{0, 1}, "while the VolumeAttachment stays")
}

func TestErrorsOfPublishAreOfTheirKinds(t *testing.T) {
	w, _ := attaching(t, serviceOf(1), 1)
	w.volume("lost", "lost", "storage/none")
	w.volume("bad", "bad", "none")
	w.volume("x", "shared", "storage/pool")
	w.volume("y", "shared", "storage/other")
	l := w.leader()
	fails := func(handle, node string, want error) {
		t.Helper()
		_, err := l.publisher.Publish(t.Context(), driver, handle, node)
		must.True(t, errors.Is(err, want), "volume %s on node %s: %v, want %v", handle, node, err, want)
	}
	fails("unknown", "n0", csi.ErrNotFound)
	fails("pv", "unknown", csi.ErrNotFound)
	fails("lost", "n0", csi.ErrInvalid)
	fails("bad", "n0", csi.ErrInvalid)
	fails("shared", "n0", csi.ErrInvalid)
	fails("pv", "n0", nil)
	w.health("10.0.0.1", "Down")
	l.catchUp()
	w.node("n1")
	fails("pv", "n1", csi.ErrUnavailable)
}

// The GKE driver refuses an empty node ID; it means all nodes.
func TestUnpublishWithoutNodeMeansAllNodes(t *testing.T) {
	w, l := attaching(t, serviceOf(2), 3)
	w.volume("b", "b")
	for _, node := range []string{"n0", "n1", "n2"} {
		l.publish(t, "pv", node)
	}
	l.publish(t, "b", "n0")
	w.Must(l.publisher.Unpublish(t.Context(), driver, "pv", ""))
	must.Equal(t, l.pools.Summary(pool).Nodes, 1, "nodes of volume b")
	w.Must(l.publisher.Unpublish(t.Context(), driver, "b", "n0"))
	w.Must(l.publisher.Unpublish(t.Context(), driver, "b", "unknown")) // no error
	w.Must(l.publisher.Unpublish(t.Context(), driver, "unknown", "n0"))
	must.Equal(t, l.pools.Summary(pool).Nodes, 0)
}

func TestNodeIsFoundByItsID(t *testing.T) {
	w, l := attaching(t, serviceOf(2), 2)
	w.Must(w.Create(t.Context(), &storagev1.CSINode{ObjectMeta: metav1.ObjectMeta{Name: "n1"}, Spec: storagev1.CSINodeSpec{Drivers: []storagev1.CSINodeDriver{{Name: driver, NodeID: "id-of-n1"}}}}))
	l.publish(t, "pv", "id-of-n1")
	_, ok := l.pools.Node(pool, "n1")
	must.Equal(t, ok, true, "node n1 is counted")
	has, err := l.publisher.HasVolume(t.Context(), driver, "pv")
	must.Do(t, err)
	must.Equal(t, has, true, "HasVolume")
}
