package attach

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/fairlead-io/fairlead/api/v1alpha1"
	"github.com/fairlead-io/fairlead/internal/config"
	"github.com/fairlead-io/fairlead/internal/csi"
	"github.com/fairlead-io/fairlead/internal/nfs/volume"
	"github.com/fairlead-io/fairlead/internal/reads/nfsreads"
	"github.com/fairlead-io/fairlead/internal/testkit/fakeapi"
	"github.com/fairlead-io/fairlead/internal/testkit/must"
)

func TestNodeGetsItsServerWithTheAttachment(t *testing.T) {
	w, l := attaching(t, serviceOf(2), 1)
	address := l.attach("pv", "n0")
	va := w.attachment(attachmentName(driver, "pv", "n0"))
	if !va.Status.Attached || va.Status.AttachmentMetadata[driver+"/assigned-ip"] != address || !strings.HasPrefix(address, "10.0.0.") ||
		!slices.Contains(va.Finalizers, sidecars) || va.Annotations[volume.AttachedServiceAnnotation] != "storage/pool" {
		t.Errorf("got %+v, %+v", va.ObjectMeta, va.Status)
	}
	l.detach("pv", "n0")
	must.Equal(t, w.attachment(va.Name), nil)
	must.Equal(t, l.loads(), []int{0, 0})
}

func TestAddressCarriesThePortThatDiffers(t *testing.T) {
	s := serviceOf(1)
	s.Status.Backends[0].Address = "[fd00::1]:12049"
	_, l := attaching(t, s, 1)
	must.Equal(t, l.attach("pv", "n0"), "[fd00::1]:12049")
}

// The GKE driver gives up the count with the first volume (lbcontroller.go: RemoveIPFromNode).
func TestFirstUnpublishKeepsTheOtherVolumesCount(t *testing.T) {
	w, l := attaching(t, serviceOf(2), 2)
	w.volume("b", "b")
	first := l.attach("pv", "n0")
	must.Equal(t, l.attach("b", "n0"), first, "second volume of a node")
	l.detach("pv", "n0")
	must.Equal(t, l.loads(), []int{0, 1}, "while volume b is attached")
	other := l.attach("pv", "n1")
	must.True(t, other != first, "node n1 got %s, which has a node, and the other has none", other)
	must.Equal(t, l.attach("pv", "n0"), first, "node that has the server mounted")
}

// The GKE driver has one pool, volume and share at once.
func TestServicesAreCountedApart(t *testing.T) {
	other := serviceOf(1)
	other.Name, other.Status.Backends[0].Address = "other", "10.9.0.1:2049"
	w := newWorld(t, serviceOf(2), 2)
	w.Must(w.Seed(t.Context(), other))
	w.volume("b", "b", "storage/other")
	l := w.leader()
	must.Equal(t, l.attach("b", "n0"), "10.9.0.1")
	must.Equal(t, l.loads(), []int{0, 0}, "of the other service")
}

// The GKE driver builds its counts once, when it starts.
func TestDeletedNodesGiveTheirCountsBack(t *testing.T) {
	w, l := attaching(t, serviceOf(5), 40)
	for i := range 40 {
		l.attach("pv", fmt.Sprintf("n%d", i))
	}
	for i := range 30 {
		name := fmt.Sprintf("n%d", i)
		w.deleteNode(name)
		l.detach("pv", name) // the attach-detach controller deletes the attachments of nodes that are gone
	}
	must.Equal(t, len(l.nodesOf()), 10)
	second := w.leader() // a standby replica that leads now
	must.Equal(t, second.loads(), l.loads(), "another leader")
	for i := range 30 {
		w.node(fmt.Sprintf("m%d", i))
		second.attach("pv", fmt.Sprintf("m%d", i))
	}
	must.Equal(t, second.loads(), []int{8, 8, 8, 8, 8}, "after 30 new nodes")
}

// The GKE driver reads the node's old annotation and counts nothing.
func TestPublishAfterUnpublishIsCounted(t *testing.T) {
	w, l := attaching(t, serviceOf(2), 1)
	w.annotations[driver] = config.NodeAnnotationsWrite
	first := l.attach("pv", "n0")
	l.annotate("n0")
	l.holdNode("n0") // the cache still shows the annotation
	l.detach("pv", "n0")
	must.Equal(t, l.attach("pv", "n0"), first)
	must.Equal(t, l.loads(), []int{0, 1})
}

func (l *leader) annotate(node string) {
	l.Helper()
	_, err := l.annotator.Reconcile(context.Background(), request(node))
	l.Must(err)
}

func (l *leader) holdNode(name string) {
	l.Helper()
	l.client.Cache = l.NewCache()
	l.Must(l.client.Cache.Hold(context.Background(), &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}}))
}

