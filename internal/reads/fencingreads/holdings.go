package fencingreads

import (
	"context"
	"hash/maphash"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"unique"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fairlead-io/fairlead/api/v1alpha1"
	"github.com/fairlead-io/fairlead/internal/fence"
)

// Holdings are what Nodes, NodeFences, VolumeAttachments and, for a FenceReader, PersistentVolumes say of volumes on nodes. They keep
// only what fencing asks for: there may be 100,000 volumes, and a cache of their objects needs twice the memory that a webhook may use
// (docs/decisions/0011-a-record-for-each-boot.md). Keys are hashes: a collision only names one node too many, and each named node is
// read live.
type Holdings struct {
	seed    maphash.Seed
	api     client.WithWatch
	watches []*watched
	// version is the resource version that the watch of Nodes has reached.
	version atomic.Pointer[string]

	mu sync.RWMutex
	// shown is the last state of each object, by kind and name; found has them by their keys, and on by their node.
	shown map[kind]map[string]*shown
	found map[uint64][]*shown
	on    map[string][]*shown
	// shapes counts the PersistentVolumes of each shape.
	shapes map[unique.Handle[shape]]int
	// changed is called with each node that gets or loses an attachment.
	changed func(node string)
}

// NewHoldings returns an empty index for a HolderReader.
func NewHoldings(api client.WithWatch, protected func(driver string) bool) *Holdings {
	h := &Holdings{
		seed: maphash.MakeSeed(), api: api, found: map[uint64][]*shown{}, on: map[string][]*shown{}, shapes: map[unique.Handle[shape]]int{},
		shown:   map[kind]map[string]*shown{ofNodes: {}, ofRecords: {}, ofAttachments: {}, ofVolumes: {}},
		changed: func(string) {},
	}
	h.watches = h.kinds(protected)
	return h
}

// NewHoldingsWithVolumes returns an empty index that a FenceReader can read, too.
func NewHoldingsWithVolumes(api client.WithWatch, protected func(driver string) bool) *Holdings {
	h := NewHoldings(api, protected)
	h.watches = append(h.watches, &watched{
		Holdings: h, kind: ofVolumes, object: &corev1.PersistentVolume{}, empty: func() client.ObjectList { return &corev1.PersistentVolumeList{} },
		show: func(o runtime.Object) *shown { return h.showVolume(o.(*corev1.PersistentVolume), protected) },
	})
	return h
}

// Start watches until the context ends.
func (h *Holdings) Start(ctx context.Context) error {
	var all errgroup.Group
	for _, w := range h.watches {
		all.Go(func() error { w.run(ctx, h.api); return nil })
	}
	return all.Wait()
}

// NeedLeaderElection implements manager.LeaderElectionRunnable: a new leader has the holdings at once.
func (h *Holdings) NeedLeaderElection() bool { return false }

// ListedHoldings are holdings with volumes that follow no changes, for commands that end soon.
func ListedHoldings(ctx context.Context, from client.Reader, protected func(driver string) bool) (*Holdings, error) {
	h := NewHoldingsWithVolumes(nil, protected)
	return h, h.List(ctx, from)
}

// List reads all kinds once.
func (h *Holdings) List(ctx context.Context, from client.Reader) error {
	for _, w := range h.watches {
		list, err := w.list(ctx, from)
		if err != nil {
			return err
		}
		if err := w.Replace(nil, list.GetResourceVersion()); err != nil {
			return err
		}
	}
	return nil
}

// Synced reports whether all kinds have been listed once. While another list closes a gap of a watch, what was shown before
// stays, as in a cache: nodes and records in an incident are read live anyway.
func (h *Holdings) Synced() bool {
	return !slices.ContainsFunc(h.watches, func(w *watched) bool { return !w.synced.Load() })
}

type kind uint8

const (
	ofNodes kind = iota
	ofRecords
	ofAttachments
	ofVolumes
)

// shown is what one object says. It never changes.
type shown struct {
	kind       kind
	name, node string
	// keys by which the object is found: volumes on the node, by name and unique name; of a PersistentVolume, its own and its claim.
	keys []uint64
	// boot of the Node, or of the record.
	boot v1alpha1.Boot
	// incident: the node has the out-of-service taint, or the record is in an incident.
	incident bool
	// attached is what an attachment says, and volume what a PersistentVolume says.
	attached attachedVolume
	volume   volume
}

func (s *shown) equal(o *shown) bool {
	return s.node == o.node && slices.Equal(s.keys, o.keys) && s.boot == o.boot && s.incident == o.incident && s.attached == o.attached && s.volume == o.volume
}

// nodesVersion implements NodesVersion.
func (h *Holdings) nodesVersion(context.Context) string { return ptr.Deref(h.version.Load(), "") }

func (h *Holdings) hash(name string) uint64 { return maphash.String(h.seed, name) }

// put replaces the last state of an object.
func (h *Holdings) put(is *shown) {
	h.mu.Lock()
	defer h.mu.Unlock()
	was := h.shown[is.kind][is.name]
	if was == nil || !was.equal(is) {
		h.drop(was)
		h.add(is)
	}
}

// remove a deleted object.
func (h *Holdings) remove(k kind, name string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.drop(h.shown[k][name])
}

// replace all objects of a kind.
func (h *Holdings) replace(k kind, all []*shown) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, was := range h.shown[k] {
		h.drop(was)
	}
	for _, is := range all {
		h.add(is)
	}
}

func (h *Holdings) add(is *shown) {
	h.shown[is.kind][is.name] = is
	if is.node != "" {
		h.on[is.node] = append(h.on[is.node], is)
	}
	for _, key := range is.keys {
		h.found[key] = append(h.found[key], is)
	}
	h.noted(is, 1)
}

