package fencingreads

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/fairlead-io/fairlead/api/v1alpha1"
	"github.com/fairlead-io/fairlead/internal/fence"
	"github.com/fairlead-io/fairlead/internal/fence/profiles"
	"github.com/fairlead-io/fairlead/internal/reads"
	"github.com/fairlead-io/fairlead/internal/reads/lists"
	"github.com/fairlead-io/fairlead/internal/testkit"
	"github.com/fairlead-io/fairlead/internal/testkit/fakeapi"
	"github.com/fairlead-io/fairlead/internal/testkit/must"
	"github.com/fairlead-io/fairlead/internal/testkit/objects"
)

func ofCeph(driver string) bool { return profiles.RookCeph().Serves(driver) }

func withHolders(t *testing.T, objects ...client.Object) client.WithWatch {
	t.Helper()
	builder := fake.NewClientBuilder().WithScheme(testkit.Value[*runtime.Scheme](t)(reads.NewScheme())).WithObjects(objects...)
	must.Do(t, IndexFencing(t.Context(), fenceIndexes{builder}))
	return builder.Build()
}

func using(name string, volumes ...corev1.UniqueVolumeName) *corev1.Node {
	return objects.Node(name, func(n *corev1.Node) { n.Status.VolumesInUse = volumes })
}

// watching reads from the API server; its watches show what another client has.
func watching(t *testing.T, live client.Reader, watched client.WithWatch) *HolderReader {
	t.Helper()
	h := NewHoldings(watched, ofCeph)
	must.Do(t, h.List(t.Context(), watched))
	return NewHolderReader(live, h)
}

func TestHoldersAreUnknownUntilWatchesHaveBegun(t *testing.T) {
	c := withHolders(t)
	r := NewHolderReader(c, NewHoldings(c, ofCeph))
	_, err := r.Holders(t.Context(), fence.Volume{Name: "pv-a", Driver: rbd})
	must.True(t, errors.Is(err, ErrNotSynced), "got %v", err)
	_, _, err = r.Present(t.Context(), "n")
	must.True(t, errors.Is(err, ErrNotSynced), "got %v", err)
}

func TestHoldersAreFoundByEveryTrace(t *testing.T) {
	const unique = "kubernetes.io/csi/" + rbd + "^a^1" // a handle may hold any character
	v := fence.Volume{Name: "pv-a", Driver: rbd, Handle: "a^1"}
	listed := using("listed")
	listed.Status.VolumesAttached = []corev1.AttachedVolume{{Name: unique}}
	objects := []client.Object{
		using("uses", unique), listed, using("attached"), using("remembers"), using("well", unique),
		using("uses-another", "kubernetes.io/csi/"+rbd+"^a^11", "kubernetes.io/csi/"+rbd+"^a", "kubernetes.io/csi/x."+rbd+"^a^1"), using("node-1"),
		objects.Attachment("pv-a", "attached", rbd), objects.Attachment("pv-ab", "elsewhere", rbd),
		recordOf("remembers", "pv-b", "pv-a=a^1"), lost(recordOf("gone", "pv-x=a^1")), lost(recordOf("forgets", "pv-ab")),
		&storagev1.VolumeAttachment{ObjectMeta: metav1.ObjectMeta{Name: "inline"}, Spec: storagev1.VolumeAttachmentSpec{Attacher: rbd, NodeName: "inline"}},
	}
	c := withHolders(t, objects...)
	names := func(r *HolderReader) (found []string) {
		t.Helper()
		for _, h := range testkit.Value[[]fence.Holder](t)(r.Holders(t.Context(), v)) {
			found = append(found, h.Node.Name)
		}
		return found
	}
	must.Equal(t, names(watching(t, c, c)), []string{"attached", "gone", "listed", "remembers", "uses", "well"})
	// Nodes in an incident are found without the watches.
	must.Equal(t, names(watching(t, c, withHolders(t))), []string{"gone"}, "with empty watches")
}

