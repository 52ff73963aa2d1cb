package attach

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fairlead-io/fairlead/api/v1alpha1"
	"github.com/fairlead-io/fairlead/controllers/nfs/pools"
	"github.com/fairlead-io/fairlead/internal/csi"
	"github.com/fairlead-io/fairlead/internal/testkit/fakeapi"
)

func TestNodeGetsItsServerWithTheAttachment(t *testing.T) {
	w := newWorld(t, serviceOf(2), 1)
	w.volume("pv", "h", pool.String())
	l := w.leader()
	address := l.attach("pv", "n0")
	va := w.attachment(attachmentName(driver, "pv", "n0"))
	if !va.Status.Attached || va.Status.AttachmentMetadata[driver+"/assigned-ip"] != address || !strings.HasPrefix(address, "10.0.0.") ||
		!slices.Contains(va.Finalizers, "external-attacher/"+driver) || va.Annotations[pools.ServiceAnnotation] != "storage/pool" {
		t.Errorf("got %+v, %+v", va.ObjectMeta, va.Status)
	}
	l.detach("pv", "n0")
	if err := w.Get(t.Context(), client.ObjectKeyFromObject(va), va); !apierrors.IsNotFound(err) || !slices.Equal(l.loads(), []int{0, 0}) {
		t.Errorf("after the detach: %v, loads %v", err, l.loads())
	}
}

func TestAddressCarriesThePortThatDiffers(t *testing.T) {
	s := serviceOf(1)
	s.Status.Backends[0].Address = "[fd00::1]:12049"
	w := newWorld(t, s, 1)
	w.volume("pv", "h")
	if got := w.leader().attach("pv", "n0"); got != "[fd00::1]:12049" {
		t.Errorf("got %q", got)
	}
}

// As the GKE driver does not (lbcontroller.go: RemoveIPFromNode).
func TestFirstUnpublishKeepsTheOtherVolumesCount(t *testing.T) {
	w := newWorld(t, serviceOf(2), 2)
	w.volume("a", "a")
	w.volume("b", "b")
	l := w.leader()
	first := l.attach("a", "n0")
	if second := l.attach("b", "n0"); second != first || !slices.Equal(l.loads(), []int{0, 1}) {
		t.Errorf("volumes of one node: %s and %s, loads %v", first, second, l.loads())
	}
	l.detach("a", "n0")
	if !slices.Equal(l.loads(), []int{0, 1}) {
		t.Errorf("loads %v while volume b is attached", l.loads())
	}
	if other := l.attach("a", "n1"); other == first {
		t.Errorf("node n1 got %s, which has a node, and the other has none", other)
	}
	if again := l.attach("a", "n0"); again != first {
		t.Errorf("node n0 has %s mounted and got %s", first, again)
	}
}

// As the GKE driver does not: several pools, volumes and shares at once.
func TestServicesAreCountedApart(t *testing.T) {
	w := newWorld(t, serviceOf(2), 2)
	other := serviceOf(1)
	other.Name, other.Status.Backends[0].Address = "other", "10.9.0.1:2049"
	w.Must(w.Seed(t.Context(), other))
	w.volume("a", "a")
	w.volume("b", "b", "storage/other")
	l := w.leader()
	if got := l.attach("b", "n0"); got != "10.9.0.1" || !slices.Equal(l.loads(), []int{0, 0}) {
		t.Errorf("got %s, loads of the other service %v", got, l.loads())
	}
}

// As the GKE driver does not: counts are built once, at its start.
func TestDeletedNodesGiveTheirCountsBack(t *testing.T) {
	w := newWorld(t, serviceOf(5), 40)
	w.volume("pv", "h")
	l := w.leader()
	for i := range 40 {
		l.attach("pv", fmt.Sprintf("n%d", i))
	}
	for i := range 30 {
		name := fmt.Sprintf("n%d", i)
		w.Must(w.Delete(t.Context(), &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}}))
		l.detach("pv", name) // the attach-detach controller deletes the attachments of nodes that are gone
	}
	if got := l.pools.Summary(pool, false).Nodes; got != 10 {
		t.Errorf("%d nodes are counted, 10 are left", got)
	}
	second := w.leader() // a standby replica that leads now
	if !slices.Equal(second.loads(), l.loads()) {
		t.Errorf("another leader counts %v, the first %v", second.loads(), l.loads())
	}
	for i := range 30 {
		w.node(fmt.Sprintf("m%d", i))
		second.attach("pv", fmt.Sprintf("m%d", i))
	}
	if loads := second.loads(); loads[len(loads)-1]-loads[0] > 1 {
		t.Errorf("loads %v after 30 new nodes", loads)
	}
}

