package storage

import (
	"fmt"
	"time"
)

// Request is what annotations ask for one volume. The zero Request leaves the
// volume on the network that all volumes are on.
type Request struct {
	// Network asked for; zero is the one that all volumes are on.
	Network  Network
	Identity Identity
	// Source names the object that asks, for messages: StorageClass fast.
	Source string
	// Asker of the identity; zero where nothing is fixed.
	Asker Asker
	// Problem says why what an annotation asks for is left out.
	Problem string
}

// RequestSource is an object that may ask for its volume. One without a name is not there.
type RequestSource struct {
	Kind, Namespace, Name string
	Annotations           map[string]string
	UID                   string
	Created               time.Time
}

// Kinds of objects that may ask for a volume.
const (
	ClaimKind  = "PersistentVolumeClaim"
	VolumeKind = "PersistentVolume"
	ClassKind  = "StorageClass"
)

// String is the kind and the name: PersistentVolumeClaim default/data.
func (s RequestSource) String() string {
	if s.Namespace == "" {
		return s.Kind + " " + s.Name
	}
	return s.Kind + " " + s.Namespace + "/" + s.Name
}

// Resolve returns what is asked for a volume by its claim, its PersistentVolume
// and its StorageClass, in this order: the first that names a network wins.
//
// Addresses and MAC belong to one volume, so a class has no say in them. They
// belong to one network too: those of an object that names another network than
// the one that wins are left out. An annotation that can't be read asks for
// nothing at all: half of what was meant could be worse.
func Resolve(claim, volume, class RequestSource) Request {
	var r Request
	for _, s := range []RequestSource{claim, volume, class} {
		text, named := s.Annotations[VolumeNetworkAnnotation]
		if !named {
			continue
		}
		network, err := ParseNetwork(text)
		if err != nil {
			return unreadable(s, VolumeNetworkAnnotation, err)
		}
		r.Network, r.Source = network, s.String()
		break
	}
	for _, s := range []RequestSource{claim, volume} {
		if text, named := s.Annotations[VolumeNetworkAnnotation]; named {
			if network, err := ParseNetwork(text); err != nil || network != r.Network {
				continue
			}
		}
		identity, key, err := identityOf(s.Annotations)
		if err != nil {
			return unreadable(s, key, err)
		}
		if r.Identity.IsZero() && !identity.IsZero() {
			r.Asker = Asker{s.Kind, s.Namespace, s.Name, s.UID, s.Created}
		}
		r.Identity = r.Identity.or(identity)
		if r.Source == "" && !identity.IsZero() {
			r.Source = s.String()
		}
	}
	return r
}

func identityOf(annotations map[string]string) (i Identity, key string, err error) {
	if i.Addresses, err = ParseAddresses(annotations[VolumeAddressesAnnotation]); err != nil {
		return Identity{}, VolumeAddressesAnnotation, err
	}
	if i.MAC, err = ParseMAC(annotations[VolumeMACAnnotation]); err != nil {
		return Identity{}, VolumeMACAnnotation, err
	}
	return i, "", nil
}

func unreadable(s RequestSource, key string, err error) Request {
	return Request{Source: s.String(), Problem: fmt.Sprintf("annotation %s of %s: %v", key, s, err)}
}
