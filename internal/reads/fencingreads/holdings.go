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

// Holdings is an index from volumes to the nodes that may hold them, by NodeFences, VolumeAttachments and Nodes. It keeps
// names only, since there may be 100,000 volumes. Volumes are hashes: a collision only names one node too many, and each
// named node is read live. In the controller, rows are what fencing reads of volumes and attachments.
type Holdings struct {
	seed    maphash.Seed
	api     client.WithWatch
	watches []*watched
	// version is the resource version that the watch of Nodes has reached.
	version atomic.Pointer[string]

	mu      sync.RWMutex
	volumes map[uint64][]trace
	// shown is the last state of Nodes and NodeFences, by name. Attachments are missing: their node and volume never change.
	shown map[kind]map[string]*shown
	// records are the names of NodeFences, by node.
	records map[string][]string
	rows    *rows // nil if no FenceReader reads them
}

// NewHoldings returns an empty index for a HolderReader.
func NewHoldings(api client.WithWatch, protected func(driver string) bool) *Holdings {
	h := &Holdings{
		seed: maphash.MakeSeed(), api: api, volumes: map[uint64][]trace{},
		shown: map[kind]map[string]*shown{ofNodes: {}, ofRecords: {}}, records: map[string][]string{},
	}
	h.watches = h.kinds(protected)
	return h
}

// NewHoldingsWithRows returns an empty index that a FenceReader can read, too.
func NewHoldingsWithRows(api client.WithWatch, protected func(driver string) bool) *Holdings {
	h := NewHoldings(api, protected)
	h.rows = newRows()
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

// ListedHoldings are holdings with rows that follow no changes, for commands that end soon.
func ListedHoldings(ctx context.Context, from client.Reader, protected func(driver string) bool) (*Holdings, error) {
	h := NewHoldingsWithRows(nil, protected)
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
	ofVolumes // only rows
)

// shown is what one object says of volumes on a node.
type shown struct {
	name, node string
	volumes    []uint64
	// boot of the Node, or of the record.
	boot v1alpha1.Boot
	// incident: the node has the out-of-service taint, or the record is in an incident.
	incident bool
	// attached is the row of an attachment, and row that of a PersistentVolume; both are passed to rows.
	attached attachedVolume
	row      *row
}

// trace names an object that shows a volume on a node.
type trace struct {
	node   unique.Handle[string]
	object uint64 // hash of its name
	kind   kind
}

// nodesVersion implements NodesVersion.
func (h *Holdings) nodesVersion(context.Context) string { return ptr.Deref(h.version.Load(), "") }

func (h *Holdings) hash(name string) uint64 { return maphash.String(h.seed, name) }

func (h *Holdings) trace(k kind, s *shown) trace {
	return trace{unique.Make(s.node), h.hash(s.name), k}
}

// put replaces the last state of an object.
func (h *Holdings) put(k kind, is *shown) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if was := h.shown[k][is.name]; was == nil || was.node != is.node || !slices.Equal(was.volumes, is.volumes) {
		h.drop(k, is.name, was)
		h.add(k, is)
		return
	}
	h.shown[k][is.name] = is
}

func (h *Holdings) add(k kind, is *shown) {
	t := h.trace(k, is)
	for _, v := range is.volumes {
		if !slices.Contains(h.volumes[v], t) {
			h.volumes[v] = append(h.volumes[v], t)
		}
	}
	switch k {
	case ofVolumes:
		h.rows.put(is.row)
		return
	case ofAttachments:
		if h.rows != nil {
			h.rows.attach(is.node, is.attached)
		}
		return
	case ofRecords:
		h.records[is.node] = append(h.records[is.node], is.name)
	}
	h.shown[k][is.name] = is
}

