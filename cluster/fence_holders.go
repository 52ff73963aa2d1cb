package cluster

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"golang.org/x/sync/errgroup"
	"golang.org/x/sync/semaphore"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/selection"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fairlead-io/fairlead/api/v1alpha1"
	"github.com/fairlead-io/fairlead/fence"
)

// HolderReader gathers what the gates of fencing judge by. Which nodes may hold a
// volume is looked up in caches, since nothing else can be asked for it; what is
// believed of each of them is read live.
type HolderReader struct {
	live client.Reader
	// candidates have the indexes of WatchHolders.
	candidates client.Reader
	synced     []func() bool
	// heavy has a place for each that reads all nodes.
	heavy *semaphore.Weighted
}

// NewHolderReader returns a reader over the API server and a cache with the indexes of HolderIndexes.
// Over a Live one it reads whole objects, and takes turns with the other reviews.
func NewHolderReader(live, candidates client.Reader) *HolderReader {
	if live, ok := live.(*Live); ok {
		return &HolderReader{live: live.Reader, candidates: candidates, heavy: live.turns}
	}
	return &HolderReader{live: live, candidates: candidates, heavy: semaphore.NewWeighted(heavyAtOnce)}
}

// Fields that candidates are found by: the name of a PersistentVolume, and the
// unique name that nodes list a volume by, whole: volumes may begin alike.
const (
	heldVolume  = "fairlead.io/volume"
	volumeInUse = "fairlead.io/in-use"
)

// HolderIndex is one index that candidates are found by.
type HolderIndex struct {
	Object client.Object
	Field  string
	Keys   client.IndexerFunc
}

// HolderIndexes that a HolderReader needs of its cache.
func HolderIndexes() []HolderIndex {
	return []HolderIndex{
		{&v1alpha1.NodeFence{}, heldVolume, func(o client.Object) (names []string) {
			for _, v := range o.(*v1alpha1.NodeFence).Status.Volumes {
				names = append(names, v.PersistentVolume)
			}
			return names
		}},
		{&storagev1.VolumeAttachment{}, heldVolume, func(o client.Object) []string {
			if name := o.(*storagev1.VolumeAttachment).Spec.Source.PersistentVolumeName; name != nil {
				return []string{*name}
			}
			return nil
		}},
		{&corev1.Node{}, volumeInUse, func(o client.Object) []string { return volumesInUse(o.(*corev1.Node)) }},
	}
}

// WatchHolders has a cache keep what candidates are found by.
func WatchHolders(ctx context.Context, objects cache.Cache, live client.Reader) (*HolderReader, error) {
	r := NewHolderReader(live, objects)
	for _, index := range HolderIndexes() {
		informer, err := objects.GetInformer(ctx, index.Object, cache.BlockUntilSynced(false))
		if err != nil {
			return nil, fmt.Errorf("watching who holds volumes: %w", err)
		}
		if err := objects.IndexField(ctx, index.Object, index.Field, index.Keys); err != nil {
			return nil, fmt.Errorf("watching who holds volumes: %w", err)
		}
		r.synced = append(r.synced, informer.HasSynced)
	}
	return r, nil
}

// Synced tells whether all of it has been listed once.
func (r *HolderReader) Synced() bool {
	return !slices.ContainsFunc(r.synced, func(synced func() bool) bool { return !synced() })
}

// Volume reads a PersistentVolume; nil is none.
func (r *HolderReader) Volume(ctx context.Context, name string) (*fence.Volume, error) {
	var pv corev1.PersistentVolume
	err := r.live.Get(ctx, client.ObjectKey{Name: name}, &pv)
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading PersistentVolume %s: %w", name, err)
	}
	v := FenceVolume(&pv)
	return &v, nil
}

