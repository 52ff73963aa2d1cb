package fencing

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/fairlead-io/fairlead/api/v1alpha1"
	"github.com/fairlead-io/fairlead/internal/cluster"
	"github.com/fairlead-io/fairlead/internal/cluster/lists"
	"github.com/fairlead-io/fairlead/internal/fence"
	"github.com/fairlead-io/fairlead/internal/fence/profiles"
)

const rbd = "rook-ceph.rbd.csi.ceph.com"

func ofCeph(driver string) bool { return profiles.RookCeph().Serves(driver) }

// withHolders is a cluster with the indexes of candidates.
func withHolders(t *testing.T, objects ...client.Object) client.Client {
	t.Helper()
	scheme, err := cluster.NewScheme()
	if err != nil {
		t.Fatal(err)
	}
	builder := fake.NewClientBuilder().WithScheme(scheme).WithObjects(objects...)
	for _, index := range HolderIndexes() {
		builder = builder.WithIndex(index.Object, index.Field, index.Keys)
	}
	return builder.Build()
}

func ofVolume(name, volume, node string) *storagev1.VolumeAttachment {
	return &storagev1.VolumeAttachment{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: storagev1.VolumeAttachmentSpec{
		Attacher: rbd, NodeName: node, Source: storagev1.VolumeAttachmentSource{PersistentVolumeName: &volume},
	}}
}

func using(name string, volumes ...corev1.UniqueVolumeName) *corev1.Node {
	return &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}, Status: corev1.NodeStatus{VolumesInUse: volumes}}
}

func remembering(name, phase string, volumes ...string) *v1alpha1.NodeFence {
	n := &v1alpha1.NodeFence{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{fence.PhaseLabel: phase}}}
	n.Status.Phase = v1alpha1.NodeFencePhase(phase)
	for _, v := range volumes {
		n.Status.Volumes = append(n.Status.Volumes, v1alpha1.HeldVolume{PersistentVolume: v, Driver: rbd})
	}
	return n
}

// waysToFindHolders over the API server and what caches have of it: with the controller's cache, and with watches.
func waysToFindHolders(t *testing.T) map[string]func(live, cached client.Client) *HolderReader {
	return map[string]func(live, cached client.Client) *HolderReader{
		"cache": func(live, cached client.Client) *HolderReader { return NewHolderReader(live, cached) },
		"watches": func(live, cached client.Client) *HolderReader {
			r := WatchHolders(nil, live, ofCeph)
			for _, w := range r.watches {
				w.api = listsOnly{cached}
				list, err := w.list(t.Context())
				if err != nil {
					t.Fatal(err)
				}
				if err := w.Replace(nil, list.(client.ObjectList).GetResourceVersion()); err != nil {
					t.Fatal(err)
				}
			}
			return r
		},
	}
}

// listsOnly is a client that is never asked to watch.
type listsOnly struct{ client.Client }

func (listsOnly) Watch(context.Context, client.ObjectList, ...client.ListOption) (watch.Interface, error) {
	return nil, errors.New("not asked")
}

func TestHoldersAreFoundByEveryTrace(t *testing.T) {
	const unique = "kubernetes.io/csi/" + rbd + "^a^1" // a handle may hold any character
	v := fence.Volume{Name: "pv-a", Driver: rbd, Handle: "a^1"}
	listed := using("listed")
	listed.Status.VolumesAttached = []corev1.AttachedVolume{{Name: unique}}
	objects := []client.Object{
		using("uses", unique), listed, using("attached"), using("remembers"), using("well", unique),
		using("uses-another", "kubernetes.io/csi/"+rbd+"^a^11", "kubernetes.io/csi/"+rbd+"^a", "kubernetes.io/csi/x."+rbd+"^a^1"), using("node-1"),
		ofVolume("1", "pv-a", "attached"), ofVolume("2", "pv-ab", "elsewhere"), ofVolume("3", "pv-a", "without-node"),
		remembering("remembers", "Healthy", "pv-b", "pv-a"), remembering("gone", "Lost", "pv-a"), remembering("forgets", "Lost", "pv-ab"),
		&storagev1.VolumeAttachment{ObjectMeta: metav1.ObjectMeta{Name: "inline"}, Spec: storagev1.VolumeAttachmentSpec{Attacher: rbd, NodeName: "inline"}},
	}
	c := withHolders(t, objects...)
	names := func(r *HolderReader) (found []string) {
		t.Helper()
		holders, err := r.Holders(t.Context(), v)
		if err != nil {
			t.Fatal(err)
		}
		for _, h := range holders {
			found = append(found, h.Node.Name)
		}
		return found
	}
	for way, reader := range waysToFindHolders(t) {
		if got := names(reader(c, c)); !slices.Equal(got, []string{"attached", "gone", "listed", "remembers", "uses", "well", "without-node"}) {
			t.Errorf("%s: got %v", way, got)
		}
		// Caches that have heard of nothing: those in an incident are found all the same.
		if got := names(reader(c, withHolders(t))); !slices.Equal(got, []string{"gone"}) {
			t.Errorf("%s, with empty caches: got %v", way, got)
		}
	}
}