// The GKE driver writes whole nodes, and leaves unlisted annotations.
func TestAnnotationsAreWrittenAloneAndRemoved(t *testing.T) {
	key := csi.AddressKey(driver)
	w, l := attaching(t, serviceOf(2), 0)
	w.annotations[driver] = config.NodeAnnotationsWrite
	w.node("n0", key, "192.0.2.1", "other", "kept")
	annotated := func(want string) {
		t.Helper()
		l.annotate("n0")
		n := w.getNode("n0")
		must.Equal(t, n.Annotations[key], want)
		must.Equal(t, n.Annotations["other"], "kept")
	}
	annotated("")
	address := l.attach("pv", "n0")
	l.holdNode("n0")
	n := w.getNode("n0")
	n.Labels = map[string]string{"kubelet": "wrote"} // meanwhile
	w.Must(w.Update(t.Context(), n))
	annotated(address)
	l.client.Cache.Release()
	l.detach("pv", "n0")
	annotated("")
}

// The GKE driver hands out the addresses of dead servers.
func TestDeadServersGetNoNodes(t *testing.T) {
	w, _ := attaching(t, serviceOf(2), 4)
	w.health("10.0.0.1", "Down")
	l := w.leader()
	for i := range 4 {
		must.Equal(t, l.attach("pv", fmt.Sprintf("n%d", i)), "10.0.0.2", "node n%d", i)
	}
}

func TestAnnotationOfALiveServerIsKept(t *testing.T) {
	for _, test := range []struct {
		name, annotation string
		mode             config.NodeAnnotations
		kept             bool
	}{
		{"live", "10.0.0.3", config.NodeAnnotationsRead, true},
		{"with its port", "10.0.0.3:2049", config.NodeAnnotationsRead, true},
		{"write", "10.0.0.3", config.NodeAnnotationsWrite, true},
		{"off", "10.0.0.3", config.NodeAnnotationsOff, false},
		{"dead", "10.0.0.4", config.NodeAnnotationsRead, false},
		{"unlisted", "192.0.2.1", config.NodeAnnotationsRead, false},
		{"no address", "a, b", config.NodeAnnotationsRead, false},
	} {
		t.Run(test.name, func(t *testing.T) {
			w, _ := attaching(t, serviceOf(4), 2)
			w.annotations[driver] = test.mode
			w.health("10.0.0.4", "Down")
			w.node("annotated", csi.AddressKey(driver), test.annotation)
			l := w.leader()
			// So that the annotated server is not the emptiest.
			more := func() bool {
				nodes := map[string]int{}
				for _, at := range l.nodesOf() {
					nodes[at.Address]++
				}
				return nodes["10.0.0.3"] > min(nodes["10.0.0.1"], nodes["10.0.0.2"])
			}
			for i := 0; !more(); i++ {
				w.node(fmt.Sprintf("m%d", i))
				l.attach("pv", fmt.Sprintf("m%d", i))
			}
			loads := l.loads()
			got := l.attach("pv", "annotated")
			if (got == "10.0.0.3") != test.kept || got == "10.0.0.4" || got == "192.0.2.1" {
				t.Errorf("annotated %s, got %s, loads before %v", test.annotation, got, loads)
			}
		})
	}
}

func TestRefusalSaysWhyAndEnds(t *testing.T) {
	withVolume := func(w *world) { w.volume("pv", "h") }
	for want, test := range map[string]struct {
		setUp, repair func(*world)
	}{
		"PersistentVolume pv does not exist": {func(*world) {}, withVolume},
		"NFSService storage/none does not exist": {func(w *world) { w.volume("pv", "h", "storage/none") }, func(w *world) {
			s := serviceOf(1)
			s.Name = "none"
			w.Must(w.Seed(context.Background(), s))
		}},
		"has no server for node n0": {func(w *world) {
			withVolume(w)
			w.health("10.0.0.1", "Down")
		}, func(w *world) { w.health("10.0.0.1", "Healthy") }},
		"node n0 does not exist": {func(w *world) {
			withVolume(w)
			w.deleteNode("n0")
		}, func(w *world) { w.node("n0") }},
	} {
		t.Run(want, func(t *testing.T) {
			w := newWorld(t, serviceOf(1), 1)
			test.setUp(w)
			l := w.leader()
			name := w.request("pv", "n0")
			va := l.refused(name, want)
			must.Equal(t, l.refused(name, want).ResourceVersion, va.ResourceVersion, "the refusal is written once")
			result, err := l.r.Reconcile(t.Context(), request(name))
			must.True(t, err == nil && result.RequeueAfter == retry, "it is tried again: %+v, %v", result, err)
			test.repair(w)
			l.settle(name)
			if va := w.attachment(name); !va.Status.Attached || va.Status.AttachError != nil {
				t.Errorf("status after the repair: %+v", va.Status)
			}
		})
	}
}