// drop removes an object's last state from all indexes.
func (h *Holdings) drop(k kind, name string, was *shown) {
	if was == nil {
		return
	}
	t := h.trace(k, was)
	for _, v := range was.volumes {
		if h.volumes[v] = slices.DeleteFunc(h.volumes[v], func(o trace) bool { return o == t }); len(h.volumes[v]) == 0 {
			delete(h.volumes, v)
		}
	}
	delete(h.shown[k], name)
	switch {
	case k == ofVolumes:
		h.rows.remove(name)
	case k == ofAttachments && h.rows != nil:
		h.rows.detach(was.node, name)
	case k == ofRecords:
		if h.records[was.node] = slices.DeleteFunc(h.records[was.node], func(o string) bool { return o == name }); len(h.records[was.node]) == 0 {
			delete(h.records, was.node)
		}
	}
}

// remove a deleted object. The state of an attachment never changes, so an attachment needs no last state. Rows are found by name.
func (h *Holdings) remove(k kind, last *shown) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if k == ofNodes || k == ofRecords {
		last = h.shown[k][last.name]
	}
	if last != nil {
		h.drop(k, last.name, last)
	}
}

// replace all objects of a kind.
func (h *Holdings) replace(k kind, all []*shown) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for v, traces := range h.volumes {
		if h.volumes[v] = slices.DeleteFunc(traces, func(t trace) bool { return t.kind == k }); len(h.volumes[v]) == 0 {
			delete(h.volumes, v)
		}
	}
	switch k {
	case ofRecords:
		h.records = map[string][]string{}
		fallthrough
	case ofNodes:
		h.shown[k] = map[string]*shown{}
	case ofVolumes:
		h.rows.volumes, h.rows.shapes, h.rows.found = map[string]*row{}, map[unique.Handle[shape]]int{}, map[uint64][]*row{}
	case ofAttachments:
		if h.rows != nil {
			h.rows.detachAll()
		}
	}
	for _, is := range all {
		h.add(k, is)
	}
}

// traces of a volume, by its name and by its handle.
func (h *Holdings) traces(v fence.Volume) (all []trace) {
	h.mu.RLock()
	defer h.mu.RUnlock()
	if v.Name != "" {
		all = append(all, h.volumes[h.hash(v.Name)]...)
	}
	if v.Handle != "" {
		all = append(all, h.volumes[h.hash(fence.UniqueName(v.Driver, v.Handle))]...)
	}
	return all
}

// isAttached reports whether an attachment of a volume to a node exists.
func (h *Holdings) isAttached(v fence.Volume, node string) bool {
	return slices.ContainsFunc(h.traces(v), func(t trace) bool { return t.kind == ofAttachments && t.node.Value() == node })
}

// HeldElsewhere reports whether a volume is attached to another node, or on another record.
func (h *Holdings) HeldElsewhere(v fence.Volume, node, record string) (bool, error) {
	if !h.Synced() {
		return false, ErrNotSynced
	}
	return slices.ContainsFunc(h.traces(v), func(t trace) bool {
		return t.kind == ofAttachments && t.node.Value() != node || t.kind == ofRecords && t.object != h.hash(record)
	}), nil
}

// readRecords reads the records of a node name: those that the watches name, and more.
func (h *Holdings) readRecords(ctx context.Context, from client.Reader, sakes *fence.Namesakes, more map[string]bool) (found []*v1alpha1.NodeFence, err error) {
	node := sakes.Node.Name
	names := maps.Clone(more)
	if names == nil {
		names = map[string]bool{}
	}
	h.mu.RLock()
	for _, name := range h.records[node] {
		names[name] = true
	}
	h.mu.RUnlock()
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
	node := h.shown[ofNodes][name]
	return node != nil && node.incident || slices.ContainsFunc(h.records[name], func(r string) bool { return h.shown[ofRecords][r].incident })
}

// isQuiet reports whether a node exists without the out-of-service taint, and the only record of its name is of its present boot, and in
// no incident.
func (h *Holdings) isQuiet(name string) bool {
	h.mu.RLock()
	defer h.mu.RUnlock()
	node, records := h.shown[ofNodes][name], h.records[name]
	if node == nil || node.incident || len(records) != 1 {
		return false
	}
	record := h.shown[ofRecords][records[0]]
	return !record.incident && node.boot.BootID != "" && record.boot == node.boot
}