// As the GKE driver does not: it reads the node's old annotation and counts nothing.
func TestPublishAfterUnpublishIsCounted(t *testing.T) {
	w := newWorld(t, serviceOf(2), 1)
	w.drivers[driver] = Driver{Service: pool, Annotations: AnnotationsWrite}
	w.volume("pv", "h")
	l := w.leader()
	first := l.attach("pv", "n0")
	l.annotate("n0")
	l.client.Cache = w.NewCache()
	w.Must(l.client.Cache.Hold(t.Context(), &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n0"}})) // still shows the annotation
	l.detach("pv", "n0")
	if again := l.attach("pv", "n0"); again != first || !slices.Equal(l.loads(), []int{0, 1}) {
		t.Errorf("got %s after %s, loads %v", again, first, l.loads())
	}
}

func (l *leader) annotate(node string) {
	l.Helper()
	_, err := l.annotator.Reconcile(context.Background(), request(node))
	l.Must(err)
}

// As the GKE driver does not: it writes whole nodes, and leaves unlisted annotations.
func TestAnnotationsAreWrittenAloneAndRemoved(t *testing.T) {
	key := csi.AddressKey(driver)
	w := newWorld(t, serviceOf(2), 0)
	w.drivers[driver] = Driver{Service: pool, Annotations: AnnotationsWrite}
	w.node("n0", key, "192.0.2.1", "other", "kept")
	w.volume("pv", "h")
	l := w.leader()
	l.annotate("n0")
	get := func() map[string]string {
		var n corev1.Node
		w.Must(w.Get(t.Context(), client.ObjectKey{Name: "n0"}, &n))
		return n.Annotations
	}
	if a := get(); a[key] != "" || a["other"] != "kept" {
		t.Errorf("annotations of a node without volumes: %v", a)
	}
	address := l.attach("pv", "n0")
	l.client.Cache = w.NewCache()
	w.Must(l.client.Cache.Hold(t.Context(), &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n0"}}))
	var n corev1.Node
	w.Must(w.Get(t.Context(), client.ObjectKey{Name: "n0"}, &n))
	n.Labels = map[string]string{"kubelet": "wrote"} // meanwhile
	w.Must(w.Update(t.Context(), &n))
	l.annotate("n0")
	if a := get(); a[key] != address || a["other"] != "kept" {
		t.Errorf("annotations %v, want %s", a, address)
	}
	l.client.Cache.Release()
	l.detach("pv", "n0")
	l.annotate("n0")
	if a := get(); a[key] != "" {
		t.Errorf("annotations after the detach: %v", a)
	}
}

// As the GKE driver does not: dead addresses are handed out.
func TestDeadServersGetNoNodes(t *testing.T) {
	w := newWorld(t, serviceOf(2), 4)
	w.volume("pv", "h")
	w.health("10.0.0.1", "Down")
	l := w.leader()
	for i := range 4 {
		if got := l.attach("pv", fmt.Sprintf("n%d", i)); got != "10.0.0.2" {
			t.Errorf("node n%d got %s, which is dead", i, got)
		}
	}
}

func TestAnnotationOfALiveServerIsKept(t *testing.T) {
	key := csi.AddressKey(driver)
	for _, test := range []struct {
		name, annotation string
		mode             Annotations
		kept             bool
	}{
		{"live", "10.0.0.3", AnnotationsRead, true},
		{"with its port", "10.0.0.3:2049", AnnotationsRead, true},
		{"write", "10.0.0.3", AnnotationsWrite, true},
		{"off", "10.0.0.3", AnnotationsOff, false},
		{"dead", "10.0.0.4", AnnotationsRead, false},
		{"unlisted", "192.0.2.1", AnnotationsRead, false},
		{"no address", "a, b", AnnotationsRead, false},
	} {
		t.Run(test.name, func(t *testing.T) {
			w := newWorld(t, serviceOf(4), 2)
			w.drivers[driver] = Driver{Service: pool, Annotations: test.mode}
			w.health("10.0.0.4", "Down")
			w.node("annotated", key, test.annotation)
			w.volume("pv", "h")
			l := w.leader()
			// So that the annotated server is not the emptiest.
			for i := 0; l.pools.AddressNodes(pool, []string{"10.0.0.3"})[0] == 0; i++ {
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
	for _, test := range []struct {
		name, want string
		break_     func(*world)
		mend       func(*world)
		kind, of   string
	}{
		{"no volume", "PersistentVolume pv does not exist", func(w *world) {}, func(w *world) { w.volume("pv", "h") }, waitVolume, "pv"},
		{"unknown service", "NFSService storage/none does not exist", func(w *world) { w.volume("pv", "h", "storage/none") }, func(w *world) {
			s := serviceOf(1)
			s.Name = "none"
			w.Must(w.Seed(context.Background(), s))
		}, waitService, "storage/none"},
		{"all down", "has no server for node n0", func(w *world) {
			w.volume("pv", "h")
			w.health("10.0.0.1", "Down")
		}, func(w *world) { w.health("10.0.0.1", "Healthy") }, waitService, "storage/pool"},
		{"unknown node", "node n0 does not exist", func(w *world) {
			w.volume("pv", "h")
			w.Must(w.Delete(context.Background(), &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n0"}}))
		}, func(w *world) { w.node("n0") }, waitNode, "n0"},
	} {
		t.Run(test.name, func(t *testing.T) {
			w := newWorld(t, serviceOf(1), 1)
			test.break_(w)
			l := w.leader()
			name := w.request("pv", "n0")
			l.settle(name)
			va := w.attachment(name)
			if va.Status.Attached || va.Status.AttachError == nil || !strings.Contains(va.Status.AttachError.Message, test.want) {
				t.Fatalf("status %+v, want %q", va.Status, test.want)
			}
			l.settle(name)
			if again := w.attachment(name); again.ResourceVersion != va.ResourceVersion {
				t.Error("the same refusal is written twice")
			}
			test.mend(w)
			if waiting := l.r.waiting.take(test.kind, test.of); len(waiting) != 1 || waiting[0].Name != name {
				t.Errorf("waiting for %s %s: %v", test.kind, test.of, waiting)
			}
			l.settle(name)
			if va := w.attachment(name); !va.Status.Attached || va.Status.AttachError != nil {
				t.Errorf("status after the repair: %+v", va.Status)
			}
		})
	}
}

func TestVolumeWithoutServiceIsRefused(t *testing.T) {
	w := newWorld(t, serviceOf(1), 1)
	w.drivers[driver] = Driver{}
	w.volume("pv", "h")
	l := w.leader()
	name := w.request("pv", "n0")
	l.settle(name)
	if e := w.attachment(name).Status.AttachError; e == nil || !strings.Contains(e.Message, "PersistentVolume pv") {
		t.Errorf("attachError %+v", e)
	}
}

func TestServiceBeingDeletedTakesNoNodes(t *testing.T) {
	s := serviceOf(1)
	s.Finalizers = []string{"fairlead.io/nfs-attachments"}
	w := newWorld(t, s, 1)
	w.volume("pv", "h")
	l := w.leader()
	w.Must(w.Delete(t.Context(), &v1alpha1.NFSService{ObjectMeta: metav1.ObjectMeta{Namespace: pool.Namespace, Name: pool.Name}}))
	name := w.request("pv", "n0")
	l.settle(name)
	if e := w.attachment(name).Status.AttachError; e == nil || !strings.Contains(e.Message, "being deleted") {
		t.Errorf("attachError %+v", e)
	}
}

func TestAddressOfAnotherLeaderIsTakenOver(t *testing.T) {
	w, l := attaching(t, 3, 1)
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
	if at, ok := l.pools.Node(pool, "n0"); pools.AddressOf(w.attachment(name)) != "10.0.0.3" || !ok || at.Address != "10.0.0.3" {
		t.Errorf("the attachment has %s, the pools have %+v", pools.AddressOf(w.attachment(name)), at)
	}
}

func TestForeignAttachmentsAreLeftAlone(t *testing.T) {
	w := newWorld(t, serviceOf(1), 1)
	w.drivers[driver] = Driver{Service: pool, External: true}
	w.volume("pv", "h")
	l := w.leader()
	name := w.request("pv", "n0")
	l.settle(name)
	if va := w.attachment(name); len(va.Finalizers) > 0 || va.Status.Attached {
		t.Errorf("the external attacher's attachment was changed: %+v", va)
	}
}

func TestFinalizersOfOthersAreKept(t *testing.T) {
	w, l := attaching(t, 1, 1)
	name := w.request("pv", "n0")
	l.client.Before = func(fakeapi.Write) error { // meanwhile
		l.client.Before = nil
		va := w.attachment(name)
		va.Finalizers = append(va.Finalizers, "example.org/gate")
		w.Must(w.Update(context.Background(), va))
		return nil
	}
	l.settle(name)
	want := []string{"example.org/gate", "external-attacher/" + driver}
	if got := w.attachment(name).Finalizers; !slices.Equal(got, want) {
		t.Errorf("finalizers %v, want %v", got, want)
	}
	w.Must(w.Delete(t.Context(), w.attachment(name)))
	l.settle(name)
	if got := w.attachment(name).Finalizers; !slices.Equal(got, want[:1]) || !slices.Equal(l.loads(), []int{0}) {
		t.Errorf("finalizers %v after the detach, loads %v", got, l.loads())
	}
}

// The finalizer may be removed by hand, or not be restored from a backup.
func TestAttachmentOfGoneNodeIsCountedOnce(t *testing.T) {
	w, l := attaching(t, 2, 1)
	l.attach("pv", "n0")
	w.Must(w.Delete(t.Context(), &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n0"}}))
	va := w.attachment(attachmentName(driver, "pv", "n0"))
	va.Finalizers = nil
	w.Must(w.Update(t.Context(), va))
	l.settle(va.Name)
	if all := l.pools.Placements(pool); len(all) != 1 || all["n0"].Volumes != 1 {
		t.Errorf("the pools have %v", all)
	}
	l.detach("pv", "n0")
	if all := l.pools.Placements(pool); len(all) != 0 {
		t.Errorf("after the detach the pools have %v", all)
	}
}