// The Node was deleted before its volume was on record.
func TestAttachmentToDeletedNodeShowsAHolder(t *testing.T) {
	c := withHolders(t, objects.Attachment("pv-a", "gone", rbd))
	holders, err := watching(t, c, c).Holders(t.Context(), fence.Volume{Name: "pv-a", Driver: rbd, Handle: "a"})
	must.True(t, err == nil && len(holders) == 1 && holders[0].Node.Name == "gone", "got %+v, %v", holders, err)
}

// A restore makes a PersistentVolume of another name for the same image.
func TestHoldersAreFoundByHandle(t *testing.T) {
	gone, well := lost(recordOf("gone", "pv-a")), recordOf("well", "pv-a")
	gone.Spec.Volumes[0].VolumeHandle, well.Spec.Volumes[0].VolumeHandle = "h", "h"
	c := withHolders(t, gone, well, using("well"))
	for watched, want := range map[client.WithWatch]int{c: 2, withHolders(t): 1} {
		holders, err := watching(t, c, watched).Holders(t.Context(), fence.Volume{Name: "restored", Driver: rbd, Handle: "h"})
		must.True(t, err == nil && len(holders) == want && holders[0].Node.Name == "gone" && holders[0].Record == "gone", "got %+v, %v", holders, err)
	}
}

func TestHoldersAreReadLive(t *testing.T) {
	request := fence.Request{Gate: fence.GateAttach, By: "alice", Reason: "it burnt"}
	record, node := lost(recordOf("n", "pv-a")), using("n")
	record.Annotations = map[string]string{fence.OverrideAnnotation: "attach: it burnt", fence.OverriddenAnnotation: request.Text()}
	node.Spec.Taints = []corev1.Taint{{Key: fence.OutOfServiceTaint}}
	live, stale := withHolders(t, record, node), withHolders(t, recordOf("n", "pv-a"), recordOf("gone", "pv-a"), using("gone"))
	holders, err := watching(t, live, stale).Holders(t.Context(), fence.Volume{Name: "pv-a", Driver: rbd, Handle: "h"})
	must.True(t, err == nil && len(holders) == 1, "got %+v, %v", holders, err)
	h := holders[0]
	must.True(t, h.Node.Exists && h.Node.Ready && h.Node.OutOfService && h.Spec.LostSince != nil && h.Request == request, "got %+v", h)
}

// heavy is a client whose lists of nodes wait for a release.
type heavy struct {
	client.Client
	under, most *atomic.Int32
	release     chan bool
}

func (c heavy) List(ctx context.Context, list client.ObjectList, opts ...client.ListOption) error {
	if _, nodes := list.(*corev1.NodeList); nodes {
		n := c.under.Add(1)
		defer c.under.Add(-1)
		for most := c.most.Load(); n > most && !c.most.CompareAndSwap(most, n); most = c.most.Load() {
		}
		select {
		case <-c.release:
		case <-ctx.Done():
			return errors.New("read though nobody waits for it")
		}
	}
	return c.Client.List(ctx, list, opts...)
}

// Nodes are big, and attachments of a DaemonSet's volume are created together.
func TestOneReadsAllNodesAtATime(t *testing.T) {
	var objects []client.Object
	for i := range each + 1 {
		objects = append(objects, using(fmt.Sprint("node-", i), "kubernetes.io/csi/"+rbd+"^a"))
	}
	c := withHolders(t, objects...)
	live := heavy{c, &atomic.Int32{}, &atomic.Int32{}, make(chan bool)}
	reader, volume := watching(t, live, c), fence.Volume{Name: "pv-a", Driver: rbd, Handle: "a"}
	var all errgroup.Group
	for range 10 {
		all.Go(func() error {
			holders, err := reader.Holders(t.Context(), volume)
			if err == nil && len(holders) != each+1 {
				err = fmt.Errorf("got %d holders", len(holders))
			}
			return err
		})
	}
	for live.under.Load() < 1 {
		time.Sleep(time.Millisecond)
	}
	time.Sleep(50 * time.Millisecond) // others would have come
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := reader.Holders(gone, volume)
	must.True(t, errors.Is(err, context.Canceled), "got %v", err)
	close(live.release)
	testkit.Must(t, all.Wait())
	most := live.most.Load()
	must.True(t, most == 1, "%d read all nodes at a time", most)
}

