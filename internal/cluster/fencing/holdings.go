package fencing

import (
	"context"
	"hash/maphash"
	"slices"
	"sync"
	"sync/atomic"
	"unique"

	"k8s.io/utils/ptr"

	"github.com/fairlead-io/fairlead/internal/fence"
)

// holdings is an index from volumes to the nodes that may hold them, by NodeFences, VolumeAttachments and Nodes. It keeps
// names only, since there may be 100,000 volumes. Volumes are hashes: a collision only names one node too many.
// Holdings decide nothing: each named node is read live.
type holdings struct {
	seed maphash.Seed
	// version is the resource version that the watch of Nodes has reached.
	version atomic.Pointer[string]

	mu      sync.RWMutex
	volumes map[uint64][]trace
	// shown is the last state of Nodes and NodeFences, by name. Attachments are missing: their node and volume never change.
	shown map[kind]map[string]*shown
	// records are the names of NodeFences, by node.
	records map[string][]string
}

func newHoldings() *holdings {
	return &holdings{
		seed: maphash.MakeSeed(), volumes: map[uint64][]trace{},
		shown: map[kind]map[string]*shown{ofNodes: {}, ofRecords: {}}, records: map[string][]string{},
	}
}

type kind uint8

const (
	ofNodes kind = iota
	ofRecords
	ofAttachments
)

// shown is what one object says of volumes on a node.
type shown struct {
	name, node string
	volumes    []uint64
	// machine is the system UUID of the Node, or of the record's machine.
	machine string
	// incident: the node has the out-of-service taint, or the record is not Healthy.
	incident bool
}

// trace names an object that shows a volume on a node.
type trace struct {
	node   unique.Handle[string]
	object uint64 // hash of its name
	kind   kind
}

// nodesVersion implements NodesVersion.
func (h *holdings) nodesVersion(context.Context) string { return ptr.Deref(h.version.Load(), "") }

func (h *holdings) hash(name string) uint64 { return maphash.String(h.seed, name) }

func (h *holdings) trace(k kind, s *shown) trace {
	return trace{unique.Make(s.node), h.hash(s.name), k}
}

// put replaces the last state of an object.
func (h *holdings) put(k kind, is *shown) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if was := h.shown[k][is.name]; was == nil || was.node != is.node || !slices.Equal(was.volumes, is.volumes) {
		h.drop(k, is.name, was)
		h.add(k, is)
		return
	}
	h.shown[k][is.name] = is
}

func (h *holdings) add(k kind, is *shown) {
	t := h.trace(k, is)
	for _, v := range is.volumes {
		if !slices.Contains(h.volumes[v], t) {
			h.volumes[v] = append(h.volumes[v], t)
		}
	}
	if k == ofAttachments {
		return
	}
	h.shown[k][is.name] = is
	if k == ofRecords {
		h.records[is.node] = append(h.records[is.node], is.name)
	}
}

// drop removes an object's last state from all indexes.
func (h *holdings) drop(k kind, name string, was *shown) {
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
	if k == ofRecords {
		if h.records[was.node] = slices.DeleteFunc(h.records[was.node], func(o string) bool { return o == name }); len(h.records[was.node]) == 0 {
			delete(h.records, was.node)
		}
	}
}

// remove a deleted object. The state of an attachment never changes, so an attachment needs no last state.
func (h *holdings) remove(k kind, last *shown) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if k != ofAttachments {
		last = h.shown[k][last.name]
	}
	if last != nil {
		h.drop(k, last.name, last)
	}
}

// replace all objects of a kind.
func (h *holdings) replace(k kind, all []*shown) {
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
	}
	for _, is := range all {
		h.add(k, is)
	}
}

// holders names the nodes that may have or had a volume.
func (h *holdings) holders(v fence.Volume) (names []string) {
	h.mu.RLock()
	defer h.mu.RUnlock()
	if v.Name != "" {
		for _, t := range h.volumes[h.hash(v.Name)] {
			names = append(names, t.node.Value())
		}
	}
	if v.Handle != "" {
		for _, t := range h.volumes[h.hash(fence.UniqueName(v.Driver, v.Handle))] {
			names = append(names, t.node.Value())
		}
	}
	return names
}

// recordsOf names the records of the machines that have or had a node's name.
func (h *holdings) recordsOf(node string) []string {
	h.mu.RLock()
	defer h.mu.RUnlock()
	return slices.Clone(h.records[node])
}

// nodes counts all nodes.
func (h *holdings) nodes() int {
	h.mu.RLock()
	defer h.mu.RUnlock()
	return len(h.shown[ofNodes])
}

// isQuiet reports whether a node exists without the out-of-service taint, and the only record of its name is its own and
// Healthy.
func (h *holdings) isQuiet(name string) bool {
	h.mu.RLock()
	defer h.mu.RUnlock()
	node, records := h.shown[ofNodes][name], h.records[name]
	if node == nil || node.incident || len(records) != 1 {
		return false
	}
	record := h.shown[ofRecords][records[0]]
	return !record.incident && node.machine != "" && record.machine == node.machine
}
