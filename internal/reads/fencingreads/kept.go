package fencingreads

import (
	"cmp"
	"strings"
	"time"
	"unique"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"

	"github.com/fairlead-io/fairlead/api/v1alpha1"
	"github.com/fairlead-io/fairlead/internal/fence"
)

// volume is what is kept of a PersistentVolume.
type volume struct {
	handle string
	shape  unique.Handle[shape]
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

func (h *Holdings) showVolume(pv *corev1.PersistentVolume, protected func(driver string) bool) *shown {
	if csi := pv.Spec.CSI; csi == nil || !protected(csi.Driver) {
		return nil
	}
	v := FenceVolume(pv)
	is := shape{driver: v.Driver, clusterID: v.ClusterID, modes: strings.Join(v.AccessModes, " "), block: v.Block}
	if v.Secret != nil {
		is.secret = *v.Secret
	}
	s := &shown{name: v.Name, volume: volume{v.Handle, unique.Make(is)}, keys: []uint64{h.hash(fence.UniqueName(v.Driver, v.Handle))}}
	// A Released volume still names its deleted claim, and a new claim may have that name.
	if ref := pv.Spec.ClaimRef; ref != nil && pv.Status.Phase == corev1.VolumeBound {
		s.keys = append(s.keys, h.hash(claimKey(ref.Namespace, ref.Name)))
	}
	return s
}

func (s *shown) fenceVolume() fence.Volume {
	is := s.volume.shape.Value()
	v := fence.Volume{Name: s.name, Handle: s.volume.handle, Driver: is.driver, ClusterID: is.clusterID, AccessModes: strings.Fields(is.modes), Block: is.block}
	if is.secret != (v1alpha1.SecretReference{}) {
		v.Secret = &is.secret
	}
	return v
}

// volume with a name.
func (h *Holdings) volume(name string) (fence.Volume, bool) {
	h.mu.RLock()
	defer h.mu.RUnlock()
	s := h.shown[ofVolumes][name]
	if s == nil {
		return fence.Volume{}, false
	}
	return s.fenceVolume(), true
}

// volumesOf are the volumes with a unique name, or of a claim.
func (h *Holdings) volumesOf(key string) (all []fence.Volume) {
	h.mu.RLock()
	defer h.mu.RUnlock()
	for _, s := range those(h.found[h.hash(key)], ofVolumes) {
		all = append(all, s.fenceVolume())
	}
	return all
}

// secretOf returns the secret of a storage system's volumes, the first by name; nil if none has one.
func (h *Holdings) secretOf(id identityKey) *v1alpha1.SecretReference {
	h.mu.RLock()
	defer h.mu.RUnlock()
	var first *v1alpha1.SecretReference
	for s := range h.shapes {
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