func (h *Holdings) drop(was *shown) {
	if was == nil {
		return
	}
	delete(h.shown[was.kind], was.name)
	without(h.on, was.node, was)
	for _, key := range was.keys {
		without(h.found, key, was)
	}
	h.noted(was, -1)
}

func without[K comparable](of map[K][]*shown, key K, s *shown) {
	if of[key] = slices.DeleteFunc(of[key], func(o *shown) bool { return o == s }); len(of[key]) == 0 {
		delete(of, key)
	}
}

// noted counts the shapes of volumes, and tells whose attachments change.
func (h *Holdings) noted(s *shown, more int) {
	switch s.kind {
	case ofAttachments:
		h.changed(s.node)
	case ofVolumes:
		if h.shapes[s.volume.shape] += more; h.shapes[s.volume.shape] == 0 {
			delete(h.shapes, s.volume.shape)
		}
	}
}

// OnAttachment calls changed for each node that has attachments, and then whenever a node may have got or lost one. It must
// not block.
func (h *Holdings) OnAttachment(changed func(node string)) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.changed = changed
	for _, a := range h.shown[ofAttachments] {
		changed(a.node)
	}
}

// traces are what is said of a volume on nodes, by its name and by its handle.
func (h *Holdings) traces(v fence.Volume) (all []*shown) {
	h.mu.RLock()
	defer h.mu.RUnlock()
	if v.Name != "" {
		all = append(all, h.found[h.hash(v.Name)]...)
	}
	if v.Handle != "" {
		all = append(all, h.found[h.hash(fence.UniqueName(v.Driver, v.Handle))]...)
	}
	return slices.DeleteFunc(all, func(s *shown) bool { return s.kind == ofVolumes })
}

// exclusiveOn are the nodes that have a volume on record, and not as a shared one: its modes may have been edited since.
func (h *Holdings) exclusiveOn(v fence.Volume) map[string]bool {
	h.mu.RLock()
	defer h.mu.RUnlock()
	nodes := map[string]bool{}
	for _, s := range h.found[h.hash(exclusiveKey(v.Driver, v.Handle))] {
		nodes[s.node] = true
	}
	return nodes
}

// isAttached reports whether an attachment of a volume to a node exists.
func (h *Holdings) isAttached(v fence.Volume, node string) bool {
	return slices.ContainsFunc(h.traces(v), func(s *shown) bool { return s.kind == ofAttachments && s.node == node })
}

// HeldElsewhere reports whether a volume is attached to another node, or on another record.
func (h *Holdings) HeldElsewhere(v fence.Volume, node, record string) (bool, error) {
	if !h.Synced() {
		return false, ErrNotSynced
	}
	return slices.ContainsFunc(h.traces(v), func(s *shown) bool {
		return s.kind == ofAttachments && s.node != node || s.kind == ofRecords && s.name != record
	}), nil
}

// onNode are the objects of a kind that are about a node; terminating attachments, too.
func (h *Holdings) onNode(k kind, node string) []*shown {
	h.mu.RLock()
	defer h.mu.RUnlock()
	return those(h.on[node], k)
}

func those(all []*shown, k kind) []*shown {
	return slices.DeleteFunc(slices.Clone(all), func(s *shown) bool { return s.kind != k })
}

func (h *Holdings) attachedTo(node string) (attached []attachedVolume) {
	for _, s := range h.onNode(ofAttachments, node) {
		attached = append(attached, s.attached)
	}
	return attached
}

// readRecords reads the records of a node name: those that the watches name, and more.
func (h *Holdings) readRecords(ctx context.Context, from client.Reader, sakes *fence.Namesakes, more map[string]bool) (found []*v1alpha1.NodeFence, err error) {
	node := sakes.Node.Name
	names := maps.Clone(more)
	if names == nil {
		names = map[string]bool{}
	}
	for _, s := range h.onNode(ofRecords, node) {
		names[s.name] = true
	}
	for name := range names {
		record := &v1alpha1.NodeFence{}
		there, err := get(ctx, from, name, record)
		if err != nil {
			return nil, err
		}
		if there && record.Spec.NodeName == node {
			found = append(found, record)
		}
	}
	slices.SortFunc(found, func(a, b *v1alpha1.NodeFence) int { return strings.Compare(a.Name, b.Name) })
	for _, record := range found {
		sakes.Records = append(sakes.Records, FenceRecord(record))
	}
	return found, nil
}

// nodes counts all nodes.
func (h *Holdings) nodes() int {
	h.mu.RLock()
	defer h.mu.RUnlock()
	return len(h.shown[ofNodes])
}

// InIncident reports whether a node has the out-of-service taint, or a record of its name is in an incident.
func (h *Holdings) InIncident(name string) bool {
	h.mu.RLock()
	defer h.mu.RUnlock()
	return slices.ContainsFunc(h.on[name], func(s *shown) bool { return s.incident })
}

// quiet are the nodes without the out-of-service taint whose only record is of their present boot, and in no incident. nil nodes
// are those of the watch.
func (h *Holdings) quiet(nodes []fence.Node) map[string]bool {
	h.mu.RLock()
	defer h.mu.RUnlock()
	if nodes == nil {
		for name, s := range h.shown[ofNodes] {
			nodes = append(nodes, fence.Node{Name: name, Boot: s.boot, OutOfService: s.incident})
		}
	}
	quiet := map[string]bool{}
	for _, n := range nodes {
		records := those(h.on[n.Name], ofRecords)
		quiet[n.Name] = len(records) == 1 && !records[0].incident && records[0].boot == n.Boot && n.Boot.BootID != "" && !n.OutOfService
	}
	return quiet
}