// BoundVolume reads the volume of a claim; nil where it is not bound.
func (r *HolderReader) BoundVolume(ctx context.Context, namespace, claim string) (*fence.Volume, error) {
	var pvc corev1.PersistentVolumeClaim
	err := r.live.Get(ctx, client.ObjectKey{Namespace: namespace, Name: claim}, &pvc)
	if apierrors.IsNotFound(err) || err == nil && pvc.Spec.VolumeName == "" {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading PersistentVolumeClaim %s/%s: %w", namespace, claim, err)
	}
	return r.Volume(ctx, pvc.Spec.VolumeName)
}

// Attached tells whether Kubernetes attaches a driver's volumes: then there is an
// attachment to hold. It does where nobody says otherwise.
func (r *HolderReader) Attached(ctx context.Context, driver string) (bool, error) {
	var d storagev1.CSIDriver
	err := r.live.Get(ctx, client.ObjectKey{Name: driver}, &d)
	if apierrors.IsNotFound(err) {
		return true, nil
	}
	if err != nil {
		return false, fmt.Errorf("reading CSIDriver %s: %w", driver, err)
	}
	return d.Spec.AttachRequired == nil || *d.Spec.AttachRequired, nil
}

const (
	// atOnce is how many nodes are read at a time.
	atOnce = 8
	// each, and no more, of a volume's holders are read one by one. Where a shared volume
	// is on hundreds of nodes, two requests for each would take longer than an admission may.
	each = 16
	// share of all nodes, as one in so many, that is worth reading all of them at once.
	share = 8
)

// Holders are the nodes that have or had a volume, each as it is now.
func (r *HolderReader) Holders(ctx context.Context, v fence.Volume) ([]fence.Holder, error) {
	names, err := r.holderNames(ctx, v)
	if err != nil {
		return nil, err
	}
	if len(names) > each {
		var known corev1.NodeList
		if err := r.candidates.List(ctx, &known, client.UnsafeDisableDeepCopy); err != nil {
			return nil, fmt.Errorf("counting nodes: %w", err)
		}
		if len(names)*share >= len(known.Items) {
			return r.listed(ctx, v, names)
		}
	}
	holders := make([]fence.Holder, len(names))
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(atOnce)
	for i, name := range names {
		group.Go(func() (err error) {
			holders[i], err = r.HolderOf(ctx, v, name)
			return err
		})
	}
	return holders, group.Wait()
}

func (r *HolderReader) holderNames(ctx context.Context, v fence.Volume) ([]string, error) {
	names := map[string]bool{}
	if v.Name != "" {
		var fences v1alpha1.NodeFenceList
		if err := r.candidates.List(ctx, &fences, client.MatchingFields{heldVolume: v.Name}, client.UnsafeDisableDeepCopy); err != nil {
			return nil, fmt.Errorf("who held volume %s: %w", v.Name, err)
		}
		for i := range fences.Items {
			names[fences.Items[i].Name] = true
		}
		var attachments storagev1.VolumeAttachmentList
		if err := r.candidates.List(ctx, &attachments, client.MatchingFields{heldVolume: v.Name}, client.UnsafeDisableDeepCopy); err != nil {
			return nil, fmt.Errorf("where volume %s is attached: %w", v.Name, err)
		}
		for i := range attachments.Items {
			names[attachments.Items[i].Spec.NodeName] = true
		}
	}
	if v.Handle != "" {
		var nodes corev1.NodeList
		if err := r.candidates.List(ctx, &nodes, client.MatchingFields{volumeInUse: fence.UniqueName(v.Driver, v.Handle)}, client.UnsafeDisableDeepCopy); err != nil {
			return nil, fmt.Errorf("who uses volume %s: %w", v.Name, err)
		}
		for i := range nodes.Items {
			names[nodes.Items[i].Name] = true
		}
	}
	// What was written a moment ago may not be in the caches; those in an incident are few.
	lost, err := r.unhealthy(ctx)
	if err != nil {
		return nil, err
	}
	for i := range lost {
		if slices.ContainsFunc(lost[i].Status.Volumes, func(h v1alpha1.HeldVolume) bool { return h.PersistentVolume == v.Name }) {
			names[lost[i].Name] = true
		}
	}
	return slices.Sorted(maps.Keys(names)), nil
}

