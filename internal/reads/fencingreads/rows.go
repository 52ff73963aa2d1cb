package fencingreads

import (
	"cmp"
	"maps"
	"slices"
	"strings"
	"time"
	"unique"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"

	"github.com/fairlead-io/fairlead/api/v1alpha1"
	"github.com/fairlead-io/fairlead/internal/fence"
)

// rows are the volumes and attachments of protected drivers, with only what fencing reads of healthy nodes: there may be
// 100,000 of each. The lock is that of Holdings.
type rows struct {
	volumes map[string]*row
	// shapes counts the volumes of each shape.
	shapes map[unique.Handle[shape]]int
	// found has the volumes by the hashes of their handle and their claim.
	found map[uint64][]*row
	// attached has the attachments by node.
	attached map[string][]attachedVolume
	// changed is called with each node whose attachments change.
	changed func(node string)
}

func newRows() *rows {
	return &rows{volumes: map[string]*row{}, shapes: map[unique.Handle[shape]]int{}, found: map[uint64][]*row{}, attached: map[string][]attachedVolume{}, changed: func(string) {}}
}

// row is one PersistentVolume.
type row struct {
	name, handle string
	shape        unique.Handle[shape]
	// keys are the hashes in found.
	keys [2]uint64
}

// shape is what many volumes have in common.
type shape struct {
	driver, clusterID string
	modes             string // separated by spaces
	block             bool
	secret            v1alpha1.SecretReference
}

// attachedVolume is what is kept of a VolumeAttachment.
type attachedVolume struct {
	name, volume string
	created      int64 // Unix time
}

func attachedOf(va *storagev1.VolumeAttachment) attachedVolume {
	return attachedVolume{va.Name, *va.Spec.Source.PersistentVolumeName, va.CreationTimestamp.Unix()}
}

func (a attachedVolume) createdAt() time.Time { return time.Unix(a.created, 0) }

// claimKey differs from every unique name of a volume: those have a dot before the first slash.
func claimKey(namespace, claim string) string { return namespace + "/" + claim }

func (h *Holdings) rowOf(pv *corev1.PersistentVolume) *row {
	v := FenceVolume(pv)
	is := shape{driver: v.Driver, clusterID: v.ClusterID, modes: strings.Join(v.AccessModes, " "), block: v.Block}
	if v.Secret != nil {
		is.secret = *v.Secret
	}
	r := &row{name: v.Name, handle: v.Handle, shape: unique.Make(is), keys: [2]uint64{h.hash(fence.UniqueName(v.Driver, v.Handle))}}
	// A Released volume still names its deleted claim, and a new claim may have that name.
	if ref := pv.Spec.ClaimRef; ref != nil && pv.Status.Phase == corev1.VolumeBound {
		r.keys[1] = h.hash(claimKey(ref.Namespace, ref.Name))
	}
	return r
}

func (r *row) volume() fence.Volume {
	is := r.shape.Value()
	v := fence.Volume{Name: r.name, Handle: r.handle, Driver: is.driver, ClusterID: is.clusterID, AccessModes: strings.Fields(is.modes), Block: is.block}
	if is.secret != (v1alpha1.SecretReference{}) {
		v.Secret = &is.secret
	}
	return v
}

func (s *rows) put(r *row) {
	s.remove(r.name)
	s.volumes[r.name] = r
	s.shapes[r.shape]++
	for _, key := range r.keys {
		if key != 0 {
			s.found[key] = append(s.found[key], r)
		}
	}
}

func (s *rows) remove(name string) {
	was := s.volumes[name]
	if was == nil {
		return
	}
	delete(s.volumes, name)
	if s.shapes[was.shape]--; s.shapes[was.shape] == 0 {
		delete(s.shapes, was.shape)
	}
	for _, key := range was.keys {
		if s.found[key] = slices.DeleteFunc(s.found[key], func(r *row) bool { return r == was }); len(s.found[key]) == 0 {
			delete(s.found, key)
		}
	}
}

func (s *rows) attach(node string, a attachedVolume) {
	if !slices.Contains(s.attached[node], a) {
		s.attached[node] = append(s.attached[node], a)
		s.changed(node)
	}
}

func (s *rows) detach(node, name string) {
	s.attached[node] = slices.DeleteFunc(s.attached[node], func(a attachedVolume) bool { return a.name == name })
	if len(s.attached[node]) == 0 {
		delete(s.attached, node)
	}
	s.changed(node)
}

// detachAll comes before another list.
func (s *rows) detachAll() {
	for node := range s.attached {
		s.changed(node)
	}
	s.attached = map[string][]attachedVolume{}
}

// OnAttachment calls changed for each node that has attachments, and then whenever a node may have got or lost one. It must
// not block.
func (h *Holdings) OnAttachment(changed func(node string)) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.rows.changed = changed
	for node := range h.rows.attached {
		changed(node)
	}
}

// attachedTo are the attachments of a node, terminating ones too.
func (h *Holdings) attachedTo(node string) []attachedVolume {
	h.mu.RLock()
	defer h.mu.RUnlock()
	return slices.Clone(h.rows.attached[node])
}

// volume with a name.
func (h *Holdings) volume(name string) (fence.Volume, bool) {
	h.mu.RLock()
	defer h.mu.RUnlock()
	r := h.rows.volumes[name]
	if r == nil {
		return fence.Volume{}, false
	}
	return r.volume(), true
}

// volumesOf are the volumes with a unique name, or of a claim.
func (h *Holdings) volumesOf(key string) (all []fence.Volume) {
	h.mu.RLock()
	defer h.mu.RUnlock()
	for _, r := range h.rows.found[h.hash(key)] {
		all = append(all, r.volume())
	}
	return all
}

// secretOf returns the secret of a storage system's volumes, the first by name; nil if none has one.
func (h *Holdings) secretOf(id identityKey) *v1alpha1.SecretReference {
	h.mu.RLock()
	defer h.mu.RUnlock()
	var first *v1alpha1.SecretReference
	for s := range maps.Keys(h.rows.shapes) {
		is := s.Value()
		if is.driver != id.driver || is.clusterID != id.clusterID || is.secret == (v1alpha1.SecretReference{}) {
			continue
		}
		if first == nil || cmp.Or(strings.Compare(is.secret.Namespace, first.Namespace), strings.Compare(is.secret.Name, first.Name)) < 0 {
			first = &is.secret
		}
	}
	return first
}