// refused settles an attachment, and fails unless its status has the refusal.
func (l *leader) refused(name, want string) *storagev1.VolumeAttachment {
	l.Helper()
	l.settle(name)
	va := l.attachment(name)
	if va.Status.Attached || va.Status.AttachError == nil || !strings.Contains(va.Status.AttachError.Message, want) {
		l.Fatalf("status %+v, want %q", va.Status, want)
	}
	return va
}

func TestVolumeWithoutServiceIsRefused(t *testing.T) {
	w, l := attaching(t, serviceOf(1), 1)
	w.drivers[driver] = types.NamespacedName{}
	l.refused(w.request("pv", "n0"), "PersistentVolume pv")
}

// Kubernetes names attachments by handle and node: one attachment would serve both volumes.
func TestOneHandleOfTwoServicesIsRefused(t *testing.T) {
	w, l := attaching(t, serviceOf(1), 2)
	l.attach("pv", "n0")
	w.volume("twin", "pv", "storage/pool")
	l.attach("pv", "n1") // one service, so the handle does no harm
	w.volume("other", "pv", "storage/other")
	w.node("n2")
	for _, name := range []string{"pv", "other"} {
		refused := l.refused(w.request(name, "n2"), "have volumeHandle pv and name NFSServices")
		w.Must(w.Delete(t.Context(), refused))
	}
	l.settle(attachmentName(driver, "pv", "n0"))
	must.Equal(t, w.attachment(attachmentName(driver, "pv", "n0")).Status.Attached, true, "an attachment from before stays")
	w.Must(w.Delete(t.Context(), &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: "other"}}))
	must.Equal(t, l.attach("pv", "n2"), "10.0.0.1", "after the other volume is gone")
}

func TestServiceBeingDeletedTakesNoNodes(t *testing.T) {
	s := serviceOf(1)
	s.Finalizers = []string{"fairlead.io/nfs-attachments"}
	w, l := attaching(t, s, 1)
	w.Must(w.Delete(t.Context(), &v1alpha1.NFSService{ObjectMeta: metav1.ObjectMeta{Namespace: pool.Namespace, Name: pool.Name}}))
	l.refused(w.request("pv", "n0"), "being deleted")
}

func TestAddressOfAnotherLeaderIsTakenOver(t *testing.T) {
	w, l := attaching(t, serviceOf(3), 1)
	name := w.request("pv", "n0")
	l.client.Before = func(write fakeapi.Write) error {
		if write.Verb == "patch/status" { // the other is faster
			l.client.Before = nil
			va := w.attachment(name)
			va.Status = storagev1.VolumeAttachmentStatus{Attached: true, AttachmentMetadata: map[string]string{csi.AddressKey(driver): "10.0.0.3"}}
			w.Must(w.Status().Update(context.Background(), va))
		}
		return nil
	}
	l.settle(name)
	must.Equal(t, nfsreads.AddressOf(w.attachment(name)), "10.0.0.3")
	l.catchUp()
	at, _ := l.placement("n0")
	must.Equal(t, at.Address, "10.0.0.3", "in the pool")
}

func TestForeignAttachmentsAreLeftAlone(t *testing.T) {
	w, l := attaching(t, serviceOf(1), 1)
	delete(w.drivers, driver)
	name := w.request("pv", "n0")
	before := w.attachment(name)
	l.settle(name)
	must.Equal(t, w.attachment(name), before)
}

func TestFinalizersOfOthersAreKept(t *testing.T) {
	w, l := attaching(t, serviceOf(1), 1)
	name := w.request("pv", "n0")
	l.client.Before = func(fakeapi.Write) error { // meanwhile
		l.client.Before = nil
		va := w.attachment(name)
		va.Finalizers = append(va.Finalizers, "example.org/gate")
		w.Must(w.Update(context.Background(), va))
		return nil
	}
	l.settle(name)
	want := []string{"example.org/gate", sidecars}
	must.Equal(t, w.attachment(name).Finalizers, want)
	w.Must(w.Delete(t.Context(), w.attachment(name)))
	l.settle(name)
	must.Equal(t, w.attachment(name).Finalizers, want[:1], "after the detach")
	must.Equal(t, l.loads(), []int{0})
}

// The finalizer may be removed by hand, or not be restored from a backup.
func TestAttachmentOfGoneNodeIsCountedOnce(t *testing.T) {
	w, l := attaching(t, serviceOf(2), 1)
	l.attach("pv", "n0")
	w.deleteNode("n0")
	va := w.attachment(attachmentName(driver, "pv", "n0"))
	va.Finalizers = nil
	w.Must(w.Update(t.Context(), va))
	l.settle(va.Name)
	must.Equal(t, len(l.nodesOf()), 1)
	must.Equal(t, l.nodesOf()["n0"].Volumes, 1)
	l.detach("pv", "n0")
	must.Equal(t, len(l.nodesOf()), 0, "after the detach")
}