// What caches say of a node decides nothing: they only name it.
func TestHoldersAreReadLive(t *testing.T) {
	override := fence.Override{Gate: fence.GateAttach, By: "alice", Reason: "it burnt", Scope: "n-1"}
	record := remembering("n", "Lost", "pv-a")
	record.Status.Incident = "n-1"
	record.Annotations = map[string]string{fence.OverrideAnnotation: "attach: it burnt", fence.OverriddenAnnotation: override.Text()}
	node := using("n")
	node.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}
	node.Spec.Taints = []corev1.Taint{{Key: fence.OutOfServiceTaint}}
	live, stale := withHolders(t, record, node), withHolders(t, remembering("n", "Healthy", "pv-a"), remembering("gone", "Healthy", "pv-a"), using("gone"))
	for way, reader := range waysToFindHolders(t) {
		holders, err := reader(live, stale).Holders(t.Context(), fence.Volume{Name: "pv-a", Driver: rbd, Handle: "h"})
		if err != nil || len(holders) != 2 {
			t.Fatalf("%s: got %+v, %v", way, holders, err)
		}
		if h := holders[0]; h.Node.Name != "gone" || h.Node.Exists || h.Status.Phase != "" {
			t.Errorf("%s: got %+v", way, h)
		}
		if h := holders[1]; !h.Node.Exists || !h.Node.Ready || !h.Node.OutOfService || h.Status.Phase != v1alpha1.NodeLost || h.Override != override {
			t.Errorf("%s: got %+v", way, h)
		}
	}
}

// counted counts live reads, by verb and kind.
type counted struct {
	client.Client
	mu    *sync.Mutex
	reads map[string]int
}

func (c counted) count(what string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.reads[what]++
}

func (c counted) Get(ctx context.Context, key client.ObjectKey, o client.Object, opts ...client.GetOption) error {
	c.count(fmt.Sprintf("get %T", o))
	return c.Client.Get(ctx, key, o, opts...)
}

func (c counted) List(ctx context.Context, list client.ObjectList, opts ...client.ListOption) error {
	c.count(fmt.Sprintf("list %T", list))
	return paged{c.Client}.List(ctx, list, opts...)
}

// paged gives nodes and records in pages, as the API server does.
type paged struct{ client.Client }

func (c paged) List(ctx context.Context, list client.ObjectList, opts ...client.ListOption) error {
	err := c.Client.List(ctx, list, opts...)
	asked := (&client.ListOptions{}).ApplyOptions(opts)
	if asked.Limit == 0 || err != nil {
		return err
	}
	from, _ := strconv.Atoi(asked.Continue)
	items, err := meta.ExtractList(list)
	to := min(from+int(asked.Limit), len(items))
	if list.SetContinue(""); to < len(items) {
		list.SetContinue(strconv.Itoa(to))
	}
	return errors.Join(err, meta.SetList(list, items[from:to]))
}

// heavy is a client whose lists of nodes take until they are let go, one at a time.
type heavy struct {
	client.Client
	under, most *atomic.Int32
	letGo       chan bool
}

func (c heavy) List(ctx context.Context, list client.ObjectList, opts ...client.ListOption) error {
	if _, nodes := list.(*corev1.NodeList); nodes {
		n := c.under.Add(1)
		defer c.under.Add(-1)
		for most := c.most.Load(); n > most && !c.most.CompareAndSwap(most, n); most = c.most.Load() {
		}
		select {
		case <-c.letGo:
		case <-ctx.Done():
			return errors.New("read though nobody waits for it")
		}
	}
	return c.Client.List(ctx, list, opts...)
}

// Nodes are big, and the webhook has little memory: ten attachments of a DaemonSet's volume come at once.
func TestFewReadAllNodesAtATime(t *testing.T) {
	var objects []client.Object
	for i := range each + 1 {
		objects = append(objects, using(fmt.Sprint("node-", i), "kubernetes.io/csi/"+rbd+"^a"))
	}
	c := withHolders(t, objects...)
	live := heavy{c, &atomic.Int32{}, &atomic.Int32{}, make(chan bool)}
	reader, volume := NewHolderReader(live, c), fence.Volume{Name: "pv-a", Driver: rbd, Handle: "a"}
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
	for live.under.Load() < lists.HeavyAtOnce {
		time.Sleep(time.Millisecond)
	}
	time.Sleep(50 * time.Millisecond) // others would have come
	// Whoever has no time to wait says so.
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := reader.Holders(gone, volume); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
	close(live.letGo)
	if err := all.Wait(); err != nil {
		t.Fatal(err)
	}
	if most := live.most.Load(); most != lists.HeavyAtOnce {
		t.Errorf("%d read all nodes at a time", most)
	}
}

