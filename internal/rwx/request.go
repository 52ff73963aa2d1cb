package rwx

import (
	"fmt"
	"slices"

	"github.com/fairlead-io/fairlead/internal/multus"
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

// Request of annotations for one volume. The zero Request leaves the volume on the default network.
type Request struct {
	// Network requested; zero is the default network.
	Network  multus.Network
	Identity multus.Identity
	// Source names the requesting object, for messages: StorageClass fast.
	Source string
	// Asker of the identity; zero if nothing is fixed.
	Asker Asker
	// Problem says why the request of an annotation is ignored.
	Problem string
	// NotGranted is the annotation that asks for an address that its object may not have.
	NotGranted string
}

// RequestSource is an object that may have a request for its volume. Without a name it does not exist.
type RequestSource struct {
	Asker
	Annotations map[string]string
}

// Kinds of objects that may have a request for a volume.
const (
	ClaimKind  = "PersistentVolumeClaim"
	VolumeKind = "PersistentVolume"
	ClassKind  = "StorageClass"
)

// Resolve returns the request for a volume of its claim, its PersistentVolume and its StorageClass,
// in this order: the first that names a network wins.
//
// Addresses and MAC belong to one volume, so those of a class are ignored. They also belong to one
// network: those of an object that names another network than the winner are ignored. An unreadable
// annotation, or a network or address that is not permitted, makes the whole request empty: half of a request could be worse.
func Resolve(permitted Permitted, claim, volume, class RequestSource) Request {
	var r Request
	for _, s := range []RequestSource{claim, volume, class} {
		text, named := s.Annotations[VolumeNetworkAnnotation]
		if !named {
			continue
		}
		network, err := multus.ParseNetwork(text)
		if err != nil {
			return unreadable(s, VolumeNetworkAnnotation, err)
		}
		if !network.IsZero() && !slices.Contains(permitted.Networks, network) {
			return Request{Source: s.String(), Problem: fmt.Sprintf("annotation %s of %s names %s: %s", VolumeNetworkAnnotation, s, network, NotPermitted)}
		}
		r.Network, r.Source = network, s.String()
		break
	}
	for _, s := range []RequestSource{claim, volume} {
		if text, named := s.Annotations[VolumeNetworkAnnotation]; named {
			if network, err := multus.ParseNetwork(text); err != nil || network != r.Network {
				continue
			}
		}
		identity, key, err := identityOf(s.Annotations)
		if err != nil {
			return unreadable(s, key, err)
		}
		if key, why := permitted.notGranted(s.Asker, r.Network, identity); why != "" {
			return Request{Source: s.String(), Problem: why, NotGranted: key}
		}
		if r.Identity.IsZero() && !identity.IsZero() {
			r.Asker = s.Asker
		}
		r.Identity = r.Identity.Or(identity)
		if r.Source == "" && !identity.IsZero() {
			r.Source = s.String()
		}
	}
	return r
}

func identityOf(annotations map[string]string) (i multus.Identity, key string, err error) {
	if i.Addresses, err = multus.ParseAddresses(annotations[VolumeAddressesAnnotation]); err != nil {
		return multus.Identity{}, VolumeAddressesAnnotation, err
	}
	if i.MAC, err = multus.ParseMAC(annotations[VolumeMACAnnotation]); err != nil {
		return multus.Identity{}, VolumeMACAnnotation, err
	}
	return i, "", nil
}

func unreadable(s RequestSource, key string, err error) Request {
	return Request{Source: s.String(), Problem: fmt.Sprintf("annotation %s of %s: %v", key, s, err)}
}