// A shared volume of a DaemonSet is on every node. Otherwise each attachment would take two requests for each node.
func TestManyHoldersAreReadAtOnce(t *testing.T) {
	const unique = "kubernetes.io/csi/" + rbd + "^a"
	for name, test := range map[string]struct {
		holders, others int
		want            map[string]int
	}{
		"few":                   {each, 0, map[string]int{"get *v1.Node": each, "get *v1alpha1.NodeFence": each, "list *v1alpha1.NodeFenceList": 1}},
		"many":                  {each + 1, 4, map[string]int{"list *v1.NodeList": 1, "list *v1alpha1.NodeFenceList": 2}},
		"very many":             {lists.Page + 1, lists.Page, map[string]int{"list *v1.NodeList": 1, "list *v1alpha1.NodeFenceList": 2}},
		"many, and few of them": {each + 1, each * share, map[string]int{"get *v1.Node": each + 1, "get *v1alpha1.NodeFence": each + 1, "list *v1alpha1.NodeFenceList": 1}},
	} {
		t.Run(name, func(t *testing.T) {
			objects := []client.Object{lost(recordOf("gone", "pv-a"))}
			for i := range test.holders - 1 {
				objects = append(objects, using(fmt.Sprint("node-", i), unique))
			}
			for i := range test.others {
				objects = append(objects, using(fmt.Sprint("other-", i)))
			}
			c := withHolders(t, objects...)
			live := &fakeapi.Counting{WithWatch: c}
			holders, err := watching(t, live, c).Holders(t.Context(), fence.Volume{Name: "pv-a", Driver: rbd, Handle: "a"})
			must.True(t, err == nil && len(holders) == test.holders, "got %d holders (%v)", len(holders), err)
			reads := map[string]int{}
			for _, r := range live.Requests() {
				reads[r]++
			}
			must.True(t, maps.Equal(reads, test.want), "read %v, want %v", reads, test.want)
			for _, h := range holders {
				gone := h.Node.Name == "gone"
				must.True(t, h.Node.Exists != gone && (h.Spec.LostSince != nil) == gone, "%s is %+v", h.Node.Name, h)
			}
		})
	}
}

// A stale cache may show volumes that were force-detached since.
func TestOnlyNodeWithoutABreakIsQuiet(t *testing.T) {
	for name, test := range map[string]struct {
		change func(*v1alpha1.NodeFenceSpec)
		quiet  bool
	}{
		"without a break": {func(*v1alpha1.NodeFenceSpec) {}, true},
		"was tainted":     {func(s *v1alpha1.NodeFenceSpec) { s.LostSince = ptr.To(metav1.NewTime(fenceNoon)) }, false},
		"a missed loss":   {func(s *v1alpha1.NodeFenceSpec) { s.ReadyChanged = ptr.To(metav1.NewTime(fenceNoon)) }, false},
		"has a fence":     {func(s *v1alpha1.NodeFenceSpec) { s.Fences = []v1alpha1.Fence{{}} }, false},
	} {
		is := FenceNode(nodeAt("n"))
		spec := v1alpha1.NodeFenceSpec{Boot: is.Boot, NodeUID: is.UID, ReadyChanged: ptr.To(metav1.NewTime(is.ReadyChanged))}
		test.change(&spec)
		v := FenceView{Facts: fence.Facts{Node: is, Spec: spec}}
		must.Equal(t, v.Quiet(), test.quiet, name)
	}
}