// A shared volume of a DaemonSet is on every node: each attachment would else take two
// requests for each that has it.
func TestManyHoldersAreReadAtOnce(t *testing.T) {
	const unique = "kubernetes.io/csi/" + rbd + "^a"
	for name, test := range map[string]struct {
		holders, others int
		want            map[string]int
	}{
		"few":                   {each, 0, map[string]int{"get *v1.Node": each, "get *v1alpha1.NodeFence": each, "list *v1alpha1.NodeFenceList": 1}},
		"many":                  {each + 1, 4, map[string]int{"list *v1.NodeList": 1, "list *v1alpha1.NodeFenceList": 2}},
		"very many":             {lists.Page + 1, lists.Page, map[string]int{"list *v1.NodeList": 2, "list *v1alpha1.NodeFenceList": 2}},
		"many, and few of them": {each + 1, each * share, map[string]int{"get *v1.Node": each + 1, "get *v1alpha1.NodeFence": each + 1, "list *v1alpha1.NodeFenceList": 1}},
	} {
		t.Run(name, func(t *testing.T) {
			gone := remembering("gone", "Lost", "pv-a")
			objects := []client.Object{gone}
			for i := range test.holders - 1 {
				objects = append(objects, using(fmt.Sprint("node-", i), unique))
			}
			for i := range test.others {
				objects = append(objects, using(fmt.Sprint("other-", i)))
			}
			c := withHolders(t, objects...)
			live := counted{c, &sync.Mutex{}, map[string]int{}}
			holders, err := NewHolderReader(live, c).Holders(t.Context(), fence.Volume{Name: "pv-a", Driver: rbd, Handle: "a"})
			if err != nil || len(holders) != test.holders {
				t.Fatalf("got %d holders (%v)", len(holders), err)
			}
			if !maps.Equal(live.reads, test.want) {
				t.Errorf("read %v, want %v", live.reads, test.want)
			}
			for _, h := range holders {
				lost := h.Node.Name == "gone"
				if h.Node.Exists == lost || h.InUse == lost || (h.Status.Phase == v1alpha1.NodeLost) != lost {
					t.Errorf("%s is %+v", h.Node.Name, h)
				}
			}
		})
	}
}

func TestVolumesOfClaims(t *testing.T) {
	claim := func(name, volume string) client.Object {
		return &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name}, Spec: corev1.PersistentVolumeClaimSpec{VolumeName: volume}}
	}
	c := withHolders(t, claim("bound", "pv-a"), claim("unbound", ""), claim("lost", "nothing"), &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: "pv-a"}},
		&storagev1.CSIDriver{ObjectMeta: metav1.ObjectMeta{Name: "no"}, Spec: storagev1.CSIDriverSpec{AttachRequired: ptr.To(false)}},
		&storagev1.CSIDriver{ObjectMeta: metav1.ObjectMeta{Name: "yes"}, Spec: storagev1.CSIDriverSpec{AttachRequired: ptr.To(true)}}, &storagev1.CSIDriver{ObjectMeta: metav1.ObjectMeta{Name: "unsaid"}})
	r := NewHolderReader(c, c)
	for name, bound := range map[string]bool{"bound": true, "unbound": false, "lost": false, "gone": false} {
		if v, err := r.BoundVolume(t.Context(), "default", name); err != nil || (v != nil) != bound || bound && v.Name != "pv-a" {
			t.Errorf("%s: got %v, %v", name, v, err)
		}
	}
	for driver, want := range map[string]bool{"no": false, "yes": true, "unsaid": true, "unknown": true} {
		if got, err := r.Attached(t.Context(), driver); err != nil || got != want {
			t.Errorf("%s: got %t, %v", driver, got, err)
		}
	}
}

// What the caches show of a node that was tainted a moment ago may have been taken from it by force.
func TestANodeThatWasTaintedIsNotQuietYet(t *testing.T) {
	for reason, quiet := range map[string]bool{fence.ReasonReady: true, fence.ReasonTaintedButReady: false} {
		v := FenceView{Facts: fence.Facts{Node: fence.Node{Name: "n", Exists: true, Ready: true}, Status: v1alpha1.NodeFenceStatus{Phase: v1alpha1.NodeHealthy, Reason: reason}}}
		if v.Quiet() != quiet {
			t.Errorf("%s: quiet is %t", reason, !quiet)
		}
	}
}
