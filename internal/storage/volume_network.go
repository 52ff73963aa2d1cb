package storage

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"slices"
	"strings"
)

// Annotations that ask for a network for one volume, on its PersistentVolumeClaim,
// its PersistentVolume or its StorageClass.
const (
	// VolumeNetworkAnnotation names the network, <namespace>/<NetworkAttachmentDefinition>;
	// "" is the one that all volumes are on.
	VolumeNetworkAnnotation = "fairlead.io/volume-network"
	// VolumeAddressesAnnotation fixes the server's addresses there, at most one of each IP family.
	VolumeAddressesAnnotation = "fairlead.io/volume-addresses"
	// VolumeMACAnnotation fixes the MAC address of the server's interface there.
	VolumeMACAnnotation = "fairlead.io/volume-mac"
)

// VolumeAnnotations lists the annotations that ask for a network for one volume.
func VolumeAnnotations() []string {
	return []string{VolumeNetworkAnnotation, VolumeAddressesAnnotation, VolumeMACAnnotation}
}

// AsksForNetwork reports whether one of the annotations that ask for a network for one volume is there.
func AsksForNetwork(annotations map[string]string) bool {
	return slices.ContainsFunc(VolumeAnnotations(), func(key string) bool { _, ok := annotations[key]; return ok })
}

// volumeInterface begins the interface names of networks that single volumes are on.
const volumeInterface = "fl"

// VolumeAttachment is how pods join a network that single volumes are on. The
// interface name follows from the network, so that client and server pods agree
// on it and two networks never share one.
func VolumeAttachment(n Network) Attachment {
	if n.IsZero() {
		return Attachment{}
	}
	sum := sha256.Sum256([]byte(n.String()))
	return Attachment{Network: n, Interface: volumeInterface + hex.EncodeToString(sum[:5])}
}

// ForVolumes reports whether VolumeAttachment made the attachment. Other interfaces
// with a name of the same form belong to their owners, and are left alone.
func (a Attachment) ForVolumes() bool {
	return strings.HasPrefix(a.Interface, volumeInterface) && a == VolumeAttachment(a.Network)
}

// VolumeAttachments returns the attachments for single volumes that the networks
// annotation of a pod asks for, in order.
func VolumeAttachments(annotation, podNamespace string) ([]Attachment, error) {
	selections, err := ParseSelections(annotation, podNamespace)
	if err != nil {
		return nil, err
	}
	var attachments []Attachment
	for _, s := range selections {
		if s.ForVolumes() {
			attachments = append(attachments, s)
		}
	}
	return InOrder(attachments), nil
}

// InOrder returns the attachments sorted, each once; nil when there is none.
func InOrder(attachments []Attachment) []Attachment {
	if len(attachments) == 0 {
		return nil
	}
	sorted := slices.Clone(attachments)
	slices.SortFunc(sorted, func(a, b Attachment) int {
		return cmp.Or(strings.Compare(a.Namespace, b.Namespace), strings.Compare(a.Name, b.Name), strings.Compare(a.Interface, b.Interface))
	})
	return slices.Compact(sorted)
}
