package fencingreads

import (
	"context"
	"fmt"
	"slices"
	"sync/atomic"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fairlead-io/fairlead/api/v1alpha1"
	"github.com/fairlead-io/fairlead/internal/fence"
	"github.com/fairlead-io/fairlead/internal/reads/lists"
)

// watched feeds the objects of one kind to holdings. As the store of a cache.Reflector, it keeps no objects.
type watched struct {
	*Holdings
	kind kind
	// object is an empty object of the kind, and empty makes an empty list.
	object client.Object
	empty  func() client.ObjectList
	// show returns what an object says of volumes; nil: nothing.
	show func(runtime.Object) *shown

	// listed is for Replace. It is filled page by page, so that no whole list is in memory.
	listed []*shown
	// synced is false until the first list ends.
	synced atomic.Bool
}

// kinds show which nodes may hold a volume.
func (h *Holdings) kinds(protected func(driver string) bool) []*watched {
	return []*watched{{
		Holdings: h, kind: ofNodes, object: &corev1.Node{}, empty: func() client.ObjectList { return &corev1.NodeList{} },
		show: func(o runtime.Object) *shown { return h.showNode(o.(*corev1.Node), protected) },
	}, {
		Holdings: h, kind: ofRecords, object: &v1alpha1.NodeFence{}, empty: func() client.ObjectList { return &v1alpha1.NodeFenceList{} },
		show: func(o runtime.Object) *shown { return h.showRecord(o.(*v1alpha1.NodeFence)) },
	}, {
		Holdings: h, kind: ofAttachments, object: &storagev1.VolumeAttachment{}, empty: func() client.ObjectList { return &storagev1.VolumeAttachmentList{} },
		show: func(o runtime.Object) *shown { return h.showAttachment(o.(*storagev1.VolumeAttachment), protected) },
	}}
}

func (h *Holdings) showNode(node *corev1.Node, protected func(driver string) bool) *shown {
	n := FenceNode(node)
	is := &shown{name: n.Name, node: n.Name, boot: n.Boot, incident: n.OutOfService}
	for _, name := range slices.Concat(n.InUse, n.Attached) {
		if driver, _, ok := fence.ParseUniqueName(name); ok && protected(driver) {
			is.keys = append(is.keys, h.hash(name))
		}
	}
	return is.sorted()
}

func (s *shown) sorted() *shown {
	slices.Sort(s.keys)
	s.keys = slices.Clip(slices.Compact(s.keys))
	return s
}

func (h *Holdings) showRecord(n *v1alpha1.NodeFence) *shown {
	is := &shown{name: n.Name, node: n.Spec.NodeName, boot: n.Spec.Boot, incident: fence.InIncident(n.Spec)}
	for _, v := range n.Spec.Volumes {
		for _, key := range volumeKeys(v) {
			is.keys = append(is.keys, h.hash(key))
		}
	}
	return is.sorted()
}

func (h *Holdings) showAttachment(va *storagev1.VolumeAttachment, protected func(driver string) bool) *shown {
	volume := va.Spec.Source.PersistentVolumeName
	if volume == nil || !protected(va.Spec.Attacher) {
		return nil
	}
	return &shown{name: va.Name, node: va.Spec.NodeName, keys: []uint64{h.hash(*volume)}, attached: attachedOf(va)}
}

// run lists and watches until the context ends.
func (w *watched) run(ctx context.Context, api client.WithWatch) {
	cache.NewReflectorWithOptions(pagedLists{&cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, _ metav1.ListOptions) (runtime.Object, error) { return w.list(ctx, api) },
		WatchFuncWithContext: func(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
			return api.Watch(ctx, w.empty(), &client.ListOptions{Raw: &options})
		},
	}}, w.object, w, cache.ReflectorOptions{}).RunWithContext(ctx)
}

// pagedLists keeps a Reflector from streaming the first list into a store of its own, which would hold all objects.
type pagedLists struct{ *cache.ListWatch }

// IsWatchListSemanticsUnSupported is asked by cache.Reflector.
func (pagedLists) IsWatchListSemanticsUnSupported() bool { return true }

// list reads all pages for Replace, and returns an empty list of their version. It follows a gap of the watch, or begins it.
func (w *watched) list(ctx context.Context, from client.Reader) (client.ObjectList, error) {
	list, version := w.empty(), ""
	w.listed = nil
	err := lists.EachPage(ctx, from, list, func() error {
		if version == "" { // the watch repeats the changes since the first page
			version = list.GetResourceVersion()
		}
		return meta.EachListItem(list, func(o runtime.Object) error {
			if is := w.shows(o); is != nil {
				w.listed = append(w.listed, is)
			}
			return nil
		})
	})
	if err != nil {
		return nil, fmt.Errorf("listing objects of kind %T: %w", w.object, err)
	}
	none := w.empty()
	none.SetResourceVersion(version)
	return none, nil
}

func (w *watched) shows(o runtime.Object) *shown {
	is := w.show(o)
	if is != nil {
		is.kind = w.kind
	}
	return is
}

// Replace implements cache.ReflectorStore.
func (w *watched) Replace(_ []any, version string) error {
	w.replace(w.kind, w.listed)
	w.listed = nil
	w.synced.Store(true)
	w.UpdateResourceVersion(version)
	return nil
}

// Add implements cache.ReflectorStore.
func (w *watched) Add(object any) error { return w.Update(object) }

// Update implements cache.ReflectorStore.
func (w *watched) Update(object any) error {
	if is := w.shows(object.(runtime.Object)); is != nil {
		w.put(is)
	}
	return nil
}

// Delete implements cache.ReflectorStore.
func (w *watched) Delete(object any) error {
	w.remove(w.kind, object.(client.Object).GetName())
	return nil
}

// Resync implements cache.ReflectorStore.
func (w *watched) Resync() error { return nil }

// UpdateResourceVersion implements cache.ResourceVersionUpdater: all changes up to the version were received.
func (w *watched) UpdateResourceVersion(version string) {
	if w.kind == ofNodes {
		w.version.Store(&version)
	}
}

// volumeKeys are the keys of a volume on record: its PersistentVolumes, and its unique name.
func volumeKeys(v v1alpha1.HeldVolume) []string {
	keys := append(fence.NamesOf(v), fence.UniqueName(v.Driver, v.VolumeHandle))
	if !v.Shared {
		keys = append(keys, exclusiveKey(v.Driver, v.VolumeHandle))
	}
	return keys
}

// exclusiveKey of a volume that a record does not have as shared.
func exclusiveKey(driver, handle string) string {
	return "exclusive " + fence.UniqueName(driver, handle)
}