// unhealthy NodeFences, live.
func (r *HolderReader) unhealthy(ctx context.Context) ([]v1alpha1.NodeFence, error) {
	notHealthy, err := labels.NewRequirement(fence.PhaseLabel, selection.NotIn, []string{string(v1alpha1.NodeHealthy)})
	if err != nil {
		return nil, fmt.Errorf("selecting NodeFences: %w", err)
	}
	exists, err := labels.NewRequirement(fence.PhaseLabel, selection.Exists, nil)
	if err != nil {
		return nil, fmt.Errorf("selecting NodeFences: %w", err)
	}
	var list v1alpha1.NodeFenceList
	if err := r.live.List(ctx, &list, client.MatchingLabelsSelector{Selector: labels.NewSelector().Add(*exists, *notHealthy)}); err != nil {
		return nil, fmt.Errorf("listing NodeFences that are not Healthy: %w", err)
	}
	return list.Items, nil
}

// Holder reads one node, and what is on record of it.
func (r *HolderReader) Holder(ctx context.Context, name string) (fence.Holder, error) {
	return r.holder(ctx, name, "")
}

// HolderOf reads one node that has or had a volume.
func (r *HolderReader) HolderOf(ctx context.Context, v fence.Volume, name string) (fence.Holder, error) {
	return r.holder(ctx, name, fence.UniqueName(v.Driver, v.Handle))
}

func (r *HolderReader) holder(ctx context.Context, name, volume string) (fence.Holder, error) {
	node, record := &corev1.Node{}, &v1alpha1.NodeFence{}
	if there, err := get(ctx, r.live, name, node); err != nil {
		return fence.Holder{}, err
	} else if !there {
		node = nil
	}
	if there, err := get(ctx, r.live, name, record); err != nil {
		return fence.Holder{}, err
	} else if !there {
		record = nil
	}
	h := fence.Holder{Node: fence.Node{Name: name}}
	if node != nil {
		isNode(&h, node, volume)
	}
	if record != nil {
		isOnRecord(&h, record)
	}
	return h, nil
}

// isNode and isOnRecord take what is read of a holder; volume is its unique name.
func isNode(h *fence.Holder, node *corev1.Node, volume string) {
	h.Node, h.InUse = FenceNode(node), slices.Contains(node.Status.VolumesInUse, corev1.UniqueVolumeName(volume))
}

func isOnRecord(h *fence.Holder, record *v1alpha1.NodeFence) {
	h.Status, h.Override = record.Status, fence.ReadOverride(record.Annotations, record.Status)
}

// listed reads all nodes and records, and returns those of some names.
func (r *HolderReader) listed(ctx context.Context, v fence.Volume, names []string) ([]fence.Holder, error) {
	if err := r.heavy.Acquire(ctx, 1); err != nil {
		return nil, fmt.Errorf("waiting to read who may hold volume %s: %w", v.Name, err)
	}
	defer r.heavy.Release(1)
	holders := make([]fence.Holder, len(names))
	of := map[string]*fence.Holder{}
	for i, name := range names {
		holders[i].Node.Name, of[name] = name, &holders[i]
	}
	var nodes corev1.NodeList
	err := eachPage(ctx, r.live, &nodes, func() error {
		for i := range nodes.Items {
			if h := of[nodes.Items[i].Name]; h != nil {
				isNode(h, &nodes.Items[i], fence.UniqueName(v.Driver, v.Handle))
			}
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("reading the nodes that may hold volume %s: %w", v.Name, err)
	}
	var records v1alpha1.NodeFenceList
	err = eachPage(ctx, r.live, &records, func() error {
		for i := range records.Items {
			if h := of[records.Items[i].Name]; h != nil {
				isOnRecord(h, &records.Items[i])
			}
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("reading the NodeFences that may hold volume %s: %w", v.Name, err)
	}
	return holders, nil
}
