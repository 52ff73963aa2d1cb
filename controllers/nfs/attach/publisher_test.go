package attach

import (
	"errors"
	"slices"
	"testing"

	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fairlead-io/fairlead/controllers/nfs/pools"
	"github.com/fairlead-io/fairlead/internal/csi"
)

func TestPublishGivesWhatTheAttachmentHas(t *testing.T) {
	w := newWorld(t, serviceOf(3), 1)
	w.drivers[driver] = Driver{Service: pool, External: true}
	w.volume("pv", "pv")
	l := w.leader()
	name := w.request("pv", "n0")
	first, err := l.publisher.Publish(t.Context(), driver, "pv", "n0", false)
	w.Must(err)
	again, err := l.publisher.Publish(t.Context(), driver, "pv", "n0", true)
	w.Must(err)
	key := csi.AddressKey(driver)
	if first[key] == "" || again[key] != first[key] || !slices.Equal(l.loads(), []int{0, 0, 1}) {
		t.Errorf("got %v, then %v, loads %v", first, again, l.loads())
	}
	va := w.attachment(name) // the external attacher writes it
	va.Finalizers = []string{pools.Finalizer(driver)}
	w.Must(w.Update(t.Context(), va))
	va.Status = storagev1.VolumeAttachmentStatus{Attached: true, AttachmentMetadata: first}
	w.Must(w.Status().Update(t.Context(), va))
	l.observer.Observe(t.Context(), va)
	if !slices.Equal(l.loads(), []int{0, 0, 1}) {
		t.Errorf("the node is counted twice: %v", l.loads())
	}
	restarted := w.leader()
	if then, err := restarted.publisher.Publish(t.Context(), driver, "pv", "n0", false); err != nil || then[key] != first[key] {
		t.Errorf("after a restart: %v, %v", then, err)
	}
	w.Must(w.Delete(t.Context(), va))
	w.Must(restarted.publisher.Unpublish(t.Context(), driver, "pv", "n0"))
	if !slices.Equal(restarted.loads(), []int{0, 0, 0}) {
		t.Errorf("loads after unpublish: %v", restarted.loads())
	}
}

func TestUnpublishOfAnAttachedVolumeKeepsTheCount(t *testing.T) {
	w := newWorld(t, serviceOf(2), 1)
	w.volume("pv", "pv")
	l := w.leader()
	l.attach("pv", "n0")
	w.Must(l.publisher.Unpublish(t.Context(), driver, "pv", "n0"))
	if !slices.Equal(l.loads(), []int{0, 1}) {
		t.Errorf("loads %v while the VolumeAttachment stays", l.loads())
	}
}

func TestErrorsOfPublishAreOfTheirKinds(t *testing.T) {
	w := newWorld(t, serviceOf(1), 1)
	w.volume("pv", "h")
	w.volume("lost", "lost", "storage/none")
	w.volume("bad", "bad", "none")
	w.volume("x", "shared", "storage/pool")
	w.volume("y", "shared", "storage/other")
	l := w.leader()
	for _, test := range []struct {
		handle, node string
		want         error
	}{
		{"unknown", "n0", csi.ErrNotFound},
		{"h", "unknown", csi.ErrNotFound},
		{"lost", "n0", csi.ErrInvalid},
		{"bad", "n0", csi.ErrInvalid},
		{"shared", "n0", csi.ErrInvalid},
		{"h", "n0", nil},
	} {
		if _, err := l.publisher.Publish(t.Context(), driver, test.handle, test.node, false); !errors.Is(err, test.want) {
			t.Errorf("volume %s on node %s: %v, want %v", test.handle, test.node, err, test.want)
		}
	}
	w.health("10.0.0.1", "Down")
	l.catchUp()
	w.node("n1")
	if _, err := l.publisher.Publish(t.Context(), driver, "h", "n1", false); !errors.Is(err, csi.ErrUnavailable) {
		t.Errorf("all servers down: %v", err)
	}
}

// As the GKE driver does not: an empty node ID means all nodes.
func TestUnpublishWithoutNodeMeansAllNodes(t *testing.T) {
	w := newWorld(t, serviceOf(2), 3)
	w.volume("a", "a")
	w.volume("b", "b")
	l := w.leader()
	for _, node := range []string{"n0", "n1", "n2"} {
		if _, err := l.publisher.Publish(t.Context(), driver, "a", node, false); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := l.publisher.Publish(t.Context(), driver, "b", "n0", false); err != nil {
		t.Fatal(err)
	}
	w.Must(l.publisher.Unpublish(t.Context(), driver, "a", ""))
	if got := l.pools.Summary(pool, false).Nodes; got != 1 {
		t.Errorf("%d nodes are left, want the one of volume b", got)
	}
	w.Must(l.publisher.Unpublish(t.Context(), driver, "b", "n0"))
	w.Must(l.publisher.Unpublish(t.Context(), driver, "b", "unknown")) // no error
	w.Must(l.publisher.Unpublish(t.Context(), driver, "unknown", "n0"))
	if got := l.pools.Summary(pool, false).Nodes; got != 0 {
		t.Errorf("%d nodes are left", got)
	}
}

func TestNodeIsFoundByItsID(t *testing.T) {
	w := newWorld(t, serviceOf(2), 2)
	w.Must(w.Create(t.Context(), &storagev1.CSINode{ObjectMeta: metav1.ObjectMeta{Name: "n1"}, Spec: storagev1.CSINodeSpec{Drivers: []storagev1.CSINodeDriver{{Name: driver, NodeID: "id-of-n1"}}}}))
	w.volume("pv", "h")
	l := w.leader()
	if _, err := l.publisher.Publish(t.Context(), driver, "h", "id-of-n1", false); err != nil {
		t.Fatal(err)
	}
	if _, ok := l.pools.Node(pool, "n1"); !ok {
		t.Error("node n1 is not counted")
	}
	if has, err := l.publisher.HasVolume(t.Context(), driver, "h"); err != nil || !has {
		t.Errorf("HasVolume: %v, %v", has, err)
	}
}
